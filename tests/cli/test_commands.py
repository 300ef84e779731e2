"""fit, score, evaluate, inspect and demo, as a user runs them."""

import json
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import robustq
from robustq.io import open_writer
from robustq.selection.gates import Gate
from tests.cli.commands import ENVIRONMENT, call, run

ROWS = 300
ROOT = Path(__file__).parents[2]
SMALL_DISK = 30_000  # bytes that a file may have
FIT = ("fit", "train.csv", "--target", "outcome", "-o", "x", "--drop", "id")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, and models that learned from it."""
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    amount, purpose = rng.normal(100, 30, ROWS).round(1), rng.choice(["car", "home", "other"], ROWS)
    outcome = np.where(
        amount + 40 * (purpose == "car") + rng.normal(0, 30, ROWS) > 110, "bad", "good"
    )
    table = pa.table(
        {
            "id": [f"{i:05d}" for i in range(ROWS)],
            "amount": amount,
            "purpose": purpose,
            "age": rng.integers(18, 90, ROWS),
            "outcome": outcome,
        }
    )
    pyarrow.csv.write_csv(table, folder / "train.csv")
    pq.write_table(table, folder / "train.parquet")
    for model in ("nbc", "forest"):
        done = run(
            *("fit", "train.csv", "--target", "outcome", "--model", model, "--drop", "id"),
            *("-o", f"{model}.robustq"),
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        (folder / f"{model}.txt").write_text(done.stdout)
    return folder


def explain(done):
    return " ".join(done.stderr.replace("│", " ").split())


def test_fit_says_how_it_understood_the_table(folder):
    text = (folder / "nbc.txt").read_text()
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "numbers, 10 bins" in lines["amount"]
    assert "18 to 89" in lines["age"]
    assert "categories" in lines["purpose"]
    assert "car, home, other" in lines["purpose"]
    assert "id" not in lines
    assert "300 rows, classes bad, good" in text
    assert "Tried on 60 rows held out: accuracy 0." in text
    assert "AU-ARC r_epsilon" in text


def test_fit_learns_from_all_rows(folder):
    model = robustq.load(folder / "forest.robustq")
    assert model.training_["rows"] == ROWS
    assert model.training_["target"] == "outcome"
    assert model.training_["holdout"]["rows"] == 60
    assert model.classes_.tolist() == ["bad", "good"]


def test_columns_that_look_like_ids_are_remarked_on(folder):
    wide = {"COLUMNS": "160"}
    command = ("fit", "train.csv", "--target", "outcome", "--no-holdout", "-o", "x.robustq")
    done = call(*command, cwd=folder, env=wide)
    assert "id looks like an id, of which nothing can be learned: leave it out (--drop id)?" in (
        done.stdout
    )
    assert "held out" not in done.stdout


@pytest.mark.parametrize("model", ["nbc", "forest"])
def test_command_and_library_learn_the_same(folder, tmp_path, model):
    table = robustq.read(folder / "train.csv").drop_columns(["id"])
    y, X = np.array(table["outcome"].to_pylist()), table.drop_columns(["outcome"])
    known = robustq.load(folder / f"{model}.robustq")
    estimator = type(known)(random_state=0)
    for frame in (X, X.to_pandas(), pl.from_arrow(X)):
        assert estimator.fit(frame, y).to_dict() == known.to_dict()
    assert repr(known.encoding_) == repr(estimator.encoding_)
    assert "numbers" in repr(known.encoding_)
    assert robustq.NaiveBayesClassifier().smoothing == "cv"


def test_a_target_of_numbers_is_cut_and_tested_alike(folder, tmp_path):
    fit = ("fit", folder / "train.csv", "--drop", "id", "--no-holdout", "--trees", "2", "-o", "m")
    done = call(*fit, "--target", "amount", cwd=tmp_path)
    assert done.returncode == 2
    assert "--target-bins N" in explain(done)
    assert "--target-threshold T" in explain(done)
    done = call(*fit, "--target", "amount", "--target-bins", "3", cwd=tmp_path)
    assert done.returncode == 0, done.output
    assert len(robustq.load(tmp_path / "m").classes_) == 3
    test = ("evaluate", "m", folder / "train.csv", "-o", "r.html", "--json")
    told = json.loads(call(*test, cwd=tmp_path).stdout)
    assert [item["rows"] for item in told["classes"]] == pytest.approx([100] * 3, abs=3)
    done = call(*fit, "--target", "age", "--target-threshold", "50", cwd=tmp_path)
    assert "Target cut into < 50, >= 50" in done.stdout
    done = call(*fit, "--target", "age", "--categorical", "age", cwd=tmp_path)
    assert "50" in robustq.load(tmp_path / "m").classes_


def test_a_target_in_other_case_is_suggested(folder):
    done = call("fit", "train.csv", "--target", "Outcome", "-o", "x", cwd=folder)
    assert done.returncode == 2
    assert "did you mean 'outcome'? it has 'id', 'amount', 'purpose', 'age', 'outcome'" in (
        explain(done)
    )


def test_what_a_model_understood_can_be_inspected(folder, tmp_path):
    call(
        "fit", "train.csv", "--target", "outcome", "--no-holdout", "-o", tmp_path / "m", cwd=folder
    )
    text = " ".join(call("inspect", tmp_path / "m", env={"COLUMNS": "200"}).stdout.split())
    assert "age numbers, " in text
    assert " bins whole numbers, 7" in text
    assert "purpose 3 categories text, 3 different" in text
    assert "id looks like an id" in text


def test_workbooks_go_in_and_out(folder, tmp_path):
    pytest.importorskip("openpyxl")
    with open_writer(str(tmp_path / "t.xlsx"), pq.read_schema(folder / "train.parquet")) as writer:
        writer.write_table(pq.read_table(folder / "train.parquet"))
    fit = ("--target", "outcome", "--drop", "id", "--model", "nbc", "-o", tmp_path / "m")
    done = call("fit", tmp_path / "t.xlsx", *fit)
    assert done.returncode == 0, done.output
    known = robustq.load(folder / "nbc.robustq")
    assert robustq.load(tmp_path / "m").to_dict() == known.to_dict()
    done = call("score", tmp_path / "m", tmp_path / "t.xlsx", "-o", tmp_path / "o.xlsx")
    assert done.returncode == 0, done.output
    scored = robustq.read(tmp_path / "o.xlsx")
    expected = known.assess(pq.read_table(folder / "train.parquet"))
    assert scored["prediction"].to_pylist() == expected.prediction.tolist()
    np.testing.assert_allclose(scored["robustness_tv"].to_numpy(), expected.robustness["tv"])


def test_any_format_gives_the_same_scores(folder, tmp_path):
    found = {}
    for name in ("out.parquet", "out.csv", "out.jsonl"):
        done = call(
            "score", "nbc.robustq", "train.csv", "-o", tmp_path / name, "--keep", "id", cwd=folder
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        assert "300 rows" in done.stderr
    found["parquet"] = pq.read_table(tmp_path / "out.parquet").to_pylist()
    text = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()})
    found["csv"] = pyarrow.csv.read_csv(tmp_path / "out.csv", convert_options=text).to_pylist()
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    found["jsonl"] = [json.loads(line) for line in lines]
    assert found["parquet"] == found["csv"] == found["jsonl"]
    assert list(found["csv"][0]) == [
        *("row", "id", "prediction", "probability", "runner_up", "robustness_epsilon"),
        *("tipping_class_epsilon", "robustness_tv", "tipping_class_tv", "robustness_chi2"),
        "tipping_class_chi2",
    ]
    assert found["csv"][7]["id"] == "00007"
    assert [row["row"] for row in found["csv"]] == list(range(1, ROWS + 1))
    model = robustq.load(folder / "nbc.robustq")
    known = model.assess(pq.read_table(folder / "train.parquet"))
    assert [row["prediction"] for row in found["csv"]] == known.prediction.tolist()
    np.testing.assert_allclose(
        [row["robustness_tv"] for row in found["csv"]], known.robustness["tv"], rtol=1e-12
    )


def test_pipes_in_and_out(folder):
    content = (folder / "train.csv").read_text()
    done = run(
        "score", "nbc.robustq", "-", "-o", "-", "--perturbation", "tv", cwd=folder, input=content
    )
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == ROWS + 1
    assert lines[0] == (
        '"row","prediction","probability","runner_up","robustness_tv","tipping_class_tv"'
    )
    kept = run("score", "nbc.robustq", "-", "-o", "-", "--keep-all", cwd=folder, input=content)
    assert kept.stdout.startswith('"row","id","amount","purpose","age","outcome","prediction"')
    assert len(kept.stdout.splitlines()) == ROWS + 1
    fitted = run(
        "fit", "-", "--target", "outcome", "-o", "piped.robustq", cwd=folder, input=content
    )
    assert fitted.returncode == 0


def test_a_reader_that_has_seen_enough_is_no_error(folder):
    command = f"{sys.executable} -m robustq score nbc.robustq train.csv -o - | head -2"
    done = subprocess.run(  # noqa: PLW1510, S602
        command, shell=True, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


def test_a_threshold_of_ones_own_and_a_ball_of_ones_own(folder, tmp_path):
    (folder / "my_balls.py").write_text(
        "from robustq.perturbations import TotalVariation\n"
        "class Mine(TotalVariation):\n    name = 'mine'\n"
    )
    done = run(
        *("score", "nbc.robustq", "train.parquet", "-o", tmp_path / "o.parquet"),
        *("--perturbation", "my_balls:Mine", "--perturbation", "tv", "--min-robustness", "0.02"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "o.parquet")
    np.testing.assert_allclose(
        table["robustness_mine"].to_numpy(), table["robustness_tv"].to_numpy(), rtol=1e-9
    )
    accepted = table["robustness_mine"].to_numpy() >= 0.02
    assert table["accepted"].to_pylist() == accepted.tolist()


def test_a_calibrated_gate_goes_into_the_model(folder, tmp_path):
    done = call(
        *("fit", "train.csv", "--target", "outcome", "--drop", "id", "--max-error", "0.3"),
        *("--confidence", "0.8", "--holdout", "0.5", "-o", "gated.robustq"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "Gate: accepts" in done.stdout
    gate = robustq.load(folder / "gated.robustq").training_["gate"]
    assert gate["bound"] == 0.3
    said = " ".join(done.stdout.split())
    assert "rows kept for this choice alone (AU-ARC: u_max" in said
    assert "What could be promised with 80% confidence" in said
    call(
        "score",
        "gated.robustq",
        "train.csv",
        "-o",
        tmp_path / "o.parquet",
        "--perturbation",
        "chi2",
        cwd=folder,
    )
    table = pq.read_table(tmp_path / "o.parquet")
    known = Gate.from_dict(gate)
    needed = known.ranking.neighbourhoods
    scores = {f"r_{n}": table[f"robustness_{n}"].to_numpy() for n in needed}
    accepted = known.accepts(scores | {"u_max": table["probability"].to_numpy() - 1.0})
    assert table["accepted"].to_pylist() == accepted.tolist()
    assert accepted.sum() > 0
    done = call(
        *("fit", "train.csv", "--target", "outcome", "--max-error", "0.0001", "-o", "none.robustq"),
        cwd=folder,
    )
    assert "nothing will be accepted" in " ".join(done.stdout.split())


def test_neighbourhoods_go_wherever_a_ball_does(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "own_balls.py").write_text(
        "from robustq.perturbations import TotalVariation\n"
        "class Mine(TotalVariation):\n    name = 'mine'\n"
    )
    out = tmp_path / "o.parquet"
    done = call(
        *("score", "forest.robustq", "train.csv", "-o", out, "--perturbation", "tv_all"),
        *("--perturbation", "tv_rows,own_balls:Mine_all", "--min-robustness", "0.1"),
    )
    assert done.returncode == 0, done.output
    table = pq.read_table(out)
    assert table.column_names[4:] == [
        *("robustness_tv_all", "tipping_class_tv_all", "robustness_tv_rows"),
        *("tipping_class_tv_rows", "robustness_mine_all", "tipping_class_mine_all", "accepted"),
    ]
    everything = table["robustness_tv_all"].to_numpy()
    np.testing.assert_allclose(table["robustness_mine_all"].to_numpy(), everything, rtol=1e-9)
    assert table["accepted"].to_pylist() == (everything >= 0.1).tolist()
    count = int((everything >= 0.1).sum())
    assert f"{count} of {ROWS} predictions accepted ({count / ROWS:.1%})" in done.stderr
    names = ("--indicators", "r_tv,r_tv_all,own_balls:Mine_rows", "--perturbation", "tv_all")
    done = call(
        *("evaluate", "forest.robustq", "train.csv", "-o", tmp_path / "r.html", "--json", *names)
    )
    assert done.returncode == 0, done.output
    told = json.loads(done.stdout)
    assert list(told["indicators"]) == ["r_tv", "r_tv_all", "r_mine_rows"]
    assert told["ball"] == "tv_all"
    assert told["least"][0]["robustness"] == pytest.approx(everything.min())
    assert "your own data decides" in told["remarks"][0].lower()


def test_a_gate_may_go_by_any_neighbourhood(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    gated = tmp_path / "gated.robustq"
    done = call(
        *("fit", "train.csv", "--target", "outcome", "--drop", "id", "--max-error", "0.3"),
        *("--confidence", "0.8", "--holdout", "0.5", "--perturbation", "tv_all", "-o", gated),
    )
    assert done.returncode == 0, done.output
    assert "those with r_tv_all above" in " ".join(done.stdout.split())
    gate = robustq.load(gated).training_["gate"]
    assert gate["indicators"] == ["r_tv_all"]
    done = call("score", gated, "train.csv", "-o", tmp_path / "o.parquet")
    assert done.returncode == 0, done.output
    table = pq.read_table(tmp_path / "o.parquet")
    accepted = table["robustness_tv_all"].to_numpy() > gate["above"]
    assert table["accepted"].to_pylist() == accepted.tolist()


def test_gates_of_older_models_are_obeyed(folder, tmp_path):
    model = robustq.load(folder / "nbc.robustq")
    model.training_["gate"] = {"ball": "chi2", "above": 0.01, "max_error": 0.1, "accepted": 0.5}
    model.save(tmp_path / "old.robustq")
    out = tmp_path / "o.parquet"
    data = folder / "train.csv"
    done = call("score", tmp_path / "old.robustq", data, "-o", out, "--perturbation", "tv")
    assert done.returncode == 0, done.output
    table = pq.read_table(out)
    accepted = table["robustness_chi2"].to_numpy() > 0.01
    assert table["accepted"].to_pylist() == accepted.tolist()


def test_any_parameter_can_be_set(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    out = tmp_path / "m.robustq"
    fit = ("fit", "train.csv", "--target", "outcome", "--drop", "id", "--no-holdout", "-o", out)
    done = call(
        *(*fit, "--model", "gef", "--trees", "4", "--max-depth", "none"),
        *("--option", "min_samples_leaf=5", "--option", "criterion=entropy"),
        *("--option", "max_features=null", "--option", "bootstrap=false", "--seed", "3"),
    )
    assert done.returncode == 0, done.output
    given = robustq.load(out).get_params()
    assert given["n_estimators"] == 4
    assert given["max_depth"] is None
    assert given["max_features"] is None
    assert given["bootstrap"] is False
    assert (given["min_samples_leaf"], given["criterion"]) == (5, "entropy")
    assert (given["random_state"], given["leaves"], given["smoothing"]) == (3, None, None)
    done = call(*fit, "--model", "naive_bayes", "--bins", "4", "--option", "class_prior=[0.5,0.5]")
    assert done.returncode == 0, done.output
    model = robustq.load(out)
    assert (model.n_bins, model.smoothing, model.class_prior) == (4, "cv", [0.5, 0.5])
    assert len(model.encoding_.columns[0].categories) == 4
    assert model.model_.class_probs.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("model", ["nbc", "forest"])
def test_the_same_seed_and_data_give_the_same_bytes(folder, tmp_path, monkeypatch, model):
    monkeypatch.chdir(folder)
    fit = ("fit", "train.csv", "--target", "outcome", "--model", model, "--seed", "5")
    contents = []
    for threads in ("1", "2"):
        out = tmp_path / f"{threads}.robustq"
        done = call(*fit, "--max-error", "0.4", "-o", out, env={"ROBUSTQ_THREADS": threads})
        assert done.returncode == 0, done.output
        contents.append(out.read_bytes())
    again = run(*fit, "--max-error", "0.4", "-o", tmp_path / "again.robustq", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert contents[0] == contents[1] == (tmp_path / "again.robustq").read_bytes()
    other = tmp_path / "other.robustq"
    call(*fit[:-1], "6", "--max-error", "0.4", "-o", other)
    assert other.read_bytes() != contents[0]


def test_a_number_of_threads_that_is_none_is_explained(folder, tmp_path):
    done = call(
        *("score", folder / "nbc.robustq", folder / "train.csv", "-o", tmp_path / "o.csv"),
        env={"ROBUSTQ_THREADS": "many"},
    )
    assert done.returncode == 2
    assert "ROBUSTQ_THREADS must be a whole number from 1, got 'many'" in explain(done)
    assert list(tmp_path.iterdir()) == []


def test_a_model_file_cannot_choose_what_is_imported(folder, tmp_path):
    (tmp_path / "payload.py").write_text("open('ran', 'w')\n")
    model = robustq.load(folder / "nbc.robustq")
    model.training_["gate"] = {"ball": "payload:X", "above": 0.1}
    model.save(tmp_path / "evil.robustq")
    done = run("score", "evil.robustq", folder / "train.csv", "-o", "o.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown indicator 'r_payload:X'" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_evaluate_and_score_agree(folder, tmp_path):
    rows = [f"{f},{'y' if f == '1.10' else 'n'}" for f in ("1.10", "1.20", "1.2.3")] * 30
    (tmp_path / "train.csv").write_text("f,label\n" + "\n".join(rows) + "\n")
    some = [row for row in rows if "1.2.3" not in row]
    (tmp_path / "test.csv").write_text("f,label\n" + ",\n" * 3 + "\n".join(some) + "\n")
    call("fit", "train.csv", "--target", "label", "--model", "nbc", "-o", "m", cwd=tmp_path)
    told = json.loads(
        call("evaluate", "m", "test.csv", "-o", "r.html", "--json", cwd=tmp_path).stdout
    )
    assert told["rows"] == len(some)
    assert told["accuracy"] == 1.0
    # The first three rows have no label: the rows are those of the file.
    assert min(item["row"] for item in told["least"]) >= 4


def test_a_column_dropped_twice_is_dropped_once(folder):
    done = call(
        *("fit", "train.csv", "--target", "outcome", "--drop", "id,id", "--drop", "id"),
        *("--no-holdout", "-o", "dropped.robustq"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert robustq.load(folder / "dropped.robustq").encoding_.names == ("amount", "purpose", "age")


def test_nothing_that_is_read_is_written_over(folder, tmp_path):
    (tmp_path / "data").mkdir()
    content = (folder / "train.csv").read_text()
    (tmp_path / "data" / "a.csv").write_text(content)
    for arguments in (
        ("evaluate", folder / "nbc.robustq", "data", "-o", "data/a.csv"),
        ("fit", "data", "--target", "outcome", "-o", "data/a.csv"),
        ("score", folder / "nbc.robustq", "data", "-o", "data/a.csv"),
    ):
        done = call(*arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert "would be written over" in done.stderr
    assert (tmp_path / "data" / "a.csv").read_text() == content


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_does_not_arrive_is_an_error(folder):
    with Path("/dev/full").open("w") as full:
        for arguments in (
            ("score", "nbc.robustq", "train.csv", "-o", "-"),
            ("inspect", "nbc.robustq", "--json"),
            ("--help",),
        ):
            command = [sys.executable, "-m", "robustq", *arguments]
            done = subprocess.run(  # noqa: PLW1510, S603
                command, cwd=folder, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True
            )
            assert done.returncode == 2
            assert "went wrong" not in done.stderr
            assert "Traceback" not in done.stderr


def test_keeping_all_columns_loses_none(folder, tmp_path):
    content = (folder / "train.csv").read_text().splitlines()
    (tmp_path / "a.csv").write_text("\n".join(content) + "\n")
    wide = [content[0] + ",more", *(line + ",x" for line in content[1:])]
    (tmp_path / "b.csv").write_text("\n".join(wide) + "\n")
    model = folder / "nbc.robustq"
    done = call("score", model, "a.csv", "b.csv", "-o", "o.csv", "--keep-all", cwd=tmp_path)
    assert done.returncode == 2
    assert "b.csv has a column 'more' that a.csv lacks" in done.stderr
    assert not (tmp_path / "o.csv").exists()


def test_a_model_in_json_is_scored_and_evaluated(folder, tmp_path):
    (tmp_path / "m.json").write_text(call("inspect", "nbc.robustq", "--json", cwd=folder).stdout)
    data = folder / "train.csv"
    for arguments in (
        ("score", "m.json", data, "-o", "o.csv"),
        ("evaluate", "m.json", data, "--target", "outcome"),
    ):
        done = call(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_evaluate_writes_a_page_and_numbers(folder, tmp_path):
    page = tmp_path / "report.html"
    done = call("evaluate", "forest.robustq", "train.csv", "-o", page, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["rows"] == ROWS
    assert set(told["indicators"]) == {
        *("r_epsilon", "r_tv", "r_chi2", "r_pari_mutuel", "r_odds_ratio", "r_kl"),
        *("r_epsilon_all", "r_tv_all", "u_marg", "u_max", "u_H"),
    }
    assert len(told["least"]) == 10
    assert told["credal"]["delta"][0] == 0.0
    assert told["credal"]["determinacy"] == sorted(told["credal"]["determinacy"], reverse=True)
    assert all(item["tipping_class"] != item["prediction"] for item in told["least"])
    text = page.read_text()
    assert "http" not in text.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert f"{100 * told['accuracy']:.1f} %" in text
    assert "Sets of classes" in text


def test_inspect_shows_and_exports(folder, tmp_path):
    done = call("inspect", "forest.robustq", cwd=folder)
    assert "GenerativeForestClassifier" in done.stdout
    assert "25 with" in done.stdout
    assert "car, home, other" in done.stdout
    document = call("inspect", "forest.robustq", "--json", cwd=folder).stdout
    (folder / "forest.json").write_text(document)
    again = call("fit", "--from-json", "forest.json", "-o", "again.robustq", cwd=folder)
    assert again.returncode == 0, again.stderr
    model = robustq.load(folder / "again.robustq")
    assert model.to_dict() == json.loads(document)
    assert robustq.load(folder / "forest.json").to_dict() == json.loads(document)


def test_the_demo_tells_the_story(tmp_path):
    done = run("demo", cwd=tmp_path, env={"ROBUSTQ_DATA": ""})
    assert done.returncode == 0, done.stderr
    assert "naive Bayes: accuracy 7" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.split()[:1] in (["good"], ["bad"])]
    assert len(rows) == 10
    # The README shows what one really sees.
    shown = [line.rstrip() for line in done.stdout.splitlines()[:-2]]
    assert "\n".join(shown).strip() in (ROOT / "README.md").read_text()
    assert (tmp_path / "robustq-demo" / "report.html").is_file()
    assert robustq.load(tmp_path / "robustq-demo" / "forest.robustq").predict_proba is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "nowhere.csv", "--target", "outcome", "-o", "x"), "nowhere.csv does not exist"),
        (
            ("fit", "train.csv", "--target", "nothing", "-o", "x"),
            "no column 'nothing', which --target names; it has 'id'",
        ),
        (("fit", "train.csv", "--target", "amount", "-o", "x"), "a classifier predicts classes"),
        (("fit", "train.csv", "-o", "x"), "--target"),
        (("fit", "train.csv", "--target", "outcome"), "--output"),
        (
            ("fit", "train.csv", "--target", "outcome", "-o", "no/where/x"),
            "there is no folder no/where",
        ),
        (("fit", "train.csv", "--target", "outcome", "-o", "train.csv"), "would be written over"),
        (
            ("fit", "train.csv", "--target", "outcome", "-o", "x", "--model", "svm"),
            "unknown model 'svm'; known are nbc",
        ),
        ((*FIT, "--option", "n_estimator=3"), "no parameter 'n_estimator'; it has bootstrap"),
        ((*FIT, "--option", "estimators=3"), "did you mean 'n_estimators'?"),
        ((*FIT, "--option", "min_samples_leaf=0"), "min_samples_leaf must be"),
        ((*FIT, "--option", "max_depth"), "--option takes name=value, as in max_depth=4"),
        ((*FIT, "--option", "purity=1", "--option", "purity=1"), "--option purity is given twice"),
        ((*FIT, "--trees", "3", "--option", "n_estimators=3"), "say the same thing"),
        ((*FIT, "--option", "numeric=age"), "columns are named by --numeric"),
        ((*FIT, "--bins", "5"), "--bins is not for generative forest; it has --smoothing, --trees"),
        ((*FIT, "--model", "nbc", "--trees", "5"), "--trees is not for naive Bayes"),
        ((*FIT, "--trees", "0"), "--trees must be a whole number of at least 1, got 0"),
        (
            ("evaluate", "forest.robustq", "train.csv", "-o", "r.pdf"),
            "choose a name that ends in .html; the browser prints it as PDF",
        ),
        (("evaluate", "forest.robustq", "train.csv", "-o", "report"), "that ends in .html"),
        (("demo", "-o", "x.html"), "x.html would be a folder"),
        (("reproduce", "-o", "x.html"), "x.html would be a folder"),
        ((*FIT, "--max-error", "2"), "--max-error must lie between 0 and 1"),
        ((*FIT, "--max-error", "0.1", "--no-holdout"), "--max-error needs rows to calibrate with"),
        ((*FIT, "--max-error", "0.1", "--perturbation", "tw"), "did you mean 'tv'"),
        (
            (*FIT, "--smoothing", "1", "--max-error", "0.1", "--perturbation", "tv_joint"),
            "a density and no mass",
        ),
        (
            ("evaluate", "nbc.robustq", "train.csv", "-o", "o.html", "--indicators", "r_tv_al"),
            "did you mean 'r_tv_all'",
        ),
        (
            ("fit", "train.csv", "--target", "outcome", "-o", "x", "--drop", "z"),
            "no column 'z', which --drop names",
        ),
        (("fit", "train.csv", "--target", "outcome", "-o", "x", "--holdout", "2"), "--holdout"),
        (("fit", "train.csv", "--target", "outcome", "-o", "x", "--numeric", "purpose"), "purpose"),
        (("fit", "train.csv", "--target", "outcome", "-o", "x", "--seed", "-1"), "--seed must be"),
        (
            ("score", "nbc.robustq", "train.csv", "-o", "o.csv", "--min-robustness", "nan"),
            "a number",
        ),
        (("fit", "short.csv", "--target", "b", "-o", "x"), "short.csv, row 3: 1 values where 2"),
        (("fit", "empty.csv", "--target", "b", "-o", "x"), "empty.csv is empty"),
        (("fit", "header.csv", "--target", "b", "-o", "x"), "no row has a value in column 'b'"),
        (("fit", "twice.csv", "--target", "b", "-o", "x"), "two columns named 'b'"),
        (("score", "nowhere", "train.csv", "-o", "o.csv"), "nowhere cannot be read"),
        (("score", "train.csv", "train.csv", "-o", "o.csv"), "train.csv: "),
        (("score", "nbc.robustq", "train.csv", "-o", "o.docx"), "no ending that tells a format"),
        (
            ("score", "nbc.robustq", "train.csv", "-o", "o.csv", "--keep", "z"),
            "no column 'z', which is to",
        ),
        (("score", "nbc.robustq", "twice.csv", "-o", "o.csv"), "two columns named 'b'"),
        (("score", "nbc.robustq", "short.csv", "-o", "o.csv"), "short.csv has no column 'amount'"),
        (("score", "nbc.robustq", "train.csv", "-o", "nbc.robustq.csv/o.csv"), "cannot be written"),
        (
            ("score", "nbc.robustq", "train.csv", "-o", "o.csv", "--perturbation", "tw"),
            "did you mean 'tv'",
        ),
        (
            ("score", "nbc.robustq", "train.csv", "-o", "o.csv", "--perturbation", "os:path"),
            "no Perturbation",
        ),
        (("score", "nbc.robustq", "bad*.csv", "-o", "o.csv"), "matches no file"),
        (
            ("evaluate", "nbc.robustq", "header.csv", "--target", "b", "-o", "o.html"),
            "no row with a label",
        ),
        (
            ("evaluate", "nbc.robustq", "train.csv", "--target", "purpose", "-o", "o.html"),
            "which the model does not know",
        ),
        (("inspect", "train.csv"), "train.csv: "),
        (("wrong",), "No such command"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_use_is_explained_and_writes_nothing(folder, arguments, message, monkeypatch):
    for name, content in (
        ("short.csv", "a,b\n1,2\n3\n"),
        ("empty.csv", ""),
        ("header.csv", "a,b\n"),
        ("twice.csv", "b,b\n1,2\n"),
    ):
        (folder / name).write_text(content)
    before = {path.name for path in folder.iterdir()}
    monkeypatch.chdir(folder)
    done = call(*arguments)
    assert done.returncode == 2, done.output
    assert message in explain(done)
    assert "Traceback" not in done.stderr
    assert {path.name for path in folder.iterdir()} == before


def test_every_command_has_help_with_an_example():
    listed = run("--help").stdout
    for command in ("demo", "fit", "score", "evaluate", "inspect", "reproduce", "datasets"):
        assert command in listed
        done = call(command, "--help")
        assert done.returncode == 0
        assert f"Example: robustq {command}" in " ".join(done.stdout.split())


def test_help_is_there_at_once():
    script = (
        "import sys, time; start = time.perf_counter(); import robustq.cli.main;"
        "print([n for n in ('numba', 'sklearn', 'pyarrow', 'matplotlib', 'scipy', 'pandas')"
        " if n in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


@contextmanager
def feeding(folder, output, limit=None):
    """Score rows from a pipe that does not end, and go on when something has been written."""
    command = [sys.executable, "-m", "robustq", "score", "nbc.robustq", "-", "-o", str(output)]
    with subprocess.Popen(  # noqa: S603
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=limit,  # noqa: PLW1509
    ) as process:
        try:
            write_rows(process, folder, output, until_ended=limit is not None)
            yield process
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()


def write_rows(process, folder, output, *, until_ended):
    header, *lines = (folder / "train.csv").read_text().splitlines(keepends=True)
    block = "".join(lines * 20).encode()
    deadline = time.monotonic() + 120
    with suppress(BrokenPipeError):
        process.stdin.write(header.encode())
        while process.poll() is None and time.monotonic() < deadline:
            process.stdin.write(block)
            process.stdin.flush()
            parts = list(output.parent.glob(".*.part"))
            if not until_ended and any(part.stat().st_size > 10_000 for part in parts):
                return


def test_ctrl_c_leaves_nothing(folder, tmp_path):
    with feeding(folder, tmp_path / "out.csv") as process:
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        error = process.stderr.read().decode()
    assert "Interrupted." in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_a_request_to_end_leaves_nothing(folder, tmp_path):
    with feeding(folder, tmp_path / "out.csv") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_killed_it_leaves_no_output_under_its_name(folder, tmp_path):
    (tmp_path / "out.csv").write_text("what was there before")
    with feeding(folder, tmp_path / "out.csv") as process:
        process.kill()
        process.wait(60)
    assert (tmp_path / "out.csv").read_text() == "what was there before"


def shrink_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_DISK, SMALL_DISK))


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_a_full_disk_is_explained(folder, tmp_path, name):
    with feeding(folder, tmp_path / name, shrink_disk) as process:
        assert process.wait(60) == 2
        error = process.stderr.read().decode()
    assert f"{name} cannot be written" in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_model(folder, tmp_path):
    done = run(
        *("fit", "train.csv", "--target", "outcome", "-o", tmp_path / "m.robustq"),
        cwd=folder,
        preexec_fn=shrink_disk,
    )
    assert done.returncode == 2
    assert "m.robustq cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder nobody can write to")
def test_an_unwritable_folder_is_explained(folder):
    for arguments in (
        ("score", "nbc.robustq", "train.csv", "-o", "/proc/out.csv"),
        ("fit", "train.csv", "--target", "outcome", "-o", "/proc/model"),
        ("evaluate", "nbc.robustq", "train.csv", "-o", "/proc/report.html"),
        ("demo", "-o", "/proc/demo"),
    ):
        done = call(*arguments, cwd=folder)
        assert done.returncode == 2, done.stderr
        assert "cannot be written" in explain(done)


def test_debug_shows_the_traceback(folder):
    done = run("--debug", "score", "nbc.robustq", "nowhere.csv", "-o", "o.csv", cwd=folder)
    assert "Traceback" in done.stderr
    assert done.returncode != 0


def test_a_folder_and_a_pattern_are_scored_in_order(folder, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    table = pq.read_table(folder / "train.parquet")
    pyarrow.csv.write_csv(table.slice(0, 100), parts / "a.csv")
    pq.write_table(table.slice(100, 100), parts / "b.parquet")
    with pa.output_stream(str(parts / "c.csv.gz"), compression="gzip") as stream:
        pyarrow.csv.write_csv(table.slice(200), stream)
    whole = call(
        "score", "forest.robustq", "train.csv", "-o", tmp_path / "whole.parquet", cwd=folder
    )
    assert whole.returncode == 0, whole.stderr
    done = call(
        "score", "forest.robustq", parts, "-o", tmp_path / "o.parquet", "--keep-all", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    scored, known = pq.read_table(tmp_path / "o.parquet"), pq.read_table(tmp_path / "whole.parquet")
    assert scored.select(known.column_names).to_pylist() == known.to_pylist()
    assert [int(i) for i in scored["id"].to_pylist()] == list(range(ROWS))


def test_a_column_called_row_is_the_key_itself(folder, tmp_path):
    text = (folder / "train.csv").read_text().replace('"id"', '"row"', 1)
    (tmp_path / "keyed.csv").write_text(text)
    out = tmp_path / "o.csv"
    done = call(
        *("score", "nbc.robustq", tmp_path / "keyed.csv", "-o", out, "--keep", "row"), cwd=folder
    )
    assert done.returncode == 0, done.stderr
    header, first, *_ = out.read_text().splitlines()
    assert header.startswith('"row","prediction"')
    assert first.startswith('"00000",')


def test_evaluate_warns_of_rows_seen_in_training_and_of_unknown_values(folder, tmp_path):
    page = tmp_path / "r.html"
    seen = call("evaluate", "nbc.robustq", "train.csv", "-o", page, "--json", cwd=folder)
    assert seen.returncode == 0, seen.stderr
    caution = f"{ROWS} of {ROWS} rows are equal to rows that the model has learned from"
    assert caution in explain(seen)
    assert caution in page.read_text()
    assert json.loads(seen.stdout)["cautions"][0].startswith(caution)
    assert "sketch" not in json.loads(seen.stdout)["training"]
    table = pq.read_table(folder / "train.parquet").slice(0, 50)
    other = ["boat"] * 30 + table["purpose"].to_pylist()[30:]
    ages = [150 + i for i in range(50)]
    table = table.set_column(2, "purpose", [other]).set_column(3, "age", [ages])
    pq.write_table(table, tmp_path / "new.parquet")
    new = call(
        "evaluate", "nbc.robustq", tmp_path / "new.parquet", "-o", page, "--json", cwd=folder
    )
    assert json.loads(new.stdout)["unknown"] == {"column 'purpose'": 30}
    assert "Values never seen in training, taken as missing: 30 in column 'purpose'" in explain(new)
    scored = call(
        "score", "nbc.robustq", tmp_path / "new.parquet", "-o", tmp_path / "o.csv", cwd=folder
    )
    assert "Values never seen in training, taken as missing: 30 in column 'purpose'" in explain(
        scored
    )
    assert "sketch" not in call("inspect", "nbc.robustq", cwd=folder).stdout


def test_arff_is_fitted_and_scored_with_sets(folder, tmp_path):
    rows = [
        f"{'car' if i % 3 else 'home'},{i % 7},{'bad' if i % 5 < 2 else 'good'}" for i in range(80)
    ]
    head = "@relation r\n@attribute purpose {car,home}\n@attribute n numeric\n"
    text = head + "@attribute outcome {bad,good}\n@data\n" + "\n".join(rows) + "\n"
    (tmp_path / "t.arff").write_text(text)
    done = call("fit", "t.arff", "--target", "outcome", "--model", "nbc", "-o", "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    more = ("--delta", "1", "--perturbation", "idm", "--keep", "n")
    done = call("score", "m", "t.arff", "-o", "out.csv", *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = pyarrow.csv.read_csv(tmp_path / "out.csv").to_pydict()
    assert list(table)[-1] == "classes_idm"
    assert set(table["classes_idm"]) <= {"bad", "good", "bad|good"}
    for size, classes in zip(table["robustness_idm"], table["classes_idm"], strict=True):
        assert ("|" in classes) == (size <= 1.0)
    far = ("--delta", "1.5", "--perturbation", "tv")
    done = call("score", "m", "t.arff", "-o", "no.csv", *far, cwd=tmp_path)
    assert done.returncode == 2
    assert "--delta" in explain(done)
    assert not (tmp_path / "no.csv").exists()
    (tmp_path / "bad.arff").write_text(text + "boat,1,bad\n")
    done = call("score", "m", "bad.arff", "-o", "no.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "line 86, column 'purpose'" in explain(done)
    assert not (tmp_path / "no.csv").exists()
