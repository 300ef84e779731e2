"""Neighbourhoods, ball × parts × sizes: what the engine gives, and what the oracle says of it.

Every number is held against `oracle`, which shares no code with the engine: within 1e-9, exactly 0
for a tie or where any size flips, infinite where none does, and a tipping class that is first.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from robustq import GenerativeForestClassifier, NaiveBayesClassifier, RobustqError
from robustq.perturbations import Perturbation, register

from .documents import (
    as_table,
    random_forest,
    random_mass,
    random_naive_bayes,
    random_rows,
    with_equal_rows,
    without_rows,
)
from .oracle import BALLS, PARTS, Contest, disagreement

NAIVE, FOREST = "naive_bayes", "generative_forest"
CLASSIFIERS: dict[str, Any] = {NAIVE: NaiveBayesClassifier, FOREST: GenerativeForestClassifier}
SOME_PARTS = {
    NAIVE: (None, ("prior",), ("features",), ("feature:x0",), ("prior", "feature:x1")),
    FOREST: (
        None,
        "all",
        ("root",),
        ("leaf_classes",),
        ("leaf_features",),
        ("weights", "leaf_classes"),
        ("feature:x0",),
        ("root", "feature:x1", "leaf_classes"),
    ),
}
WHOLES = ("joint", "posterior")
UNCOUNTED = (("root",),)

every_ball = pytest.mark.parametrize("ball", BALLS)
every_kind = pytest.mark.parametrize("kind", CLASSIFIERS)
gaps = pytest.mark.parametrize("missing", [0.0, 0.35], ids=["complete", "missing"])


def neighbourhoods():
    """Yield all combinations of family, parts and sizes that make sense."""
    for kind, chosen in SOME_PARTS.items():
        for parts in (*chosen, *WHOLES):
            for sizes in ("equal", "rows"):
                if sizes == "equal" or (parts not in WHOLES and parts not in UNCOUNTED):
                    name = parts if isinstance(parts, str) else "+".join(parts or ["default"])
                    yield pytest.param(kind, parts, sizes, id=f"{kind}-{name}-{sizes}")


every_neighbourhood = pytest.mark.parametrize(("kind", "parts", "sizes"), list(neighbourhoods()))


def read(document):
    return CLASSIFIERS[document["kind"]].from_dict(document)


def options(parts, sizes):
    """Return what is not the default."""
    given = {"parts": list(parts) if isinstance(parts, tuple) else parts, "sizes": sizes}
    return {key: value for key, value in given.items() if value not in (None, "equal")}


def check(document, rows, ball, parts=None, sizes="equal", tolerance=1e-9):
    """Assert that every prediction, robustness and tipping class is right; return the sizes."""
    model = read(document)
    table = as_table(document, rows)
    found = model.assess(table, [ball], **options(parts, sizes))
    (sizes_found,), (tipping,) = found.robustness.values(), found.tipping_class.values()
    assert sizes_found.dtype == np.float64
    labels = document["classes"]
    for i, row in enumerate(rows):
        contest = Contest(document, row, ball, parts, sizes)
        best = labels.index(found.prediction[i])
        first = None if tipping[i] is None else labels.index(tipping[i])
        problem = disagreement(contest, best, float(sizes_found[i]), first, tolerance)
        assert not problem, (problem, row)
    alone = model.robustness(table, ball, **options(parts, sizes))
    assert np.array_equal(alone, sizes_found)
    return sizes_found


def make(kind, rng, **more):
    """Make a document small enough for many."""
    if kind == NAIVE:
        return random_naive_bayes(rng, **{"features": int(rng.integers(2, 6))} | more)
    return random_forest(
        rng, **{"trees": int(rng.integers(2, 5)), "depth": 3, "classes": 3, "features": 4} | more
    )


# Every number


@every_ball
@every_neighbourhood
@gaps
def test_every_neighbourhood_is_exact(kind, ball, parts, sizes, missing):
    rng = np.random.default_rng(71)
    document = make(kind, rng)
    rows = random_rows(rng, document, 2 if ball == "kl" else 3, missing)
    check(document, rows, ball, parts, sizes)


@every_ball
@every_neighbourhood
@gaps
def test_zeros_and_locals_without_rows_are_exact(kind, ball, parts, sizes, missing):
    rng = np.random.default_rng(72)
    for _ in range(1 if ball == "kl" else 3):
        document = make(kind, rng, zeros=0.3, zero_rows=0.2)
        check(document, random_rows(rng, document, 2, missing), ball, parts, sizes)


@every_ball
@every_neighbourhood
@gaps
def test_many_more_models_are_exact(kind, ball, parts, sizes, missing):
    rng = np.random.default_rng(73)
    for zeros in (0.1,) if ball == "kl" else (0.1, 0.4):
        classes = int(rng.integers(2, 6))
        document = make(kind, rng, classes=classes, zeros=zeros, zero_rows=zeros / 3)
        check(document, random_rows(rng, document, 2, missing), ball, parts, sizes)


@every_ball
@gaps
@pytest.mark.parametrize("parts", [None, "all", ("feature:x0",), ("leaf_features",), "posterior"])
def test_forests_with_numbers_are_exact(ball, parts, missing):
    rng = np.random.default_rng(74)
    document = make(FOREST, rng, numeric=True)
    rows = random_rows(rng, document, 2, missing)
    check(document, rows, ball, parts)
    if parts != "posterior":
        check(document, rows, ball, parts, "rows")


@every_ball
@every_kind
@pytest.mark.parametrize("parts", [None, "all", "joint", "posterior"])
def test_hundreds_of_features_are_exact(kind, ball, parts):
    rng = np.random.default_rng(75)
    document = make(kind, rng, classes=3, features=60 if ball == "kl" else 300)
    rows = random_rows(rng, document, 1) + random_rows(rng, document, 1, missing=0.1)
    check(document, rows, ball, parts)
    if parts in (None, "all"):
        check(document, rows, ball, parts, "rows")


@every_ball
@every_kind
@pytest.mark.parametrize("sizes", ["equal", "rows"])
def test_probabilities_of_any_floats_are_exact(kind, ball, sizes):
    """Floats that sum to one but for their last digit, as a fit gives them."""
    rng = np.random.default_rng(76)
    document = make(kind, rng, grid=None)
    check(document, random_rows(rng, document, 3, missing=0.2), ball, "all", sizes)


@every_ball
def test_what_no_rows_stand_behind_gives_way_to_a_rival_of_probability_zero(ball):
    rows, even = {"prior": 10, "features": [[0, 5], [5, 5]]}, [0.5, 0.5]
    document = {
        "format": "robustq-model",
        "version": 2,
        "kind": "naive_bayes",
        "classes": ["a", "b"],
        "features": [{"name": name, "categories": ["u", "v"]} for name in "xz"],
        "class_probs": even,
        "feature_probs": [[even, even], [even, [0.0, 1.0]]],
        "rows": rows,
    }
    model = read(document)
    assert model.robustness([["u", "u"]], ball, sizes="rows").tolist() == [0.0]


@every_ball
def test_a_prior_that_was_given_stays_by_rows(ball):
    rng = np.random.default_rng(77)
    document = make(NAIVE, rng, prior_rows=False)
    rows = random_rows(rng, document, 3, missing=0.2)
    whole = check(document, rows, ball, "all", "rows")
    features = check(document, rows, ball, ("features",), "rows")
    assert np.array_equal(whole, features)


@every_ball
def test_what_hangs_on_no_rows_has_robustness_zero(ball):
    rng = np.random.default_rng(78)
    document = make(NAIVE, rng, classes=2, features=2, sizes=(2, 3))
    document["rows"]["features"] = [[0, 0], [10, 10]]
    rows = random_rows(rng, document, 4)
    assert check(document, rows, ball, "all", "rows").tolist() == [0.0] * 4
    assert np.all(check(document, rows, ball, ("prior", "feature:x1"), "rows") > 0)


@every_ball
def test_points_never_move(ball):
    """A feature with one category, and a leaf whose cell allows one value."""
    rng = np.random.default_rng(79)
    document = make(NAIVE, rng, features=2, sizes=(1, 1))
    rows = [[0, 0]]
    assert check(document, rows, ball, ("features",)).tolist() == [math.inf]
    plain = {"features": [{"name": "x0", "categories": ["a", "b"]}], "classes": ["c0", "c1"]}
    leaves = [
        {"class_probs": [0.75, 0.25], "feature_probs": [[1.0, 0.0]], "rows": 6},
        {"class_probs": [0.25, 0.75], "feature_probs": [[0.0, 1.0]], "rows": 2},
    ]
    split = {"feature": 0, "left_values": [0], "weights": [0.75, 0.25], "left": 1, "right": 2}
    forest = header(FOREST, **plain, version=2)
    forest["trees"] = [{"nodes": [{**split, "rows": 8}, *leaves]}]
    for sizes in ("equal", "rows"):
        found = check(forest, [[0], [1]], ball, ("leaf_features",), sizes)
        assert found.tolist() == [math.inf] * 2


def header(kind, *, classes, features, version=1):
    return {
        "format": "robustq-model",
        "version": version,
        "kind": kind,
        "classes": classes,
        "features": features,
    }


# Laws


@every_ball
@every_kind
@pytest.mark.parametrize("sizes", ["equal", "rows"])
def test_all_flips_no_later_than_any_part(kind, ball, sizes):
    rng = np.random.default_rng(80)
    for zeros in (0.0, 0.3):
        document = make(kind, rng, zeros=zeros)
        model = read(document)
        table = as_table(document, random_rows(rng, document, 20, missing=0.2))
        whole = model.robustness(table, ball, **options("all", sizes))
        names = [part for part in PARTS[kind] if (part,) not in UNCOUNTED or sizes == "equal"]
        for part in (*names, "feature:x0", "feature:x1"):
            alone = model.robustness(table, ball, **options((part,), sizes))
            assert np.all(whole <= alone * (1 + 1e-9)), part


@every_ball
@every_kind
@pytest.mark.parametrize("sizes", ["equal", "rows"])
def test_parts_in_any_order_give_the_same_bits(kind, ball, sizes):
    rng = np.random.default_rng(81)
    document = make(kind, rng)
    model = read(document)
    table = as_table(document, random_rows(rng, document, 12, missing=0.2))
    names = [*PARTS[kind], "feature:x0"]
    orders = list(itertools.permutations(names))[:: 1 if kind == NAIVE else 31]
    found = [model.robustness(table, ball, **options(order, sizes)) for order in orders]
    assert all(np.array_equal(found[0], other) for other in found)
    assert np.array_equal(found[0], model.robustness(table, ball, **options("all", sizes)))


@every_ball
@every_kind
def test_equal_rows_rescale_equal_sizes(kind, ball):
    """δ of the rows is the δ of the ball, brought back through δ/n or δ/(n+δ)."""
    rng = np.random.default_rng(82)
    count = 25
    document = with_equal_rows(make(kind, rng), count)
    model = read(document)
    table = as_table(document, random_rows(rng, document, 20, missing=0.2))
    parts = tuple(part for part in PARTS[kind] if part != "root")
    equal = model.robustness(table, ball, **options(parts, "equal"))
    rows = model.robustness(table, ball, **options(parts, "rows"))
    share = rows / (count + rows) if ball in ("epsilon", "odds_ratio") else rows / count
    # Where all records are lost only in the limit, no number of them does it.
    finite = np.isfinite(rows)
    np.testing.assert_allclose(share[finite], equal[finite], rtol=1e-8)
    limit = 1.0 if ball == "epsilon" else math.inf
    assert np.all(equal[~finite] >= limit)


@every_ball
@every_kind
def test_names_say_parts_and_sizes(kind, ball):
    rng = np.random.default_rng(83)
    document = make(kind, rng)
    model = read(document)
    table = as_table(document, random_rows(rng, document, 10, missing=0.2))
    meant = {
        ball: {},
        f"{ball}_all": {"parts": "all"},
        f"{ball}_rows": {"sizes": "rows"},
        f"{ball}_all_rows": {"parts": "all", "sizes": "rows"},
        f"{ball}_joint": {"parts": "joint"},
    }
    found = model.assess(table, list(meant))
    assert list(found.robustness) == list(found.tipping_class) == list(meant)
    for name, given in meant.items():
        assert np.array_equal(found.robustness[name], model.robustness(table, name))
        assert np.array_equal(found.robustness[name], model.robustness(table, ball, **given))


@every_kind
def test_models_name_their_parts(kind):
    rng = np.random.default_rng(84)
    assert sorted(read(make(kind, rng)).parts) == sorted(PARTS[kind])
    assert sorted(read(without_rows(make(kind, rng))).parts) == sorted(PARTS[kind])


@every_kind
def test_naive_bayes_is_perturbed_as_a_whole_by_default_and_forests_are_not(kind):
    rng = np.random.default_rng(85)
    document = make(kind, rng)
    model = read(document)
    table = as_table(document, random_rows(rng, document, 20))
    plain, whole = (model.robustness(table, name) for name in ("tv", "tv_all"))
    weights = model.robustness(table, "tv", parts=["weights"]) if kind == FOREST else whole
    assert np.array_equal(plain, weights)
    assert np.array_equal(plain, whole) == (kind == NAIVE)


@every_ball
@every_kind
def test_documents_keep_rows(kind, ball):
    rng = np.random.default_rng(86)
    document = make(kind, rng, zero_rows=0.2)
    table = as_table(document, random_rows(rng, document, 10, missing=0.2))
    model = read(document)
    again = read(model.to_dict())
    assert model.to_dict() == again.to_dict()
    assert model.to_dict()["version"] == 2
    assert model.to_dict().get("rows") == document.get("rows")
    for name in (f"{ball}_all_rows", f"{ball}_rows"):
        assert np.array_equal(model.robustness(table, name), again.robustness(table, name))


@every_ball
@every_kind
@pytest.mark.parametrize("ending", ["all", "rows", "all_rows", "joint"])
def test_rows_in_any_order_and_any_blocks_give_the_same_bits(kind, ball, ending):
    rng = np.random.default_rng(87)
    document = make(kind, rng)
    model = read(document)
    table = as_table(document, random_rows(rng, document, 24, missing=0.2))
    name = f"{ball}_{ending}"
    plain = model.robustness(table, name)
    order = rng.permutation(len(table))
    assert np.array_equal(model.robustness(table[order], name), plain[order])
    pieces = [table[:1], table[1:4], table[4:5], table[5:]]
    parts = [model.robustness(piece, name) for piece in pieces]
    assert np.array_equal(np.concatenate(parts), plain)


@every_kind
@pytest.mark.parametrize("name", ["epsilon_all", "tv_all_rows", "chi2_all", "odds_ratio_all"])
def test_many_rows_on_many_threads_give_the_same_bits(kind, name):
    rng = np.random.default_rng(88)
    document = make(kind, rng)
    model = read(document)
    table = as_table(document, random_rows(rng, document, 40, missing=0.2))
    few = model.assess(table, [name])
    many = model.assess(np.tile(table, (500, 1)), [name])
    assert np.array_equal(many.robustness[name], np.tile(few.robustness[name], 500))
    assert np.array_equal(many.tipping_class[name], np.tile(few.tipping_class[name], 500))
    if kind == FOREST:
        alone = read(document).set_params(n_jobs=1)
        assert np.array_equal(alone.robustness(table, name), few.robustness[name])


# Refusals


@every_kind
def test_sizes_by_rows_need_rows(kind):
    rng = np.random.default_rng(89)
    document = make(kind, rng)
    table = as_table(document, random_rows(rng, document, 2))
    old = read(without_rows(document))
    for given in ({"sizes": "rows"}, {"parts": "all", "sizes": "rows"}):
        with pytest.raises(RobustqError, match="rows"):
            old.robustness(table, "tv", **given)
    with pytest.raises(RobustqError, match="rows"):
        old.robustness(table, "tv_all_rows")
    if kind == FOREST:
        with pytest.raises(RobustqError, match="root"):
            read(document).robustness(table, "tv", parts=["root"], sizes="rows")
    else:
        given_prior = read(make(kind, np.random.default_rng(89), prior_rows=False))
        with pytest.raises(RobustqError, match="prior"):
            given_prior.robustness(table, "tv", parts=["prior"], sizes="rows")


@every_kind
@pytest.mark.parametrize("whole", WHOLES)
def test_a_mass_function_as_a_whole_has_no_rows(kind, whole):
    rng = np.random.default_rng(90)
    document = make(kind, rng)
    table = as_table(document, random_rows(rng, document, 2))
    with pytest.raises(RobustqError, match="rows"):
        read(document).robustness(table, "tv", parts=whole, sizes="rows")


def test_a_joint_with_numbers_is_refused():
    rng = np.random.default_rng(91)
    document = make(FOREST, rng, numeric=True)
    table = as_table(document, random_rows(rng, document, 2))
    model = read(document)
    for ask in ({"perturbation": "tv_joint"}, {"perturbation": "tv", "parts": "joint"}):
        with pytest.raises(RobustqError, match=r"number|numeric|densit"):
            model.robustness(table, **ask)
    assert np.all(model.robustness(table, "tv", parts="posterior") > 0)


@pytest.mark.parametrize(
    ("kind", "given", "meant"),
    [
        (NAIVE, ["pior"], "prior"),
        (NAIVE, ["prior", "feature"], "features"),
        (NAIVE, ["feature:x00"], "x0"),
        (FOREST, ["wieghts"], "weights"),
        (FOREST, ["leaf_clases"], "leaf_classes"),
        (FOREST, ["prior"], "leaf_classes"),
        (FOREST, "al", "all"),
        (FOREST, ["feature:z"], "x0"),
    ],
)
def test_unknown_parts_are_refused_with_the_nearest_or_known_names(kind, given, meant):
    rng = np.random.default_rng(92)
    document = make(kind, rng)
    table = as_table(document, random_rows(rng, document, 1))
    with pytest.raises(RobustqError, match=meant) as caught:
        read(document).robustness(table, "tv", parts=given)
    unknown = given if isinstance(given, str) else given[-1]
    assert unknown.removeprefix("feature:") in str(caught.value)


@every_kind
def test_what_contradicts_itself_is_refused(kind):
    rng = np.random.default_rng(93)
    document = make(kind, rng)
    table = as_table(document, random_rows(rng, document, 1))
    model = read(document)
    with pytest.raises(RobustqError, match="tv_all"):
        model.robustness(table, "tv_all", parts=[PARTS[kind][-1]])
    with pytest.raises(RobustqError, match="tv_joint"):
        model.assess(table, ["epsilon", "tv_joint"], parts="all")
    with pytest.raises(RobustqError, match="rows"):
        model.robustness(table, "tv", sizes="row")
    with pytest.raises(RobustqError, match="tv"):
        model.robustness(table, "tv_al")


@pytest.mark.parametrize("ending", ["all", "joint", "rows", "all_rows"])
def test_endings_are_reserved(ending):
    class Mine(Perturbation):
        name = f"mine_{ending}"

        def lower_expectation(self, q, f, delta):
            return np.min(f, axis=-1)

    with pytest.raises(RobustqError, match=f"mine_{ending}"):
        register(Mine)


# Numbers that were wrong


def chain(weights, probs):
    """Return a tree that splits off one value after the other; the last two end deepest."""
    size = len(weights) + 2
    nodes = []
    for level, weight in enumerate(weights):
        nodes.append(
            {
                "feature": 0,
                "left_values": [level],
                "weights": [1 - weight, weight],
                "left": 2 * level + 1,
                "right": 2 * level + 2,
            }
        )
        own = [float(code == level) for code in range(size)]
        nodes.append({"class_probs": [0.25, 0.25, 0.5], "feature_probs": [own]})
    nodes.append({"class_probs": probs, "feature_probs": [[0.0] * len(weights) + [0.5, 0.5]]})
    return {"nodes": nodes}


@every_ball
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_tie_with_one_rival_and_not_with_another_is_zero(ball, place):
    """Weights multiplied in another order tie exactly, and differ in the last digit of floats."""
    rng = np.random.default_rng(94)
    categories = [f"v{code}" for code in range(7)]
    for _ in range(5):
        # Multiples of 2^−10: what is beside them is exact.
        weights = (rng.integers(100, 900, 5) / 1024).tolist()
        mirrored = [[0.5, 0.375], [0.375, 0.5]]
        probs = [[*pair[:place], 0.125, *pair[place:]] for pair in mirrored]
        document = header(
            FOREST,
            classes=["c0", "c1", "c2"],
            features=[{"name": "x0", "categories": categories}],
        )
        orders = (weights, weights[::-1])
        document["trees"] = [chain(w, p) for w, p in zip(orders, probs, strict=True)]
        assert check(document, [[6], [5]], ball).tolist() == [0.0, 0.0]


def tiny_trees(tiny, count, weights, probs):
    """Return a forest of stumps on x0: the first one likely, the others (tiny)^count times less."""
    features = [{"name": f"x{i}", "categories": ["a", "b"]} for i in range(count + 2)]
    document = header(FOREST, classes=["c0", "c1"], features=features)
    document["trees"] = []
    for index, (weight, own) in enumerate(zip(weights, probs, strict=True)):
        p = tiny if index else 0.5
        rest = [[0.5, 0.5], *([[p, 1 - p]] * count)]
        split = {"feature": 0, "left_values": [0], "left": 1, "right": 2}
        leaves = [
            {"class_probs": c, "feature_probs": [cell, *rest]}
            for c, cell in ((own, [1.0, 0.0]), ([0.5, 0.5], [0.0, 1.0]))
        ]
        document["trees"].append({"nodes": [{**split, "weights": [weight, 1 - weight]}, *leaves]})
    return document


@every_ball
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_leaves_of_hardly_any_mass_decide_after_the_others_are_gone(ball, missing):
    """2^−2600 of the largest: nothing beside it, and all that is left when its weight is gone."""
    document = tiny_trees(2.0**-66, 40, [2.0**-8, 1 - 2.0**-8], [[0.75, 0.25], [0.75, 0.25]])
    row = [0, None if missing else 0, *([0] * 40)]
    found = check(document, [row], ball)
    expected = {"tv": 1 - 2.0**-8, "epsilon": 1.0, "chi2": 255.0, "pari_mutuel": 255.0}
    if ball in expected:
        np.testing.assert_allclose(found, expected[ball], rtol=1e-9)
    against = tiny_trees(2.0**-66, 40, [2.0**-8, 1 - 2.0**-8], [[0.75, 0.25], [0.25, 0.75]])
    check(against, [row], ball)
    between = tiny_trees(
        2.0**-66, 40, [2.0**-8, 0.75, 0.5], [[0.75, 0.25], [0.875, 0.125], [0.25, 0.75]]
    )
    check(between, [row], ball)


@every_ball
@pytest.mark.parametrize("leader", [0, 1])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_a_lead_too_small_for_a_float_decides_where_all_else_ties(ball, leader, missing):
    """The likely tree has no preference: one of 2^−660 of its probability has the say."""
    lead = [0.75, 0.25] if leader == 0 else [0.25, 0.75]
    document = tiny_trees(2.0**-66, 10, [0.5, 0.25, 0.5], [[0.5, 0.5], lead, [0.5, 0.5]])
    row = [0, None if missing else 0, *([0] * 10)]
    assert check(document, [row], ball)[0] > 0.0
    assert read(document).predict(as_table(document, [row])).tolist() == [f"c{leader}"]


def one_ulp_apart(rng):
    """Return a naive Bayes model whose classes have the same factors but for one last digit.

    The factors stand in another order in each class, so that floats round their product
    differently.
    """
    count = int(rng.integers(2, 7))
    factors = rng.uniform(0.05, 0.95, count)
    classes = [factors, rng.permutation(factors)]
    bumped = classes[int(rng.integers(2))]
    at = int(rng.integers(count))
    bumped[at] = np.nextafter(bumped[at], rng.choice([0.0, 1.0]))
    features = [{"name": f"x{i}", "categories": ["a", "b"]} for i in range(count)]
    document = header(NAIVE, classes=["c0", "c1"], features=features)
    prior = float(rng.choice([0.5, 0.25]))
    document["classes"] = ["c0", "c1", "c2"] if prior < 0.5 else ["c0", "c1"]
    document["class_probs"] = [prior, prior, 0.5] if prior < 0.5 else [prior, prior]
    document["feature_probs"] = [
        [[float(c[i]), 1 - float(c[i])] for c in classes] + [[1e-3, 1 - 1e-3]] * (prior < 0.5)
        for i in range(count)
    ]
    return document


@every_ball
def test_classes_one_last_digit_apart_do_not_tie(ball):
    rng = np.random.default_rng(95)
    for _ in range(60 if ball == "kl" else 100):
        document = one_ulp_apart(rng)
        found = check(document, [[0] * len(document["features"])], ball)
        assert 0.0 < found[0] < 1e-14


@every_ball
@pytest.mark.parametrize("parts", [None, ("features",), "joint", "posterior"])
def test_five_hundred_times_one_last_digit(ball, parts):
    rng = np.random.default_rng(96)
    for _ in range(500 if parts is None and ball in ("tv", "chi2") else 80):
        document = one_ulp_apart(rng)
        found = check(document, [[0] * len(document["features"])], ball, parts)
        assert 0.0 < found[0] < 1e-14


def two_classes(prior, *tables):
    """Return a naive Bayes document of two classes, or more."""
    features = [{"name": f"x{i}", "categories": ["a", "b"]} for i in range(len(tables))]
    document = header(NAIVE, classes=[f"c{c}" for c in range(len(prior))], features=features)
    document["class_probs"] = list(prior)
    document["feature_probs"] = [[[p, 1 - p] for p in table] for table in tables]
    return document


@pytest.mark.parametrize("other", [1e-30, 1e-60, 1e-100, 1e-300])
def test_odds_ratios_too_near_to_one_to_tell_are_one(other):
    naive = two_classes([0.5, 0.5], [0.5, other], [0.75, 2.0**-20])
    forest = tiny_trees(other, 1, [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]])
    for parts in (None, "all"):
        for document, row in ((naive, [0, 0]), (forest, [0, 0, 0]), (forest, [0, None, 0])):
            found = check(document, [row], "odds_ratio", parts)
            assert np.isfinite(found[0])
            model, table = read(document), as_table(document, [row])
            found = model.assess(table, ["odds_ratio"], **options(parts, "equal"))
            assert next(iter(found.tipping_class.values())).tolist() == ["c1"]
    assert check(naive, [[0, 0]], "odds_ratio", ("feature:x0",))[0] == 1.0 or other > 1e-40
    assert check(forest, [[0, 0, 0]], "odds_ratio")[0] == 1.0


@pytest.mark.parametrize("ball", ["odds_ratio", "kl", "chi2", "tv"])
@pytest.mark.parametrize("least", [1e-8, 1e-13, 1e-20])
@pytest.mark.parametrize("parts", [None, ("prior",), ("features",)])
def test_tiny_priors_are_exact(ball, least, parts):
    rng = np.random.default_rng(97)
    half = 0.5 - least
    for prior in ([least, 1 - least], [1 - least, least], [least, half, 0.5], [0.5, least, half]):
        for _ in range(2):
            tables = rng.uniform(0.01, 0.99, (3, len(prior)))
            # The rare class is made likely in some features, the others are not.
            tables[:2, int(np.argmin(prior))] = 0.9
            tables[:2, int(np.argmax(prior))] = rng.choice([least, 0.3])
            check(two_classes(prior, *tables.tolist()), [[0, 0, 0], [0, 0, 1]], ball, parts)


@pytest.mark.parametrize("ball", ["kl", "odds_ratio", "chi2", "pari_mutuel", "tv"])
@pytest.mark.parametrize("tiny", [1e-12, 1e-100, 1e-300])
@pytest.mark.parametrize("parts", [None, ("features",), ("feature:x0",), "joint"])
def test_tiny_probabilities_are_exact(ball, tiny, parts):
    documents = [
        two_classes([0.5, 0.5], [tiny, tiny / 4], [0.5, 0.25]),
        two_classes([0.25, 0.75], [tiny, 0.0], [0.5, 0.5]),
        two_classes([0.5, 0.5], [0.5, tiny], [tiny, 0.75]),
        two_classes([0.5, 0.25, 0.25], [tiny, tiny / 2, tiny / 3], [1 - 2.0**-50, 0.5, 0.25]),
    ]
    for document in documents:
        check(document, [[0, 0], [0, None], [1, 0]], ball, parts)


@pytest.mark.parametrize("tiny", [1e-12, 1e-100])
@pytest.mark.parametrize("parts", [None, "all", ("weights", "leaf_features")])
def test_tiny_leaves_and_weights_are_exact_under_kl(tiny, parts):
    document = tiny_trees(tiny, 2, [0.5, 0.25], [[0.25, 0.75], [1.0, 0.0]])
    document["trees"][0]["nodes"][0]["weights"] = [tiny, 1 - tiny]
    document["trees"][0]["nodes"][2]["class_probs"] = [0.25, 0.75]
    check(document, [[0, 0, 0, 0], [None, 0, 0, 0], [0, None, 0, 1]], "kl", parts)


@every_ball
@every_kind
def test_what_is_impossible_ties(kind, ball):
    """No class can have made the row: a tie of all, whatever is perturbed."""
    rng = np.random.default_rng(98)
    document = make(kind, rng, classes=3, features=2, sizes=(3, 3))
    tables = document.get("feature_probs", [[]])[0]
    for tree in document.get("trees", []):
        tree["nodes"] = [{"rows": 5, "class_probs": random_mass(rng, 3), "feature_probs": None}]
        tables = tree["nodes"][0]["feature_probs"] = [[], random_mass(rng, 3)]
        tables[0] = [0.5, 0.5, 0.0]
    if kind == NAIVE:
        tables[:] = [[0.5, 0.5, 0.0]] * 3
    for parts in (None, "all", "joint", "posterior"):
        assert check(document, [[2, 0], [2, None]], ball, parts).tolist() == [0.0, 0.0]


@every_ball
@every_kind
def test_one_class_never_flips(kind, ball):
    rng = np.random.default_rng(99)
    document = make(kind, rng, classes=1)
    rows = random_rows(rng, document, 2, missing=0.2)
    for parts in ("all", "joint", "posterior"):
        assert check(document, rows, ball, parts).tolist() == [math.inf, math.inf]
