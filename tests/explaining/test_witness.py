"""A witness lies in the ball, and no longer prefers the prediction: every ball, family and part."""

from typing import Any

import numpy as np
import pytest

import robustq
from robustq import (
    GenerativeForestClassifier,
    InputError,
    NaiveBayesClassifier,
    UnsupportedError,
)
from robustq.core import engine
from robustq.core.neighbourhoods import read
from robustq.core.witness import find_moves
from robustq.perturbations import Perturbation, get
from tests.core.documents import as_table, random_forest, random_naive_bayes, random_rows
from tests.families.toy import ToyClassifier
from tests.perturbations.cases import IDS, divergence

MODELS: dict[str, Any] = {
    "naive Bayes": (NaiveBayesClassifier, random_naive_bayes, {}),
    "forest": (GenerativeForestClassifier, random_forest, {}),
    "forest with numbers": (GenerativeForestClassifier, random_forest, {"numeric": True}),
}
PARTS = {
    "naive Bayes": (None, "all", ["prior"], ["features"], ["feature:x0"]),
    "forest": (
        *(None, ["weights"], ["leaf_classes"], ["leaf_features"], ["feature:x1"]),
        ["weights", "leaf_classes", "leaf_features"],
    ),
}
PARTS["forest with numbers"] = PARTS["forest"]
TRIES = 6


def list_locals(document):
    """Yield the local mass functions of a document: part, feature, probabilities, rows."""
    if document["kind"] == "naive_bayes":
        rows = document["rows"]
        yield "prior", None, document["class_probs"], rows["prior"]
        for i, table in enumerate(document["feature_probs"]):
            for probs, n in zip(table, rows["features"][i], strict=True):
                yield "features", i, probs, n
        return
    for tree in document["trees"]:
        for node in tree["nodes"]:
            if "weights" in node:
                yield "weights", node["feature"], node["weights"], node["rows"]
                continue
            yield "leaf_classes", None, node["class_probs"], node["rows"]
            for i, probs in enumerate(node["feature_probs"]):
                if isinstance(probs, list):
                    yield "leaf_features", i, probs, node["rows"]


def is_perturbed(parts, part, feature, defaults):
    named = defaults if parts is None else parts
    return parts == "all" or part in named or (f"feature:x{feature}" in named)


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
    before, after = (list(list_locals(one.to_dict())) for one in (model, witness))
    defaults = model.model_.default_parts
    for (part, feature, old, n), (*_, new, _) in zip(before, after, strict=True):
        q, p = np.array(old), np.array(new)
        if not is_perturbed(parts, part, feature, defaults):
            assert np.array_equal(q, p)
            continue
        own = size if sizes is None else float(get(ball).local_size(max(size, 1e-140), n))
        assert divergence(ball, q, p) <= own * (1 + 1e-8) + 1e-9
        assert p.sum() == pytest.approx(1.0, abs=1e-9)
    classes = model.classes_.tolist()
    best = classes.index(assessment.prediction[0])
    rival = classes.index(assessment.tipping_class[name][0])
    # Relative to what the prediction had: rounding may leave something where nothing should be.
    joint = witness.predict_joint_log_proba(table)[0]
    scale = model.predict_joint_log_proba(table)[0, best]
    if np.isfinite(scale):
        assert np.exp(joint[best] - scale) <= np.exp(joint[rival] - scale) * (1 + 1e-8) + 1e-8
    return True


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("ball", IDS)
@pytest.mark.parametrize("sizes", [None, "rows"])
def test_a_witness_lies_in_the_ball_and_no_longer_prefers_the_prediction(kind, ball, sizes):
    estimator, make, more = MODELS[kind]
    found = 0
    for parts in PARTS[kind]:
        for seed in range(TRIES):
            rng = np.random.default_rng([seed, len(ball)])
            document = make(rng, zeros=0.1 * (seed % 3), zero_rows=0.05, **more)
            if parts == ["feature:x1"] and len(document["features"]) < 2:
                continue
            rows = random_rows(rng, document, 1, missing=0.2 * (seed % 2))
            model = estimator.from_dict(document)
            found += check_witness(model, as_table(document, rows), ball, parts, sizes)
    assert found > TRIES


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


@pytest.mark.parametrize("ball", IDS)
def test_moves_attain_the_margin_that_the_recursion_gives(ball):
    """Below the robustness too: the value under the moved model is the lower value."""
    for seed in range(8):
        rng = np.random.default_rng([seed, 7])
        document = random_naive_bayes(rng, zeros=0.1)
        model = NaiveBayesClassifier.from_dict(document)
        rows = model.encoding_.encode(
            model._arrange(as_table(document, random_rows(rng, document, 1)))
        )
        bound = read(ball).bind(model.model_, model.encoding_.names)
        found = engine.quantify(model.model_, rows, [bound])
        size = found.robustness[0]
        if not np.isfinite(size[0]) or size[0] == 0.0:
            continue
        pair = found.prediction, found.tipping[0]
        (moves,) = find_moves(model.model_, rows, bound, *pair, 0.5 * size)
        for move in moves:
            assert divergence(ball, move.before, move.after) <= 0.5 * size[0] * (1 + 1e-8) + 1e-9
            assert move.distance > 0.0
