"""`robustq reproduce` and `robustq datasets`, as a user runs them."""

import json

import pytest

from tests.cli.commands import call, run

QUIET = {"ROBUSTQ_DATA": ""}


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory):
    """An environment in which nothing but the package has data."""
    return QUIET | {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


def test_data_sets_are_listed_with_their_places(nowhere):
    done = run("datasets", env=nowhere)
    assert done.returncode == 0
    lines = {
        line.split()[0]: line for line in done.stdout.splitlines() if line.strip().startswith("D")
    }
    assert len(lines) == 11
    assert lines["D5"].split()[:5] == ["D5", "german", "1000", "2", "13"]
    assert "the package" in lines["D5"]
    assert "at UCI" in lines["D1"]
    assert "8 not here" in done.stdout


def test_a_quick_reproduction_uses_what_is_at_hand(nowhere, tmp_path):
    done = run(
        *("reproduce", "--quick", "-o", tmp_path / "out", "--indicators", "r_tv_rows,u_max"),
        *("--runs", 1, "--models", "nbc", "--workers", 1),
        env=nowhere,
    )
    assert done.returncode == 0, done.stderr
    assert "Naive Bayes, reading paper" in done.stdout
    assert "Naive Bayes, reading nearest" in done.stdout
    assert "AU-ARC" in done.stdout
    assert done.stderr == ""  # no terminal, no progress
    assert (tmp_path / "out" / "report.html").is_file()
    nearest = json.loads((tmp_path / "out" / "nearest" / "summary.json").read_text())
    assert nearest["settings"]["reading"] == "nearest"
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["settings"]["reading"] == "paper"
    assert [data["name"] for data in summary["data_sets"]] == [
        *("australian", "breast-cancer-wisconsin", "german")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--datasets", "germany"), "did you mean 'german'"),
        (("--models", "svm"), "unknown model 'svm'"),
        (("--indicators", "r_x"), "unknown indicator 'r_x'"),
        (("--indicators", "r_tv_al"), "did you mean 'r_tv_all'"),
        (("--runs", "0"), "--runs must be a whole number from 1"),
        (("--runs", "many"), "integer"),
        (("--reading", "neares"), "did you mean 'nearest'"),
        (("--reading", ","), "an option that lists names has none"),
        (("--smoothing", "-1"), "--smoothing must be"),
        (("--nbc-smoothing", "no"), "is not a number or cv"),
        (("--max-depth", "deep"), "is not a number or none"),
        (("--workers", "0"), "workers must be"),
        (("--data-dir", "/nowhere/at/all"), "is not a folder"),
    ],
)
def test_wrong_use_is_explained_and_writes_nothing(nowhere, tmp_path, arguments, message):
    done = call("reproduce", "--quick", "-o", tmp_path / "out", *arguments, env=nowhere)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_single_reading_leaves_the_others_alone_and_says_so(nowhere, tmp_path):
    def reproduce(*arguments):
        done = run(
            *("reproduce", "--datasets", "german,australian", "--runs", 1, "--models", "nbc"),
            *("--indicators", "r_tv,u_max", "--workers", 1, "-o", tmp_path, *arguments),
            env=nowhere,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    both = reproduce()
    (line,) = [line for line in both.splitlines() if "competitive" in line]
    assert "not run" not in line
    before = (tmp_path / "summary.json").read_bytes()
    one = reproduce("--reading", "nearest", "--nbc-smoothing", "2")
    assert "reading paper" not in one
    (line,) = [line for line in one.splitlines() if "competitive" in line]
    assert "not run" in line
    assert "nearest, changed" in one
    assert (tmp_path / "summary.json").read_bytes() == before
    changed = json.loads((tmp_path / "nearest" / "summary.json").read_text())
    assert changed["settings"]["nbc_smoothing"] == 2.0
    assert changed["reading"]["changed"]


def test_a_file_in_the_way_of_a_reading_is_seen_before_anything_runs(nowhere, tmp_path):
    (tmp_path / "nearest").touch()
    done = call("reproduce", "--quick", "-o", tmp_path, env=nowhere)
    assert done.returncode == 2
    assert "nearest is a file" in " ".join(done.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["nearest"]


def test_debug_shows_the_traceback(nowhere, tmp_path):
    done = run("reproduce", "--datasets", "germany", "--debug", "-o", tmp_path, env=nowhere)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "UnknownNameError" in done.stderr
