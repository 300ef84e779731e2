"""The oracle: is it right itself? By definitions, by hand, and against formulas written before."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.arithmetic import inf, log, mpf, mpq, precision, sqrt
from tests.perturbations.exact import EXACT

from .documents import (
    as_table,
    random_forest,
    random_mass,
    random_naive_bayes,
    random_rows,
    with_equal_rows,
    without_rows,
)
from .oracle import (
    BALLS,
    CLOSED,
    END,
    PARTS,
    STILL,
    ZERO,
    ClassLeaf,
    Constant,
    Contest,
    Evaluation,
    FeatureLeaf,
    Indicator,
    Point,
    Product,
    Size,
    Sum,
    disagreement,
    dot,
    lower_expectation,
    minimising,
    robustness,
    root_of_whole,
)

every_ball = pytest.mark.parametrize("ball", BALLS)
TINY = mpf(10) ** -30


@pytest.fixture(autouse=True)
def _digits():
    with precision(60):
        yield


def sizes_of(rng, ball):
    delta = mpf(float(np.exp(rng.uniform(-12, 0 if ball in (*CLOSED, "odds_ratio") else 2))))
    return Size(delta, 1 - delta)


def near(got, truth, tolerance=TINY):
    return got == truth or abs(got - truth) <= tolerance * max(abs(truth), 1)


# Balls


@every_ball
def test_lower_expectations_are_those_written_before(ball):
    rng = np.random.default_rng(1)
    for _ in range(25 if ball == "kl" else 100):
        count = int(rng.integers(2, 6))
        q = [mpf(p) for p in random_mass(rng, count, zeros=0.2)]
        f = [mpf(v) for v in rng.choice([-1.0, 0.0, 0.25, 1.0, 3.0], count).tolist()]
        size = sizes_of(rng, ball)
        got = lower_expectation(ball, q, f, size)
        assert near(got, EXACT[ball](q, f, size.delta)), (q, f, size.delta)


@every_ball
def test_what_minimises_lies_in_the_ball(ball):
    rng = np.random.default_rng(2)
    for _ in range(40):
        count = int(rng.integers(2, 6))
        q = [mpf(p) for p in random_mass(rng, count, zeros=0.2)]
        f = [mpf(v) for v in rng.normal(size=count).tolist()]
        size = sizes_of(rng, ball)
        moved = minimising(ball, q, f, size)
        assert near(sum(moved), 1)
        assert min(moved) >= 0
        assert divergence(ball, q, moved) <= size.delta * (1 + TINY)
        if any(p > 0 and v > min(f) for p, v in zip(moved, f, strict=True)):
            # All of the ball is used, unless nothing is left to gain.
            assert divergence(ball, q, moved) >= size.delta * (1 - TINY) or min(q) == 0


def divergence(ball, q, p):
    """Return the smallest δ whose ball holds p, by definition."""
    pairs = [(a, b) for a, b in zip(q, p, strict=True) if a > 0]
    if ball not in CLOSED and any(b > 0 for a, b in zip(q, p, strict=True) if a == 0):
        return inf
    ratios = [b / a for a, b in pairs]
    if ball == "tv":
        return sum(abs(a - b) for a, b in zip(q, p, strict=True)) / 2
    if ball == "chi2":
        return sum((b - a) ** 2 / a for a, b in pairs)
    if ball == "kl":
        return sum(b * log(b / a) for a, b in pairs if b > 0)
    return {
        "epsilon": 1 - min(ratios),
        "pari_mutuel": max(ratios) - 1,
        "odds_ratio": 1 - min(ratios) / max(ratios),
    }[ball]


@every_ball
def test_the_ends_are_what_sizes_lead_to(ball):
    q = [mpf(p) for p in (0.5, 0.375, 0.125, 0.0)]
    f = [mpf(v) for v in (2, 0.5, -1, -3)]
    far = mpf(10) ** 40
    bounded = ball in (*CLOSED, "odds_ratio")
    almost = Size(1 - 1 / far, 1 / far) if bounded else Size(far, 1 - far)
    assert near(lower_expectation(ball, q, f, END), lower_expectation(ball, q, f, almost))
    assert lower_expectation(ball, q, f, END) == (-3 if ball in CLOSED else -1)
    assert lower_expectation(ball, q, f, STILL) == dot(q, f)


@every_ball
def test_a_mass_function_that_misses_one_keeps_its_total(ball):
    q = [mpf(0.1), mpf(0.2), mpf(0.7)]
    total = sum(q)
    assert total != 1
    f = [mpf(1), mpf(-1), mpf(0)]
    size = Size(mpf(10) ** -40, 1 - mpf(10) ** -40)
    scaled = lower_expectation(ball, [p / total for p in q], f, size)
    assert near(lower_expectation(ball, q, f, size), total * scaled, mpf(10) ** -55)


@pytest.mark.parametrize("q", [1e-300, 1e-13, 0.3, 1 - 2**-50])
@every_ball
def test_bounds_of_tiny_probabilities_have_all_their_digits(ball, q):
    """Sizes at which a bound has moved by some tenth, found by definition."""
    with precision(700):
        q = mpf(q)
        f = [mpf(1), mpf(0)]
        for moved in (q * mpf(0.9), q * mpf(0.25), min(q * mpf(1.5), (1 + q) / 2)):
            delta = divergence(ball, [q, 1 - q], [moved, 1 - moved])
            with precision(50):
                size = Size(+delta, 1 - delta)
                sign = 1 if moved < q else -1
                document = one_feature(float(q), float(1 - q))
                contest = Contest(document, [0], ball, ["features"])
                leaf = contest.circuit.children[0].children[1]
                here = Evaluation(contest.neighbourhood, Point(delta=size.delta))
                got = here.bound(leaf, sign)
                assert near(got / moved, 1), (got, moved)
            assert near(
                lower_expectation(ball, [q, 1 - q], [sign * v for v in f], size), sign * moved
            )


def one_feature(first, second):
    return {
        "kind": "naive_bayes",
        "classes": [0, 1],
        "features": [{"name": "x", "categories": [0, 1]}],
        "class_probs": [0.5, 0.5],
        "feature_probs": [[[first, second], [0.5, 0.5]]],
    }


# The joint as a whole


@every_ball
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("3/8", "1/8"),
        ("5/8", "3/8"),
        ("1/2", "0"),
        ("9/16", "1/1024"),
        ("1/1000000007", "1/1000000009"),
        ("1/2", "499999/1000000"),
    ],
)
def test_the_closed_forms_of_the_joint_are_roots_of_three_atoms(ball, a, b):
    a, b = mpq(a), mpq(b)
    root = root_of_whole(ball, a, b)
    atoms = [mpf(p.numerator) / p.denominator for p in (a, b, 1 - a - b)]
    f = [mpf(1), mpf(-1), mpf(0)]
    if root == inf:
        assert ball == "odds_ratio"
        assert b == 0
        assert lower_expectation(ball, atoms, f, Size(1 - TINY, TINY)) > 0
        return
    for factor, sign in ((1 - TINY, 1), (1 + TINY, 0 if b == 0 else -1)):
        size = Size(root * factor, 1 - root * factor)
        value = lower_expectation(ball, atoms, f, size)
        assert value > 0 if sign > 0 else (value < 0 or value == sign), (factor, value)


@every_ball
def test_certainty_is_never_perturbed_away_where_it_must_stay(ball):
    root = root_of_whole(ball, mpq(1), mpq(0))
    expected = {"epsilon": mpf(1) / 2, "tv": mpf(1) / 2}.get(ball, inf)
    assert root == expected


@every_ball
@pytest.mark.parametrize("kind", ["naive_bayes", "generative_forest"])
def test_the_posterior_and_the_joint_of_nothing_seen_are_the_prior(ball, kind):
    """With all cells missing, and the classes alone perturbed, there is one mass function."""
    rng = np.random.default_rng(3)
    if kind == "naive_bayes":
        document, alone = random_naive_bayes(rng, classes=3), ["prior"]
    else:
        document = random_forest(rng, classes=3, trees=1, depth=0)
        alone = ["leaf_classes"]
    row = [None] * len(document["features"])
    best, smallest, roots = robustness(document, row, ball, alone)
    for parts in ("joint", "posterior", "all"):
        other, same, others = robustness(document, row, ball, parts)
        assert other == best
        assert near(same, smallest, mpf(10) ** -14)
        for c, root in roots.items():
            assert near(others[c], root, mpf(10) ** -14)


# By hand


def stump(weights, left, right, rows=(None, None, None)):
    """Return a forest of one tree that splits a feature of two values."""
    document: dict[str, Any] = {
        "kind": "generative_forest",
        "classes": [0, 1],
        "features": [{"name": "x", "categories": [0, 1]}, {"name": "z", "categories": [0, 1]}],
        "trees": [
            {
                "nodes": [
                    {"feature": 0, "left_values": [0], "weights": weights, "left": 1, "right": 2},
                    {"class_probs": left, "feature_probs": [[1.0, 0.0], [0.25, 0.75]]},
                    {"class_probs": right, "feature_probs": [[0.0, 1.0], [0.5, 0.5]]},
                ]
            }
        ],
    }
    for node, n in zip(document["trees"][0]["nodes"], rows, strict=True):
        node["rows"] = n
    return document


def test_stumps_by_hand():
    document = stump([0.375, 0.625], [0.75, 0.25], [0.25, 0.75])
    # One leaf is reached, and prefers class 0 until its weight is gone.
    assert robustness(document, [0, 0], "epsilon")[1] == 1
    assert near(robustness(document, [0, 0], "tv")[1], mpf(3) / 8, mpf(10) ** -15)
    # x is missing: 3/8 · 1/2 against 5/8 · 1/2; class 1 leads by 1/8, and 2δ/2 is taken from it.
    best, root, _ = robustness(document, [None, None], "tv")
    assert best == 1
    assert near(root, mpf(1) / 8, mpf(10) ** -15)
    # The cell allows one value of x: its mass function is a point. z has 1/4, the classes 3/4, 1/4.
    assert robustness(document, [0, None], "tv", ["leaf_features"])[1] == inf
    assert near(
        robustness(document, [0, 0], "tv", ["leaf_features"])[1], mpf(1) / 4, mpf(10) ** -15
    )
    assert near(robustness(document, [0, 0], "tv", ["leaf_classes"])[1], mpf(1) / 4, mpf(10) ** -15)
    assert near(robustness(document, [0, 1], "tv", ["feature:z"])[1], mpf(3) / 4, mpf(10) ** -15)
    assert near(robustness(document, [0, 1], "tv", ["feature:x"])[1], mpf(3) / 8, mpf(10) ** -15)
    # Of one tree there is no other.
    assert robustness(document, [0, 1], "tv", ["root"])[1] == inf


def test_two_trees_by_hand():
    document = stump([0.5, 0.5], [0.75, 0.25], [0.5, 0.5])
    leaf = {"class_probs": [0.25, 0.75], "feature_probs": [[0.25, 0.75], [0.5, 0.5]]}
    document["trees"].append({"nodes": [leaf]})
    # For class 0: 1/2 · 1/2 from one tree, 1/4 · 1/2 from the other.
    # The root: (1/2 − δ)/4 = (1/2 + δ)/8.
    assert near(robustness(document, [0, None], "tv", ["root"])[1], mpf(1) / 6, mpf(10) ** -15)
    # ε: (1−δ)/8 = (1−δ)/16 + δ/8.
    assert near(robustness(document, [0, None], "epsilon", ["root"])[1], mpf(1) / 3, mpf(10) ** -15)
    # Weights and leaf classes: (1/2 − δ)(1/2 − 2δ) = (1/2 + 2δ)/4.
    expected = (2 - sqrt(3)) / 4
    parts = ["weights", "leaf_classes"]
    got = robustness(document, [0, None], "tv", parts)[1]
    assert near(got, expected, mpf(10) ** -15)


@pytest.mark.parametrize(
    ("ball", "expected"),
    [
        ("tv", 0.25 * 40),
        ("epsilon", inf),
        ("chi2", 40 / mpf(3)),
        ("pari_mutuel", 40 / mpf(3)),
    ],
)
def test_sizes_by_rows_by_hand(ball, expected):
    """z has probability 1/4 in the leaf of 40 rows: it is gone at TV 1/4, χ² 1/3, PM 1/3."""
    document = stump([0.375, 0.625], [0.75, 0.25], [0.25, 0.75], rows=(100, 40, 60))
    got = robustness(document, [0, 0], ball, ["leaf_features"], "rows")[1]
    assert near(got, expected, mpf(10) ** -14)


@every_ball
def test_no_rows_flip_at_once_without_a_tie(ball):
    document = stump([0.375, 0.625], [0.75, 0.25], [0.25, 0.75], rows=(40, 0, 40))
    assert robustness(document, [0, 0], ball, "all", "rows")[1] == 0
    assert robustness(document, [0, 0], ball, ["leaf_classes"], "rows")[1] == 0
    # x is known to the leaf, so nothing hangs on its mass functions.
    assert robustness(document, [0, None], ball, ["leaf_features"], "rows")[1] == inf
    assert robustness(document, [0, 0], ball, None, "rows")[1] > 0
    assert robustness(document, [1, 0], ball, "all", "rows")[1] > 0


@every_ball
def test_what_was_not_counted_stays(ball):
    rng = np.random.default_rng(4)
    document = random_naive_bayes(rng, classes=3, features=3, sizes=(2, 3), prior_rows=False)
    row = random_rows(rng, document, 1)[0]
    whole = robustness(document, row, ball, "all", "rows")
    assert whole == robustness(document, row, ball, ["features"], "rows")
    assert robustness(document, row, ball, ["prior"], "rows")[1] == inf


def test_near_and_far_sizes_are_found():
    # p(f|ĉ) = 1e-300 against 0: TV flips at half of it, χ² in no size of features alone.
    document = one_feature(1e-300, 1.0)
    document["feature_probs"][0][1] = [0.0, 1.0]
    best, root, _ = robustness(document, [0], "tv", ["features"])
    assert best == 0
    assert near(root / mpf(1e-300), mpf(1) / 2, mpf(10) ** -14)
    # 0.5(1−δ)... : the odds of 1 to 1e-100 must be lost, half of them in each local model.
    document = one_feature(0.5, 0.5)
    document["feature_probs"][0][1] = [1e-100, 1.0]
    root = robustness(document, [0], "odds_ratio", ["features"])[1]
    assert root < inf
    assert float(root) == 1.0
    document["feature_probs"][0][1] = [0.0, 1.0]
    assert robustness(document, [0], "odds_ratio", ["features"])[1] == inf


# Laws


def small(kind, rng, **options):
    if kind == "naive_bayes":
        return random_naive_bayes(rng, classes=3, features=3, **options)
    return random_forest(rng, classes=3, trees=3, features=3, depth=2, **options)


every_kind = pytest.mark.parametrize("kind", PARTS)


@every_kind
@every_ball
@pytest.mark.parametrize("sizes", ["equal", "rows"])
def test_all_flips_no_later_than_any_part(kind, ball, sizes):
    rng = np.random.default_rng(5)
    for zeros in (0.0,) if ball == "kl" else (0.0, 0.3):
        document = small(kind, rng, zeros=zeros, zero_rows=zeros / 3)
        row = random_rows(rng, document, 1, missing=0.3)[0]
        best, _, whole = robustness(document, row, ball, "all", sizes)
        for part in (*PARTS[kind], "feature:x0"):
            again, _, alone = robustness(document, row, ball, [part], sizes)
            assert again == best
            assert all(whole[c] <= alone[c] * (1 + mpf(10) ** -14) for c in whole)


LOCAL = {
    "epsilon": lambda delta, n: delta / (n + delta),
    "odds_ratio": lambda delta, n: delta / (n + delta),
}


@every_kind
@every_ball
def test_equal_rows_rescale_equal_sizes(kind, ball):
    rng = np.random.default_rng(6)
    parts = [part for part in PARTS[kind] if part != "root"]
    document = with_equal_rows(small(kind, rng), 25)
    row = random_rows(rng, document, 1)[0]
    plain = robustness(document, row, ball, parts)[2]
    rows = robustness(document, row, ball, parts, "rows")[2]
    local = LOCAL.get(ball, lambda delta, n: delta / n)
    for c, root in plain.items():
        if rows[c] == inf:
            assert root == inf or (ball == "epsilon" and root == 1)
        else:
            assert near(local(rows[c], 25), root, mpf(10) ** -14)


@every_kind
@every_ball
@pytest.mark.parametrize("sizes", ["equal", "rows"])
def test_a_model_of_minimising_mass_functions_attains_the_lower_value(kind, ball, sizes):
    """R_c(δ) is the margin of one perturbed model, and no other one tried is below it."""
    rng = np.random.default_rng(7)
    document = small(kind, rng, zeros=0.2)
    row = random_rows(rng, document, 1, missing=0.3)[0]
    contest = Contest(document, row, ball, "all", sizes)
    best = contest.prediction
    rival = next(c for c in contest.classes if c != best)
    point = Point(delta=mpf(0.06) if sizes == "equal" else mpf(2))
    here = Evaluation(contest.neighbourhood, point)
    value, _ = here.value(contest.circuit, best, rival)

    def margin(node):
        still = Evaluation(contest.neighbourhood, ZERO)
        return still.joint(node, best) - still.joint(node, rival)

    assert near(margin(perturb(here, contest.circuit, (best, rival))), value, mpf(10) ** -40)
    for _ in range(8):
        other = perturb(here, contest.circuit, (best, rival), rng)
        assert margin(other) >= value


def perturb(here, node, pair, rng=None, sign=1):
    """Return a circuit whose mass functions minimise (or, with rng, minimise something else)."""

    def move(local, values):
        if rng is not None:
            values = [mpf(v) for v in rng.normal(size=len(values)).tolist()]
        moved = here.minimising(local, values)
        return replace(local, probs=tuple(mpq(p) for p in moved))

    if isinstance(node, (Constant, Indicator)):
        return node
    if isinstance(node, FeatureLeaf):
        if len(node.local.probs) == 1:
            return node
        seen = [mpf(sign * (i == node.value)) for i in range(len(node.local.probs))]
        return replace(node, local=move(node.local, seen))
    if isinstance(node, ClassLeaf):
        gap = [mpf((c == pair[0]) - (c == pair[1])) for c in range(len(node.local.probs))]
        return replace(node, local=move(node.local, gap))
    if isinstance(node, Product):
        value, _ = here.value(node.children[0], *pair)
        first = perturb(here, node.children[0], pair, rng)
        side = 1 if value > 0 else -1
        others = (perturb(here, child, pair, rng, side) for child in node.children[1:])
        return Product((first, *others))
    assert isinstance(node, Sum)
    values = [here.value(child, *pair)[0] for child in node.children]
    children = tuple(perturb(here, child, pair, rng) for child in node.children)
    return Sum(children, move(node.local, values))


# Judging


@every_kind
@every_ball
def test_right_answers_are_accepted_and_wrong_ones_are_not(kind, ball):
    rng = np.random.default_rng(8)
    for parts in (None, "all", "joint"):
        document = small(kind, rng)
        row = random_rows(rng, document, 1)[0]
        best, root, roots = robustness(document, row, ball, parts)
        contest = Contest(document, row, ball, parts)
        tipping = min(roots, key=roots.get) if root < inf else None
        assert disagreement(contest, best, float(root), tipping) == ""
        other = next(c for c in roots if c != tipping)
        assert disagreement(contest, other, float(root), tipping)
        assert disagreement(contest, best, 0.0, other)
        assert disagreement(contest, best, math.nan, tipping)
        if root == inf:
            assert disagreement(contest, best, 0.9, other)
            continue
        assert disagreement(contest, best, float(root) * (1 - 1e-8), tipping)
        assert root == 1 or disagreement(contest, best, float(root) * (1 + 1e-8), tipping)
        assert disagreement(contest, best, math.inf, None)
        if roots[other] > root * (1 + mpf(10) ** -6):
            assert disagreement(contest, best, float(root), other)


# Documents


@every_kind
def test_random_documents_hold_mass_functions(kind):
    rng = np.random.default_rng(9)
    for grid, zeros in itertools.product((30, None), (0.0, 0.3)):
        document = small(kind, rng, zeros=zeros, grid=grid)
        masses = [document.get("class_probs", [1.0])]
        masses += [mass for table in document.get("feature_probs", []) for mass in table]
        for tree in document.get("trees", []):
            for node in tree["nodes"]:
                leaf = "class_probs" in node
                masses += (
                    [node["class_probs"], *node["feature_probs"]] if leaf else [node["weights"]]
                )
        assert len(masses) > 3
        for mass in masses:
            assert min(mass) >= 0
            assert abs(sum(map(mpq, mass)) - 1) <= (1e-9 if grid is None else 0)
        plain = without_rows(document)
        assert "rows" not in str(plain)
        assert plain["version"] == 1


def test_random_rows_become_tables():
    rng = np.random.default_rng(10)
    document = random_forest(rng, features=4, numeric=True)
    rows = random_rows(rng, document, 20, missing=0.3)
    table = as_table(document, rows)
    assert table.shape == (20, 4)
    assert isinstance(next(value for value in table[:, 0] if value is not None), float)
    for row, made in zip(rows, table.tolist(), strict=True):
        assert [value is None for value in row] == [value is None for value in made]
