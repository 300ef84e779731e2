"""A witness lies in the ball, and no longer prefers the prediction: every ball, family and part."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import robustq
from robustq import (
    BayesianNetworkClassifier,
    GenerativeForestClassifier,
    InputError,
    NaiveBayesClassifier,
    UnsupportedError,
)
from robustq.core import engine
from robustq.core.neighbourhoods import read
from robustq.core.reached import Reached
from robustq.core.recursion import Gamble, oppose
from robustq.core.witness import find_moves
from robustq.families.witnesses import replace_locals
from robustq.perturbations import Perturbation, get
from tests.core.documents import (
    as_table,
    random_forest,
    random_mixture,
    random_naive_bayes,
    random_network,
    random_rows,
)
from tests.families.toy import ToyClassifier
from tests.perturbations.cases import IDS, divergence

# What makes a document, what reads it, whether it becomes a circuit, and the parts to try.
NAIVE = (None, ["prior"], ["features"], ["feature:x0"])
TREES = (None, ["weights"], ["leaf_classes"], ["feature:x1"])
WITHOUT_ROOT = ["weights", "leaf_classes", "leaf_features"]
MODELS: dict[str, Any] = {
    "naive Bayes": (NaiveBayesClassifier, random_naive_bayes, {}, NAIVE),
    "forest": (GenerativeForestClassifier, random_forest, {}, (*TREES, WITHOUT_ROOT)),
    "forest with numbers": (
        *(GenerativeForestClassifier, random_forest, {"numeric": True}),
        (*TREES, WITHOUT_ROOT),
    ),
    "trees of features": (BayesianNetworkClassifier, random_network, {}, NAIVE),
    "any network": (BayesianNetworkClassifier, random_network, {"tree": False}, NAIVE),
    "averaged networks": (BayesianNetworkClassifier, random_mixture, {}, NAIVE),
    "circuit of naive Bayes": (NaiveBayesClassifier, random_naive_bayes, {}, NAIVE),
    "circuit of a forest": (
        *(GenerativeForestClassifier, random_forest, {"trees": 3}),
        ("all", ["root"], *TREES),
    ),
    "circuit of trees of features": (BayesianNetworkClassifier, random_network, {}, NAIVE),
}
TRIES = 4


@cache
def make_case(kind, seed):
    """Return a random model and a row for it, on some tries with missing cells."""
    estimator, make, more, _ = MODELS[kind]
    rng = np.random.default_rng([seed, len(kind)])
    document = make(rng, zeros=0.1 * (seed % 3), zero_rows=0.05, **more)
    # Networks of any kind refuse most rows with missing cells.
    missing = 0.0 if kind == "any network" else 0.3 * (seed % 2)
    table = as_table(document, random_rows(rng, document, 1, missing=missing))
    model = estimator.from_dict(document)
    return (model.to_circuit() if kind.startswith("circuit") else model), table


def list_locals(document):
    """Yield the local mass functions of a document: part, feature, probabilities, rows."""
    return _LISTS[document["kind"]](document)


def _list_naive_bayes(document):
    rows = document["rows"]
    yield "prior", None, document["class_probs"], rows["prior"]
    for i, table in enumerate(document["feature_probs"]):
        for probs, n in zip(table, rows["features"][i], strict=True):
            yield "features", i, probs, n


def _list_forest(document):
    for tree in document["trees"]:
        for node in tree["nodes"]:
            if "weights" in node:
                yield "weights", node["feature"], node["weights"], node["rows"]
                continue
            yield "leaf_classes", None, node["class_probs"], node["rows"]
            for i, probs in enumerate(node["feature_probs"]):
                if isinstance(probs, list):
                    yield "leaf_features", i, probs, node["rows"]


def _list_tables(tables):
    for table in tables:
        own = table["variable"] == "class"
        for probs, n in zip(table["probs"], table["rows"], strict=True):
            yield "prior" if own else "features", None if own else table["variable"], probs, n


def _list_mixture(document):
    yield "prior", None, document["class_probs"], document["rows"]
    for network in document["networks"]:
        yield from _list_tables(network["tables"])


def _list_circuit(document):
    for node in document["nodes"]:
        for key in ("weights", "class_probs", "probs"):
            if key in node:
                yield node["part"], node.get("feature"), node[key], node["rows"]


_LISTS = {
    "naive_bayes": _list_naive_bayes,
    "generative_forest": _list_forest,
    "bayesian_network": lambda document: _list_tables(document["tables"]),
    "network_mixture": _list_mixture,
    "circuit": _list_circuit,
}


def is_perturbed(parts, part, feature, defaults):
    named = defaults if parts is None else parts
    return part is not None and (
        parts == "all" or part in named or (f"feature:x{feature}" in named)
    )


def check_ball(before, after, parts, ball, size, sizes):
    """Assert that every local mass function lies in its ball, and others are left alone."""
    defaults = before.model_.default_parts
    pairs = zip(list_locals(before.to_dict()), list_locals(after.to_dict()), strict=True)
    for (part, feature, old, n), (*_, new, _) in pairs:
        q, p = np.array(old), np.array(new)
        if not is_perturbed(parts, part, feature, defaults) or (sizes and n is None):
            assert np.array_equal(q, p)
            continue
        own = size if sizes is None else float(get(ball).local_size(max(size, 1e-140), n))
        assert divergence(ball, q, p) <= own * (1 + 1e-9) + 1e-9
        assert p.sum() == pytest.approx(1.0, abs=1e-12)


def check_witness(model, table, ball, parts, sizes):
    """Assert what a witness promises; tell whether there is one."""
    assessment = model.assess(table, ball, parts=parts, sizes=sizes)
    ((name, (size,)),) = assessment.robustness.items()
    if np.isinf(size):
        with pytest.raises(UnsupportedError, match="there is no witness"):
            model.witness(table, ball, parts=parts, sizes=sizes)
        return False
    witness = model.witness(table, ball, parts=parts, sizes=sizes)
    assert type(witness) is type(model)
    check_ball(model, witness, parts, ball, size, sizes)
    classes = model.classes_.tolist()
    best = classes.index(assessment.prediction[0])
    rival = classes.index(assessment.tipping_class[name][0])
    joint = witness.predict_joint_log_proba(table)[0]
    scale = model.predict_joint_log_proba(table)[0, best]
    # Rounding may leave something of what there was, where next to nothing is left of it.
    if np.isfinite(scale):
        assert np.exp(joint[best] - scale) <= np.exp(joint[rival] - scale) * (1 + 1e-9) + 1e-10
    return True


every_kind = pytest.mark.parametrize("kind", MODELS)
every_ball = pytest.mark.parametrize("ball", IDS)
every_size = pytest.mark.parametrize("sizes", [None, "rows"])


@every_kind
@every_ball
@every_size
def test_a_witness_lies_in_the_ball_and_no_longer_prefers_the_prediction(kind, ball, sizes):
    found = 0
    for parts in MODELS[kind][-1]:
        for seed in range(TRIES):
            if parts == ["root"] and sizes == "rows":
                continue  # no row is counted there
            model, table = make_case(kind, seed)
            found += check_witness(model, table, ball, parts, sizes)
    assert found > TRIES


@every_kind
@every_ball
@every_size
def test_moves_attain_the_lower_value_that_the_recursion_gives(kind, ball, sizes):
    """Below the robustness too: p(prediction, f) − p(rival, f) is then what it says."""
    found = 0
    for seed in range(TRIES):
        model, table = make_case(kind, seed)
        parts = "all" if kind == "circuit of a forest" else None
        bound = read(ball, parts, sizes).bind(model.model_, model.encoding_.names)
        rows = model._encode_one(table)
        start = engine.quantify(model.model_, rows, [bound])
        size = 0.6 * np.minimum(start.robustness[0], 1.0)
        pair = start.prediction, start.runner_up
        if size[0] == 0.0 or pair[1][0] < 0:
            continue
        (moves,) = find_moves(model.model_, rows, bound, *pair, size)
        moved = model.__class__()
        replaced = replace_locals(model, moves, ball)
        moved._set_model(replaced, model.encoding_, model.classes_)
        check_ball(model, moved, parts, ball, size[0], sizes)
        ((_, evidence),) = model.model_.reach(rows)
        payoff = oppose(*pair, len(model.classes_))
        value = Gamble(Reached(evidence, model.model_.locals, bound), payoff).evaluate(size)
        before = np.exp(model.predict_joint_log_proba(table)[0])
        after = np.exp(moved.predict_joint_log_proba(table)[0])
        best, rival = (int(one[0]) for one in pair)
        expected = np.ldexp(value.mantissa[-1], value.exponent[-1])
        scale = max(before[best], after[best], after[rival])
        assert after[best] - after[rival] == pytest.approx(expected, abs=1e-12 * scale, rel=1e-9)
        assert all(move.distance > 0.0 for move in moves)
        found += len(moves)
    assert found


def test_a_witness_can_be_saved_scored_and_explained(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.choice(["a", "b", "c"], (200, 4))
    y = np.where((X[:, 0] == "a") ^ (rng.random(200) < 0.2), "yes", "no")
    for model in (NaiveBayesClassifier(1.0), GenerativeForestClassifier(5, random_state=0)):
        witness = model.fit(X, y).witness(X[:1], "chi2")
        witness.save(tmp_path / "w.robustq")
        again = robustq.load(tmp_path / "w.robustq")
        assert np.array_equal(again.robustness(X, "tv"), witness.robustness(X, "tv"))
        assert again.get_params() == model.get_params()
        assert witness.robustness(X[:1], "chi2")[0] == pytest.approx(0.0, abs=1e-9)
        assert len(witness.explain(X[:2], "tv")[1].features) == 4
        # The model itself is left alone.
        assert model.robustness(X[:1], "chi2")[0] > 1e-6


def test_a_tie_is_its_own_witness():
    model = NaiveBayesClassifier(1.0).fit([["a"], ["a"]], [0, 1])
    assert model.witness([["a"]]).to_dict() == model.to_dict()
    assert model.explain([["a"]])[0].changes == ()


def test_where_there_is_no_witness_of_the_same_kind_the_error_says_so():
    rng = np.random.default_rng(1)
    X = rng.choice(["a", "b", "c"], (300, 3))
    y = np.where((X[:, 0] == "a") ^ (rng.random(300) < 0.3), "yes", "no")
    model = NaiveBayesClassifier(1.0).fit(X, y)
    with pytest.raises(
        UnsupportedError, match="tv_joint does not perturb the local mass functions"
    ):
        model.witness(X[:1], "tv_joint")
    with pytest.raises(InputError, match="one row, got 300"):
        model.witness(X)
    forest = GenerativeForestClassifier(5, random_state=0).fit(X, y)
    with pytest.raises(UnsupportedError, match=r"moves 'root'.*take parts="):
        forest.witness(X[:1], "tv_all")

    class Plain(Perturbation):
        def lower_expectation(self, q, f, delta):
            return get("tv").lower_expectation(q, f, np.minimum(delta, 1.0))

    with pytest.raises(UnsupportedError, match="Plain gives no minimiser"):
        model.witness(X[:1], Plain())
    explanation = model.explain(X[:1], Plain())[0]
    assert explanation.changes == ()
    assert "no minimiser" in explanation.note


def test_a_family_that_tells_nothing_has_explanations_but_no_witness():
    rng = np.random.default_rng(2)
    X = rng.choice(["a", "b", "c"], (100, 3))
    model = ToyClassifier(random_state=0).fit(X, X[:, 0] == "a")
    with pytest.raises(UnsupportedError, match="ToyClassifier does not tell how to replace"):
        model.witness(X[:1], "tv_all")
    changes = model.explain(X[:1], "tv_all")[0].changes
    assert changes
    assert all(repr(change).endswith(" %") for change in changes)
