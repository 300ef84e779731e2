"""Networks and averaged networks: what the engine gives, and what the oracle says of it."""

from typing import Any

import numpy as np
import pytest

from robustq import BayesianNetworkClassifier, UnsupportedError
from robustq.core import engine
from robustq.core.neighbourhoods import read
from robustq.perturbations import Perturbation, TotalVariation
from robustq.tables import Table

from .documents import as_table, random_mixture, random_network, random_rows
from .oracle import BALLS, Contest, disagreement

TREE, ANY, AVERAGED = "tree", "any", "averaged"
MAKERS = {
    TREE: random_network,
    ANY: lambda rng, **more: random_network(rng, tree=False, **more),
    AVERAGED: random_mixture,
}
PARTS = {
    TREE: (None, ("prior",), ("features",), ("feature:x0", "prior")),
    ANY: (None, ("prior",), ("feature:x0",)),
    AVERAGED: (None, "all", ("root",), ("feature:x1",)),
}

every_ball = pytest.mark.parametrize("ball", BALLS)
every_kind = pytest.mark.parametrize("kind", MAKERS)
every_neighbourhood = pytest.mark.parametrize(
    ("kind", "parts", "sizes"),
    [
        (kind, parts, sizes)
        for kind, chosen in PARTS.items()
        for parts in chosen
        for sizes in ("equal", "rows")
        if (parts, sizes) != (("root",), "rows")
    ],
)


def check(document, rows, ball, parts=None, sizes="equal"):
    """Assert that every prediction, robustness and tipping class is right; return the sizes."""
    model = BayesianNetworkClassifier.from_dict(document)
    given = list(parts) if isinstance(parts, tuple) else parts
    found = model.assess(as_table(document, rows), [ball], parts=given, sizes=sizes)
    (size,), (tipping,) = found.robustness.values(), found.tipping_class.values()
    labels = document["classes"]
    for i, row in enumerate(rows):
        contest = Contest(document, row, ball, parts, sizes)
        first = None if tipping[i] is None else labels.index(tipping[i])
        best = labels.index(found.prediction[i])
        problem = disagreement(contest, best, float(size[i]), first)
        assert not problem, (problem, row)
    return size


@every_ball
@every_neighbourhood
def test_complete_rows_are_exact(kind, ball, parts, sizes):
    rng = np.random.default_rng(1)
    document = MAKERS[kind](rng)
    check(document, random_rows(rng, document, 1 if ball == "kl" else 2), ball, parts, sizes)


@every_ball
@every_neighbourhood
def test_zeros_and_tables_without_rows_are_exact(kind, ball, parts, sizes):
    rng = np.random.default_rng(2)
    for more in ({"zeros": 0.25}, {"zero_rows": 0.2}):
        document = MAKERS[kind](rng, **more)
        check(document, random_rows(rng, document, 1), ball, parts, sizes)


@every_ball
@pytest.mark.parametrize("sizes", ["equal", "rows"])
@pytest.mark.parametrize("kind", [TREE, AVERAGED])
def test_rows_with_gaps_are_exact(kind, ball, sizes):
    rng = np.random.default_rng(3)
    for more in ({"zeros": 0.2}, {"zero_rows": 0.2}):
        document = MAKERS[kind](rng, **more, features=5, sizes=(1, 3))
        for parts in PARTS[kind][:2]:
            rows = random_rows(rng, document, 1 if ball == "kl" else 2, 0.45)
            check(document, rows, ball, parts, sizes)


def test_gaps_in_a_chain_are_summed_over_once_for_each_value():
    rng = np.random.default_rng(4)
    document = random_network(rng, features=12, sizes=(4, 4), classes=2)
    for i, table in enumerate(sorted(document["tables"][1:], key=lambda t: t["variable"])):
        table["parents"] = ["class", i - 1] if i else ["class"]
        mass = rng.dirichlet(np.ones(4), size=8 if i else 2)
        table["probs"], table["rows"] = mass.tolist(), [1] * len(mass)
    # Eleven gaps in a row are 4^11 configurations, and a few hundred nodes.
    model = BayesianNetworkClassifier.from_dict(document)
    table = np.full((1, 12), None, dtype=object)
    table[0, -1] = "v1"
    weights = np.array(document["tables"][0]["probs"][0])
    message: Any = None
    by_feature = {t["variable"]: np.array(t["probs"]) for t in document["tables"][1:]}
    for i in range(12):
        probs = by_feature[i].reshape(2, -1, 4)
        message = probs[:, 0] if i == 0 else np.einsum("cu,cuv->cv", message, probs)
    joint = weights * message[:, 1]
    assert model.predict_joint_log_proba(table)[0] == pytest.approx(np.log(joint), rel=1e-12)
    assert 0.0 < model.robustness(table, "tv")[0] < 1.0


@every_kind
@every_ball
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_kernels_and_the_general_path_agree(kind, ball, missing):
    rng = np.random.default_rng(5)
    document = MAKERS[kind](rng, features=6, classes=3)
    if kind == ANY:
        missing = 0.0
    model = BayesianNetworkClassifier.from_dict(document)
    table = as_table(document, random_rows(rng, document, 40, missing))
    rows = model.encoding_.encode(Table.read(table))
    bound = [
        read(name).bind(model.model_, model.encoding_.names)
        for name in (ball, f"{ball}_all", f"{ball}_rows")
    ]
    fast = engine.quantify(model.model_, rows, bound)
    slow = engine.quantify(model.model_, rows, bound, general=True)
    assert np.allclose(fast.robustness, slow.robustness, rtol=1e-9, atol=0.0)
    assert np.array_equal(fast.prediction, slow.prediction)


@every_ball
@every_kind
def test_what_does_not_move_never_flips(kind, ball):
    # A feature with one value has no ball: nobody is to take the end of all sizes for a root.
    rng = np.random.default_rng(61)
    for _ in range(6):
        document = MAKERS[kind](rng, sizes=(1, 1))
        rows = random_rows(rng, document, 4)
        assert np.all(check(document, rows, ball, ("features",)) == np.inf)


@pytest.mark.parametrize("kind", [TREE, AVERAGED])
def test_near_ties_are_exact_and_ties_are_0(kind):
    rng = np.random.default_rng(6)
    document = MAKERS[kind](rng, classes=2, features=4, sizes=(2, 3))
    networks = document.get("networks", [document])
    for table in [table for network in networks for table in network["tables"]]:
        if "class" in table["parents"]:
            half = len(table["probs"]) // 2
            table["probs"][half:] = table["probs"][:half]
        elif table["variable"] == "class":
            table["probs"] = [[0.5, 0.5]]
    if "class_probs" in document:
        document["class_probs"] = [0.5, 0.5]
    rows = random_rows(rng, document, 4, 0.5)
    assert (check(document, rows, "tv") == 0.0).all()
    nudge = 2.0**-30
    if "class_probs" in document:
        document["class_probs"] = [0.5 + nudge, 0.5 - nudge]
    else:
        document["tables"][0]["probs"] = [[0.5 + nudge, 0.5 - nudge]]
    for ball in BALLS:
        size = check(document, rows, ball)
        assert ((size > 0.0) & (size < 1e-6)).all()


class Narrow(Perturbation):
    """Total variation without any formula for bounds: the general path."""

    name = "narrow"
    domain = TotalVariation.domain

    def lower_expectation(self, q, f, delta):
        return TotalVariation().lower_expectation(q, f, delta)


@pytest.mark.parametrize("parts", [None, ["feature:x2"]])
def test_a_ball_of_ones_own_works_with_gaps(parts):
    rng = np.random.default_rng(7)
    document = random_network(rng, features=4, sizes=(3, 4))
    model = BayesianNetworkClassifier.from_dict(document)
    table = as_table(document, random_rows(rng, document, 10, 0.4))
    ours = model.robustness(table, Narrow(), parts=parts)
    assert ours == pytest.approx(model.robustness(table, "tv", parts=parts), rel=1e-7)


def test_other_structures_refuse_gaps_that_matter_and_say_why():
    rng = np.random.default_rng(8)
    X, y = rng.integers(0, 3, (200, 4)), rng.integers(0, 2, 200)
    edges = [("0", "2"), ("1", "2"), ("2", "3")]
    model = BayesianNetworkClassifier(edges).fit(X, y)
    row = np.array([[1, None, 2, 0]], dtype=object)
    # Of the two parents of '2' one is there: its sum splits.
    assert model.robustness(row, "tv")[0] > 0.0
    row[0, 0] = None
    with pytest.raises(UnsupportedError, match=r"a cell of '[01]' is missing.*several places"):
        model.robustness(row, "tv")
    with pytest.raises(UnsupportedError, match="is missing"):
        model.credal_predict(row, "tv", 0.1)
    # What is needed for other answers is known.
    assert model.predict_proba(row).sum() == pytest.approx(1.0)
    for more in ({"parts": "posterior"}, {"parts": "joint"}, {"parts": ["prior"]}):
        assert model.robustness(row, "tv", **more)[0] >= 0.0
    # A cell on which nothing hangs drops out.
    assert model.robustness([[1, 0, 2, None]], "tv")[0] > 0.0
