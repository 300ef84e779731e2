"""A new family is one file and a row in each of two tables: everything else then works with it."""

import json
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.optimize import bisect
from typer.testing import CliRunner

import robustq
from robustq import indicators
from robustq.cli.main import app
from robustq.experiments import Plan, reproduce
from robustq.families import table
from robustq.report import write_reproduction

from . import toy

ROWS = 200
FILE = Path(toy.__file__)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """The two rows: all that is added outside the family's own file."""
    monkeypatch.setitem(table.KINDS, "toy", toy.KIND)
    monkeypatch.setitem(table.RECIPES, "toy", toy.RECIPE)


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    colour, size = rng.choice(["red", "green", "blue"], ROWS), rng.normal(size=ROWS).round(2)
    made = pa.table({"colour": colour, "size": size, "label": np.where(size > 0, "big", "small")})
    pyarrow.csv.write_csv(made, tmp_path / "data.csv")
    return tmp_path


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def fit(folder, *options):
    run("fit", folder / "data.csv", "--target", "label", "-o", folder / "m", *options)
    return folder / "m"


def test_it_is_small_and_nothing_else_knows_it():
    assert len(FILE.read_text().splitlines()) < 150
    # Nor does anything outside the families know one of them: the tables do.
    source = Path(robustq.__file__).parent
    others = [path for path in source.rglob("*.py") if source / "families" not in path.parents]
    texts = {path: path.read_text() for path in others}
    assert len(texts) > 50
    for family in ("families.naive_bayes", "families.forest", "families import"):
        assert not [path for path, text in texts.items() if family in text]


def test_without_a_row_in_the_table_it_is_not_saved(monkeypatch, tmp_path):
    model = toy.ToyClassifier(random_state=0).fit([["a"], ["b"], ["b"]], [0, 1, 1])
    document = model.to_dict()
    monkeypatch.delitem(table.KINDS, "toy")
    with pytest.raises(robustq.UnsupportedError, match="ToyClassifier cannot be saved"):
        model.save(tmp_path / "m")
    with pytest.raises(robustq.UnsupportedError, match="cannot be made of a document"):
        toy.ToyClassifier.from_dict(document)
    assert list(tmp_path.iterdir()) == []


def test_it_is_fitted_saved_loaded_and_inspected(data):
    text = fit(data, "--model", "groups", "--option", "n_groups=2", "--seed", "3")
    model = robustq.load(data / "m")
    assert isinstance(model, toy.ToyClassifier)
    assert (model.n_groups, model.smoothing, model.random_state) == (2, 0.5, 3)
    assert model.training_["rows"] == ROWS
    assert "r_tv_all" in model.training_["holdout"]["au_arc"]
    shown = run("inspect", text)
    assert "ToyClassifier" in shown
    assert "groups      2" in shown
    assert "weights, classes, features" in shown
    document = json.loads(run("inspect", data / "m", "--json"))
    again = toy.ToyClassifier.from_dict(document)
    rows = pyarrow.csv.read_csv(data / "data.csv").drop_columns(["label"])
    np.testing.assert_array_equal(again.robustness(rows, "tv"), model.robustness(rows, "tv"))


def test_it_is_scored_gated_and_evaluated(data):
    gate = ("--max-error", "0.4", "--confidence", "0.8", "--perturbation", "epsilon_all")
    fit(data, "--model", "toy", *gate, "--holdout", "0.5")
    run("score", data / "m", data / "data.csv", "-o", data / "out.parquet", "--perturbation", "tv")
    model, scored = robustq.load(data / "m"), pq.read_table(data / "out.parquet")
    known = model.assess(pyarrow.csv.read_csv(data / "data.csv"), ["tv", "epsilon_all"])
    np.testing.assert_array_equal(scored["robustness_tv"].to_numpy(), known.robustness["tv"])
    above = known.robustness["epsilon_all"] > model.training_["gate"]["above"]
    assert scored["accepted"].to_pylist() == above.tolist()
    told = json.loads(
        run("evaluate", data / "m", data / "data.csv", "-o", data / "r.html", "--json")
    )
    assert {"r_tv", "r_tv_all", "u_max"} <= set(told["indicators"])
    assert told["accuracy"] == np.mean(known.prediction == np.array(read_labels(data)))


def read_labels(folder):
    return pyarrow.csv.read_csv(folder / "data.csv")["label"].to_pylist()


def test_it_takes_part_in_an_experiment(tmp_path):
    names = ("r_tv", "r_epsilon_all", "u_max", "u_t")
    plan = Plan(*(("german",), ("groups", "nbc"), names), runs=1, most_tests=30, bootstrap_models=2)
    found = reproduce(plan, tmp_path, workers=1)
    assert found.tables["toy"].names == names
    assert {finding["model"] for finding in found.summary["findings"]} == {"nbc"}
    page = write_reproduction([found], tmp_path).read_text()
    assert "Toy of groups" in page
    assert (tmp_path / "table_toy.md").is_file()


# Against brute force: every corner of every ball, in every combination.


def corners(ball, q, delta):
    """Return mass functions among which every linear function on a ball is smallest."""
    if ball == "epsilon":
        return [(1 - delta) * q + delta * corner for corner in np.eye(len(q))]
    return [move(q, order, delta) for order in permutations(range(len(q)))]


def move(q, order, delta):
    """Take as much from the first as can be had, then from the next; give it to the last."""
    p = q.copy()
    for outcome in order[:-1]:
        taken = min(p[outcome], delta)
        p[outcome] -= taken
        p[order[-1]] += taken
        delta -= taken
    return p


def lowest(model, row, best, rival, ball, delta, parts):
    """Return the smallest p(best, f) − p(rival, f) over all corners."""

    def choose(q, part):
        return corners(ball, q, delta) if part in parts else [q]

    groups = range(len(model.weights))
    inside = []
    for g in groups:
        gaps = [q[best] - q[rival] for q in choose(model.class_probs[g], "classes")]
        values = [
            [q[code] for q in choose(model.feature_probs[g, i, :size], "features")]
            for i, (code, size) in enumerate(zip(row, model.sizes, strict=True))
            if code >= 0
        ]
        inside.append({np.prod(one) for one in product(gaps, *values)})
    return min(
        float(np.dot(weights, value))
        for weights in choose(model.weights, "weights")
        for value in product(*map(sorted, inside))
    )


@pytest.mark.parametrize(
    ("name", "ball", "parts"),
    [
        ("tv", "tv", {"weights"}),
        ("epsilon", "epsilon", {"weights"}),
        ("tv_all", "tv", set(toy.PARTS)),
        ("epsilon_all", "epsilon", set(toy.PARTS)),
    ],
)
def test_robustness_is_what_brute_force_finds(name, ball, parts):
    rng = np.random.default_rng(5)
    X = np.stack([rng.integers(0, 3, 40), rng.integers(0, 2, 40)], axis=1).astype(object)
    y = np.array(["a", "b"])[(X[:, 0] + X[:, 1] + rng.integers(0, 2, 40) > 2).astype(int)]
    fitted = toy.ToyClassifier(smoothing=0.1, random_state=0).fit(X, y)
    rows: list[list[int | None]] = [[0, 0], [2, 1], [1, 1], [1, None], [None, 0]]
    found = fitted.assess(rows, [name])
    for row, prediction, size in zip(rows, found.prediction, found.robustness[name], strict=True):
        best = fitted.classes_.tolist().index(prediction)
        codes = [-1 if value is None else value for value in row]

        def margin(delta, codes=codes, best=best):
            return lowest(fitted.model_, codes, best, 1 - best, ball, delta, parts)

        if margin(1.0) > 0.0:
            assert size == np.inf
        else:
            assert size == pytest.approx(bisect(margin, 0.0, 1.0, xtol=1e-13), abs=1e-9)


def test_the_joint_and_its_closed_form():
    X, y = [["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"]] * 5, ["p", "q", "p", "q"] * 5
    fitted = toy.ToyClassifier(random_state=0).fit(X, y)
    joint = np.exp(fitted.predict_joint_log_proba(X[:4]))
    lead = np.abs(joint[:, 0] - joint[:, 1])
    np.testing.assert_allclose(fitted.robustness(X[:4], "tv_joint"), lead / 2, rtol=1e-9)
    scores = indicators.compute(fitted, X[:4], ["r_epsilon_joint", "r_tv_rows"])
    np.testing.assert_allclose(scores["r_epsilon_joint"], lead / (1 + lead), rtol=1e-9)
    assert np.all(scores["r_tv_rows"] > 0)
