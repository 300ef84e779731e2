"""Benchmarks tell a change from noise, and their files hold what was measured."""

from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from benchmarks import __main__ as command
from benchmarks import races
from benchmarks.comparison import Comparison, is_worse
from benchmarks.conditions import Conditions
from benchmarks.figures import Figure, read, summarise, write
from benchmarks.growth import Axis, Growth, find_exponent
from benchmarks.growth import measure as measure_growth
from benchmarks.learning import compare, keep, load, recall, show
from benchmarks.races import Race

from robustq.exceptions import UnknownNameError

ROUNDS = 7


def draw(seed, level=1.0, noise=0.05, rounds=ROUNDS):
    """Make a figure whose ratio is about `level`, on a machine that slows down as it likes."""
    rng = np.random.default_rng(seed)
    slow = np.exp(rng.normal(0, 0.5, rounds))  # a slow minute hits both sides alike
    ours, theirs = np.exp(np.abs(rng.normal(0, noise, (2, rounds)))) * slow
    return summarise(Figure("table", "name"), (level * ours).tolist(), theirs.tolist())


def make_race(name="name", ratio=1.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    return Race("table", name, lambda: ratio * rng.uniform(1, 1.1), lambda: 1.0, **options)


def test_a_figure_is_the_median_of_the_ratios_of_rounds():
    # The third round was slow for both.
    figure = summarise(Figure("table", "name"), [2.0, 3.0, 40.0, 5.0], [1.0, 1.0, 10.0, 1.0])
    assert (figure.ours, figure.theirs) == (4.0, 1.0)
    assert figure.ratio == figure.value == 3.5
    assert figure.spread == pytest.approx((4.25 - 2.75) / 2)


def test_a_figure_without_another_side_is_its_median():
    figure = summarise(Figure("table", "name", limit=2.0), [1.0, 2.0, 30.0])
    assert figure.value == figure.ours == 2.0
    assert figure.ratio is figure.theirs is None
    assert figure.kept


def test_work_of_other_size_is_scaled():
    assert summarise(Figure("table", "name"), [30.0], [1.0], scale=0.1).ratio == pytest.approx(3.0)


@pytest.mark.parametrize(("limit", "kept"), [(None, None), (1.5, True), (0.5, False)])
def test_a_limit_is_kept_or_not(limit, kept):
    assert summarise(Figure("table", "name", limit=limit), [1.0], [1.0]).kept is kept


def test_the_machine_slowing_down_does_not_show():
    ratios = [draw(seed).value for seed in range(50)]
    assert max(ratios) < 1.1
    assert min(ratios) > 0.9


def test_a_slowdown_is_told_from_noise():
    worse = [is_worse(draw(seed), draw(1000 + seed, level=1.3)) for seed in range(200)]
    noise = [is_worse(draw(seed), draw(1000 + seed)) for seed in range(200)]
    assert np.mean(worse) == 1
    assert np.mean(noise) < 0.02


def test_more_noise_needs_a_larger_slowdown():
    calm, wild = (Figure("table", "name", ours=1, ratio=1, spread=s) for s in (0.01, 0.3))
    slower = Figure("table", "name", ours=1.3, ratio=1.3, spread=0.01)
    assert is_worse(calm, slower)
    assert not is_worse(wild, slower)


def test_each_figure_finds_its_own():
    old = [Figure("table", name, ours=1, ratio=1, spread=0) for name in "abc"]
    comparison = Comparison([*old, Figure("table", "d", note="there is no d")])
    new = {
        "a": Figure("table", "a", ours=2, ratio=2, spread=0),
        "b": Figure("table", "b", ours=0.5, ratio=0.5, spread=0),
        "c": Figure("table", "c", note="there is no c"),
        "d": Figure("table", "d", ours=1, ratio=1, spread=0),
        "e": Figure("another table", "a", ours=2, ratio=2, spread=0),
    }
    assert {name: comparison.judge(figure) for name, figure in new.items()} == {
        "a": "SLOWER",
        "b": "faster",
        "c": "GONE",
        "d": "new",
        "e": "new",
    }


def test_files_hold_every_figure(tmp_path):
    figures = [
        draw(0),
        Figure("table", "alone", "GiB", ours=0.5, spread=0.0, limit=0.4),
        Figure("table", "absent", limit=3.0, note="there is no such ball"),
    ]
    write(tmp_path / "file.json", figures, quick=True)
    again, about = read(tmp_path / "file.json")
    assert again == figures
    assert about["conditions"] == {"quick": True}
    assert {"python", "numpy", "cores"} <= about["machine"].keys()
    assert '"kept": false' in (tmp_path / "file.json").read_text()


def test_both_sides_take_turns():
    calls = []

    def note(side):
        calls.append(side)
        return 1.0

    races.run(Race("table", "name", partial(note, "ours"), partial(note, "theirs")), 3)
    assert calls == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_what_is_not_there_is_not_measured():
    def prepare():
        msg = "there is no ball 'tv_all'"
        raise UnknownNameError(msg)

    figure = races.run(make_race(prepare=prepare, limit=8.0), ROUNDS)
    assert figure.value is None
    assert figure.kept is None
    assert "tv_all" in figure.note


def test_a_short_call_is_repeated_and_a_long_race_cut(monkeypatch):
    calls = []
    monkeypatch.setattr(races, "SHORTEST", 0.001)
    assert 0 < races.timed(lambda: calls.append(1))() < 0.001
    assert len(calls) > 1
    monkeypatch.setattr(races, "BUDGET", -1.0)
    once = []

    def call():
        once.append(1)
        return 1.0

    races.run(Race("table", "name", call), ROUNDS)
    assert len(once) == 1


def test_what_would_fail_is_measured_again():
    times = iter([9.0] * ROUNDS + [1.0] * 2 * ROUNDS)
    race = Race("table", "name", lambda: next(times), lambda: 1.0, limit=2.0)
    figure = races.run(race, ROUNDS, lambda figure: figure.kept is False)
    assert figure.kept
    assert next(times, None) is None


class Bench:
    """Stands where a module of benches does."""

    def __init__(self, *found):
        self.found = found

    def races(self, conditions):
        yield from self.found


@pytest.fixture
def bench(monkeypatch):
    """Run the command on races, and return its exit code."""

    def run(found, *arguments):
        def find(name):
            return Bench(*found) if name == "benchmarks.curves" else import_module(name)

        monkeypatch.setattr(Conditions, "impose", lambda _: None)
        with monkeypatch.context() as patch:
            patch.setattr(command, "import_module", find)
            return command.main(["curves", "--rounds", "5", *map(str, arguments)])

    return run


def test_the_command_compares_with_a_file(bench, tmp_path, capsys):
    file = tmp_path / "old.json"
    assert bench([make_race("a"), make_race("b", 5)], "--json", file) == 0
    assert bench([make_race("a", seed=1), make_race("b", 5, seed=1)], "--compare", file) == 0
    assert "same" in capsys.readouterr().out
    assert bench([make_race("a", seed=2), make_race("b", 8, seed=2)], "--compare", file) == 1
    shown = capsys.readouterr()
    lines = {line.split()[0]: line.split() for line in shown.out.splitlines() if " ± " in line}
    assert lines["a"][-1] == "same"
    assert lines["b"][-1] == "SLOWER"
    assert shown.err == "worse than before: table: b\n"


def test_the_command_fails_where_a_limit_is_not_kept(bench, capsys):
    assert bench([make_race(limit=2.0)]) == 0
    assert bench([make_race(limit=0.5)]) == 1
    assert capsys.readouterr().err == "limit not kept: table: name\n"


def test_the_command_fails_where_there_is_nothing_to_compare(bench, tmp_path, capsys):
    assert bench([make_race("a")], "--json", tmp_path / "old.json") == 0
    assert bench([make_race("b")], "--compare", tmp_path / "old.json") == 1
    assert "nothing to compare" in capsys.readouterr().err


def test_what_was_measured_is_kept_if_a_later_one_breaks(bench, tmp_path):
    def fail():
        msg = "broken"
        raise ZeroDivisionError(msg)

    with pytest.raises(ZeroDivisionError):
        bench([make_race("a"), Race("table", "b", fail)], "--json", tmp_path / "new.json")
    assert [figure.name for figure in read(tmp_path / "new.json")[0]] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["forrest"], "there are first_use, balls"),
        (["--rounds", "0"], "1 or more, not 0"),
        (["--compare", "nowhere.json"], "no file nowhere.json"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message, capsys):
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert message in capsys.readouterr().err


def test_every_bench_is_there():
    folder = Path(command.__file__).parent
    holds = {path.stem for path in folder.glob("*.py") if "def races(" in path.read_text()}
    assert holds == set(command.BENCHES)


def test_what_was_learned_is_kept_and_shown(tmp_path):
    names = ["shrunk", "scikit-learn"]
    found = {"wine_numbers": compare(load("wine_numbers", None), names, 2, ["tv", "margin"])}
    keep(found, tmp_path / "kept.csv")
    again = recall(tmp_path / "kept.csv")
    assert list(again["wine_numbers"]["shrunk"]) == list(found["wine_numbers"]["shrunk"])
    assert list(show(again, names[-1])) == list(show(found, names[-1]))
    assert 0.9 < found["wine_numbers"]["shrunk"]["AUC"].mean() <= 1.0
    assert recall(tmp_path / "nothing.csv") == {}


def test_growth_is_told_by_its_exponent():
    assert find_exponent((10, 100), (3.0, 300.0)) == pytest.approx(2.0)
    steep = Growth("rows", "fit", (1, 10, 100), (1.0, 10.0, 1000.0), (1.0, 1.0, 1.0), 1.3)
    assert steep.exponent == pytest.approx(2.0)
    assert not steep.kept
    hungry = Growth("rows", "fit", (1, 10), (1.0, 1.0), (1.0, 100.0), 1.3)
    assert not hungry.kept


def test_growth_is_measured_at_every_size():
    axis = Axis("pieces", (1, 50), lambda size: {"work": lambda: sum(range(20_000 * size))}, 1.5)
    (growth,) = measure_growth(axis)
    assert growth.sizes == (1, 50)
    assert 0.5 < growth.exponent < 1.5
    assert growth.kept
