"""An experiment gives the same, however it is carried out, and stands in files people can read."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import robustq
from robustq import datasets, indicators, rejection
from robustq.exceptions import FileError, InputError, RobustqError
from robustq.experiments import READINGS, Piece, Plan, pieces, reproduce
from robustq.experiments.outcomes import interval
from robustq.experiments.store import Store
from robustq.experiments.workers import Silence, Workers
from tests.folders import UCI, needs_uci

SMALL = Plan(
    data_sets=("german", "breast-cancer-wisconsin"),
    runs=2,
    trees=3,
    bootstrap_models=2,
    most_tests=60,
)
NAMES = ("r_epsilon", "r_tv", "r_chi2", "u_marg", "u_max", "u_H", "u_t", "u_a", "u_e")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("done")
    return reproduce(SMALL, folder, workers=1), folder


def read_files(folder):
    """Return the content of every file whose bytes must be the same every time."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "seconds.jsonl"
    }


def test_all_files_are_there(done):
    _, folder = done
    names = {path.name for path in folder.iterdir()}
    tables = {f"table_{m}.{kind}" for m in ("nbc", "gef") for kind in ("md", "tex", "csv")}
    curves = {
        f"curves_{m}_{d}.{kind}"
        for m in ("nbc", "gef")
        for d in SMALL.data_sets
        for kind in ("png", "svg")
    }
    assert names == tables | curves | {"overview.png", "overview.svg", "summary.json", "pieces"}
    assert len(list((folder / "pieces").glob("*.parquet"))) == 2 * 2 * 2


def test_two_workers_give_the_same_bytes(done, tmp_path):
    _, folder = done
    reproduce(SMALL, tmp_path, workers=2)
    assert read_files(tmp_path) == read_files(folder)


def test_a_second_start_finds_everything_and_changes_nothing(done):
    _, folder = done
    before = read_files(folder)
    again = reproduce(SMALL, folder, workers=1)
    assert again.timings["kept"] == 8
    assert read_files(folder) == before


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux' list of processes")
def test_killed_and_started_again_it_ends_with_the_same_bytes(done, tmp_path):
    _, folder = done
    script = (
        "from robustq.experiments import reproduce\n"
        "from tests.experiments.test_reproduction import SMALL\n"
        "if __name__ == '__main__':\n"
        f"    reproduce(SMALL, {str(tmp_path / 'out')!r}, workers=2)\n"
    )
    file = tmp_path / "script.py"
    file.write_text(script)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, str(file)], env=environment)  # noqa: S603
    kept = tmp_path / "out" / "pieces"
    deadline = time.monotonic() + 300
    while len(list(kept.glob("*.parquet"))) < 3:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    workers = children(process)
    assert len(workers) >= 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    workers_end(workers)
    found = len(list(kept.glob("*.parquet")))
    assert not (tmp_path / "out" / "summary.json").exists()
    again = reproduce(SMALL, tmp_path / "out", workers=1)
    assert 3 <= again.timings["kept"] == found < 8
    left = read_files(tmp_path / "out")
    # What was being written when it was killed stays, hidden, and nobody takes it for a result.
    whole = {name: content for name, content in left.items() if not name.endswith(".part")}
    assert whole == read_files(folder)


def children(process):
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [Path(f"/proc/{pid}") for pid in listed.split()]


def workers_end(workers):
    """Wait until processes are gone."""
    for _ in range(200):
        if not any(folder.exists() for folder in workers):
            return
        time.sleep(0.1)
    pytest.fail("the workers outlive the process that started them")


def test_more_runs_keep_the_ones_there_are(tmp_path):
    one = Plan(**(SMALL.to_dict() | {"runs": 1, "data_sets": ["german"]}))
    reproduce(one, tmp_path, workers=1)
    two = Plan(**(SMALL.to_dict() | {"data_sets": ["german"]}))
    assert reproduce(two, tmp_path, workers=1).timings["kept"] == 2


def test_rows_are_kept_with_all_that_was_said_about_them(done):
    _, folder = done
    data = datasets.load("german")
    table = pq.read_table(next((folder / "pieces").glob("german-gef-01-*.parquet")))
    assert table.column_names == ["row", "truth", "prediction", "correct", "possible", *NAMES]
    rows = table["row"].to_numpy()
    assert len(set(rows.tolist())) == 60
    assert table["truth"].to_numpy().tolist() == data.y[rows].tolist()
    correct = table["truth"].to_numpy() == table["prediction"].to_numpy()
    assert correct.tolist() == table["correct"].to_numpy().tolist()


def test_the_table_is_that_of_the_pieces(done):
    found, folder = done
    areas = []
    for data_set in SMALL.data_sets:
        tables = [pq.read_table(p) for p in (folder / "pieces").glob(f"{data_set}-nbc-*.parquet")]
        runs = [(t["correct"].to_numpy(), -t["u_max"].to_numpy()) for t in tables]
        areas.append(np.mean([rejection.auc(*run) for run in runs]))
    table = pyarrow.csv.read_csv(folder / "table_nbc.csv")
    assert table["u_max"].to_pylist()[-1] == pytest.approx(np.mean(areas), abs=1e-12)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == json.loads(json.dumps(found.summary))
    assert summary["models"]["nbc"]["table"]["mean"][-1][4] == pytest.approx(np.mean(areas))
    assert "**" in (folder / "table_gef.md").read_text()
    assert r"\toprule" in (folder / "table_gef.tex").read_text()


def test_both_models_are_tested_on_the_same_rows():
    data = datasets.load("german")
    first, second = (pieces.split(Plan(), Piece("german", m, 3), data) for m in ("nbc", "gef"))
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    train, test = first
    assert len(test) == 400
    assert sorted([*train, *test]) == list(range(1000))
    other = pieces.split(Plan(), Piece("german", "nbc", 4), data)
    assert other[1].tolist() != test.tolist()
    assert len(pieces.split(Plan(most_tests=10), Piece("german", "nbc", 0), data)[1]) == 10


@needs_uci
def test_a_split_of_its_own_is_used_and_said(tmp_path):
    names = ("r_tv", "u_t")
    # With "cv", the folds would differ by their seeds too.
    given = {"data_sets": ("spect",), "models": ("nbc",), "nbc_smoothing": 1.0}
    found = reproduce(Plan(**given, runs=2, indicators=names), tmp_path, data_dir=UCI, workers=1)
    tables = [pq.read_table(path) for path in sorted((tmp_path / "pieces").glob("*.parquet"))]
    assert [table["row"].to_pylist() for table in tables] == [list(range(80, 267))] * 2
    assert tables[0]["r_tv"].equals(tables[1]["r_tv"])
    assert not tables[0]["u_t"].equals(tables[1]["u_t"])
    (data,) = found.summary["data_sets"]
    assert data["own_split"]
    assert (data["rows"], data["paper_rows"], data["differs"]) == (267, 428, True)


@needs_uci
def test_another_reading_pools_the_split_and_says_so(tmp_path):
    given = {"data_sets": ("spect", "german"), "runs": 2, "trees": 2, "bootstrap_models": 2}
    plan = Plan(**given, reading="nearest", most_tests=60)
    found = reproduce(plan, tmp_path, data_dir=UCI, workers=1)
    rows = [
        pq.read_table(path)["row"].to_pylist()
        for path in sorted((tmp_path / "pieces").glob("spect-nbc-*.parquet"))
    ]
    assert [len(tested) for tested in rows] == [60, 60]
    assert rows[0] != rows[1]
    assert min(rows[0]) < 80  # UCI's rows to learn from are tested on too
    summary = found.summary
    assert summary["settings"]["reading"] == summary["reading"]["name"] == "nearest"
    assert not summary["reading"]["changed"]
    assert summary["models"]["gef"]["parameters"]["smoothing"] == 1e-6
    assert summary["models"]["nbc"]["parameters"]["smoothing"][0] == 1e-10
    spect = summary["data_sets"][0]
    assert (spect["own_split"], spect["tests"]) == (False, 60)
    assert "pooled" in spect["note"]


@needs_uci
def test_readings_side_by_side_do_not_mix_and_go_on(tmp_path):
    given = {"data_sets": ("spect",), "runs": 1, "trees": 2, "bootstrap_models": 2}
    plans = [Plan(**given, reading=name) for name in READINGS]
    first = [reproduce(plan, tmp_path, data_dir=UCI, workers=1) for plan in plans]
    assert [found.timings["kept"] for found in first] == [0, 0]
    assert len(list((tmp_path / "pieces").glob("*.parquet"))) == 4
    again = [reproduce(plan, tmp_path, data_dir=UCI, workers=1) for plan in plans]
    assert [found.timings["kept"] for found in again] == [2, 2]
    assert [a.summary for a in again] == [b.summary for b in first]
    assert first[0].summary["models"] != first[1].summary["models"]


def test_what_older_versions_found_is_kept(tmp_path):
    # The name that a piece had before plans had readings.
    piece, content = Piece("german", "gef", 0), "content"
    names = ("indicators", "seed", "test_share", "most_tests", "bootstrap_models")
    decisive = {name: SMALL.to_dict()[name] for name in names}
    preset = {"n_estimators": 3, "smoothing": 0.0, "max_depth": None, "n_jobs": 1}
    versions = [robustq.__version__, *map(metadata.version, ("numpy", "scikit-learn"))]
    told = [versions, content, asdict(piece), decisive, preset, []]
    mark = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
    path = Store(SMALL, tmp_path, {"german": content}).path(piece)
    assert path.name == f"german-gef-01-{mark}.parquet"


def test_any_ball_can_be_an_indicator(tmp_path, monkeypatch):
    (tmp_path / "my_balls.py").write_text(
        "from robustq.perturbations import TotalVariation\n"
        "class Mine(TotalVariation):\n    name = 'mine'\n"
    )
    monkeypatch.chdir(tmp_path)
    names = ("my_balls:Mine", "r_tv", "r_kl")
    plan = Plan(data_sets=("german",), models=("nbc",), runs=1, most_tests=20, indicators=names)
    found = reproduce(plan, tmp_path / "out", workers=2)
    assert found.tables["nbc"].names == ("r_mine", "r_tv", "r_kl")
    table = pq.read_table(next((tmp_path / "out" / "pieces").glob("*.parquet")))
    np.testing.assert_allclose(table["r_mine"].to_numpy(), table["r_tv"].to_numpy(), rtol=1e-9)


def test_a_damaged_piece_is_run_again(tmp_path):
    plan = Plan(data_sets=("german",), models=("nbc",), runs=1, indicators=("u_max",))
    reproduce(plan, tmp_path, workers=1)
    before = read_files(tmp_path)
    piece = next((tmp_path / "pieces").glob("*.parquet"))
    piece.write_bytes(piece.read_bytes()[:100])
    (tmp_path / "pieces" / "seconds.jsonl").write_text('{"piece": "german')
    assert reproduce(plan, tmp_path, workers=1).timings["kept"] == 0
    assert read_files(tmp_path) == before


@pytest.mark.parametrize("kind", ["flipped", "foreign"])
def test_pieces_that_were_tampered_with_are_run_again(tmp_path, kind):
    plan = Plan(data_sets=("german",), models=("nbc",), runs=1, indicators=("u_max",))
    reproduce(plan, tmp_path, workers=1)
    before = read_files(tmp_path)
    piece = next((tmp_path / "pieces").glob("*.parquet"))
    if kind == "flipped":
        content = bytearray(piece.read_bytes())
        content[200] ^= 1
        piece.write_bytes(content)
    else:
        pq.write_table(pq.read_table(piece).select(["row"]), piece)
    (tmp_path / "pieces" / "seconds.jsonl").write_bytes(b'\xff\n{"piece": "x", "seconds": NaN}\n')
    assert reproduce(plan, tmp_path, workers=1).timings["kept"] == 0
    assert read_files(tmp_path) == before


def test_what_a_killed_process_left_is_swept_away(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / "pieces").mkdir()
    stale = tmp_path / "pieces" / f".x.parquet.{ended.pid}.abc.part"
    alive = tmp_path / "pieces" / f".x.parquet.{os.getpid()}.abc.part"
    for part in (stale, alive):
        part.touch()
    Store(SMALL, tmp_path, {})
    assert not stale.exists()
    assert alive.exists()


def test_tables_and_pictures_of_an_earlier_plan_do_not_stay(tmp_path):
    small = {"runs": 1, "indicators": ("u_max",), "trees": 2}
    reproduce(Plan(data_sets=("german", "australian"), **small), tmp_path, workers=1)
    (tmp_path / "table_mine.md").touch()
    reproduce(Plan(data_sets=("german",), models=("nbc",), **small), tmp_path, workers=1)
    names = {path.name for path in tmp_path.iterdir()}
    assert not any("gef" in name or "australian" in name for name in names)
    assert {"table_nbc.md", "table_mine.md", "curves_nbc_german.svg"} <= names


def test_a_changed_ball_of_ones_own_is_run_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for base in ("TotalVariation", "ChiSquared"):
        name = f"balls_{base.lower()}"
        text = f"from robustq.perturbations import {base}\nclass Mine({base}):\n    name = 'mine'\n"
        (tmp_path / f"{name}.py").write_text(text)
        plan = Plan(data_sets=("german",), indicators=(f"{name}:Mine",))
        found.append(plan.fingerprint(Piece("german", "nbc", 0), "x"))
    assert found[0] != found[1]
    for raised in ("ValueError", "KeyError"):
        (tmp_path / f"bad_{raised}.py").write_text(
            "from robustq.perturbations import TotalVariation\n"
            "class Bad(TotalVariation):\n    name = 'bad'\n"
            f"    def __init__(self):\n        raise {raised}('no')\n"
        )
        with pytest.raises(InputError, match="cannot be made"):
            Plan(indicators=(f"bad_{raised}:Bad",))


def test_errors_of_a_ball_of_ones_own_name_the_piece(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rough.py").write_text(
        "from robustq.perturbations import Perturbation, TotalVariation\n"
        "class Rough(Perturbation):\n    name = 'rough'\n    domain = TotalVariation.domain\n"
        "    def lower_expectation(self, q, f, delta):\n        raise KeyError('oops')\n"
    )
    plan = Plan(data_sets=("german",), models=("nbc",), runs=1, indicators=("rough:Rough",))
    with pytest.raises(RobustqError, match=r"german, naive Bayes, run 1 failed \(KeyError"):
        reproduce(plan, tmp_path / "out", workers=1)


def test_a_file_in_the_way_is_explained(tmp_path):
    (tmp_path / "results").write_text("mine")
    with pytest.raises(FileError, match="results"):
        reproduce(Plan(data_sets=("german",), runs=1), tmp_path / "results", workers=1)
    assert (tmp_path / "results").read_text() == "mine"


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two"])
def test_a_wrong_number_of_workers_is_refused(tmp_path, workers):
    with pytest.raises(InputError, match="workers must be"):
        reproduce(SMALL, tmp_path / "out", workers=workers)
    assert not (tmp_path / "out").exists()


def end_process(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_explained():
    with Workers(2) as workers, pytest.raises(RobustqError, match="ended from outside"):
        list(workers.work(end_process, [1, 2], Silence()))


def refuse(_):
    msg = "no"
    raise InputError(msg)


@pytest.mark.parametrize("count", [1, 2])
def test_errors_of_workers_come_through(count):
    with Workers(count) as workers, pytest.raises(InputError, match="no"):
        list(workers.work(refuse, [1, 2, 3], Silence()))


def test_intervals_are_students():
    values = [0.5, 0.6, 0.7]
    found = interval(values)
    # t with two degrees of freedom at 97.5 %: 4.3027.
    assert found.mean == pytest.approx(0.6)
    assert found.high - found.mean == pytest.approx(4.30265 * 0.1 / np.sqrt(3), rel=1e-5)
    assert interval([0.5]).low == interval([0.5]).high == 0.5


def test_scores_are_as_the_literature_has_them(done):
    _, folder = done
    for path in (folder / "pieces").glob("*.parquet"):
        table = pq.read_table(path)
        u_max, margin = table["u_max"].to_numpy(), table["u_marg"].to_numpy()
        assert (u_max >= 0).all()
        np.testing.assert_allclose(margin, 1 - 2 * u_max, atol=1e-9)
        assert indicators.get("u_max").higher == "doubted"


def test_stores_of_other_plans_do_not_mix(tmp_path):
    contents = {"german": "x"}
    first = Store(Plan(data_sets=("german",)), tmp_path, contents)
    second = Store(Plan(data_sets=("german",), seed=1), tmp_path, contents)
    piece = Piece("german", "nbc", 0)
    assert first.path(piece) != second.path(piece)
    assert first.path(piece).parent == second.path(piece).parent
