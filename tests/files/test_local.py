"""Files of this machine appear when they are complete, and leave nothing behind."""

from pathlib import Path

import pytest

from robustq.files.local import replacing


def test_an_interrupt_as_soon_as_a_file_is_there_leaves_nothing(tmp_path, monkeypatch):
    touch, made = Path.touch, []

    def touch_and_interrupt(self, *arguments, **options):
        touch(self, *arguments, **options)
        made.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "touch", touch_and_interrupt)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "out.csv"):
        pytest.fail("it was not interrupted")
    assert len(made) == 1
    assert not list(tmp_path.iterdir())
