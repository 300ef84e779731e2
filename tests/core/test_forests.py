"""Robustness of forests: the fast path, the general path, and the recursion to the letter."""

import copy

import numpy as np
import pytest
from sklearn.datasets import load_digits

from robustq import GenerativeForestClassifier, UnsupportedError
from robustq.core import _path_kernels, engine, evidence
from robustq.core.neighbourhoods import read as read_neighbourhood
from robustq.families.forest import spreading
from robustq.families.forest.nodes import CHILD, FEATURE, LEAF, NARROW
from robustq.families.forest.spreading import Spreader
from robustq.perturbations import Perturbation, get
from robustq.tables import Table
from tests.arithmetic import log

from .forests import FAST, KNOWN, check_robustness, finish, joint, random_document, random_rows

every_fast_ball = pytest.mark.parametrize("name", FAST)
every_known_ball = pytest.mark.parametrize("name", KNOWN)


def read(document):
    return GenerativeForestClassifier.from_dict(finish(copy.deepcopy(document)))


def quantify(model, rows, balls, *, general=False):
    bound = [read_neighbourhood(ball).bind(model, ()) for ball in balls]
    return engine.quantify(model, rows, bound, general=bool(general))


def encode(model, rows):
    return model.encoding_.encode(Table.read(np.array(rows, dtype=object)))


def check_all(document, rows, name, *, general=False):
    model = read(document)
    ball = get(name)
    found = quantify(model.model_, encode(model, rows), [ball], general=general)
    document = finish(copy.deepcopy(document))
    for i, row in enumerate(rows):
        check_robustness(
            document,
            row,
            name,
            int(found.prediction[i]),
            float(found.robustness[0, i]),
            int(found.tipping[0, i]),
            ball.domain,
        )
    return found


@every_fast_ball
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_the_fast_path_is_exact(name, zeros):
    rng = np.random.default_rng(41)
    for _ in range(40):
        document = random_document(rng, zeros=zeros)
        check_all(document, random_rows(rng, document, 4), name)


def way_down(weights, gap, size):
    """Return a tree that a row of zeros goes down along these weights, ahead by a gap there."""
    last = len(weights)
    nodes = [
        {
            "feature": at,
            "left_values": [0],
            "weights": [weight, 1.0 - weight],
            "left": at + 1 if at + 1 < last else 2 * last,
            "right": last + at,
        }
        for at, weight in enumerate(weights)
    ]
    # Values are certain at leaves: all trees have the same mass where zeros end.
    aside = [
        {
            "class_probs": [0.5, 0.5],
            "feature_probs": [
                [0.0, 1.0] if feature == at else [1.0, 0.0] for feature in range(size)
            ],
        }
        for at in range(last)
    ]
    end = {"class_probs": [0.5 + gap / 2, 0.5 - gap / 2], "feature_probs": [[1.0, 0.0]] * size}
    return {"nodes": [*nodes, *aside, end]}


@pytest.mark.parametrize("name", ["tv", "chi2"])
def test_who_flips_just_before_the_last_tree_vanishes_is_found_there(name):
    # Next to where P vanishes, a step that is large for y is small for x = a (1 − e^(−y)).
    rng, size = np.random.default_rng(47), 11
    for _ in range(100):
        lengths, gaps = rng.integers(3, size + 1, 8), 10.0 ** -rng.uniform(0.3, 2.0, 8)
        gaps[0] = -(10.0 ** -rng.uniform(9.0, 14.0))
        trees = [
            way_down(rng.beta(3.0, 2.0, length).tolist(), gap, size)
            for length, gap in zip(lengths, gaps, strict=True)
        ]
        features = [{"name": f"x{i}", "categories": [0, 1]} for i in range(size)]
        document = document_of(*trees) | {"features": features}
        check_all(document, [[0] * size], name)


@every_known_ball
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_general_path_is_exact(name, missing):
    rng = np.random.default_rng(42)
    for _ in range(2 if name == "kl" else 6):
        document = random_document(rng, trees=int(rng.integers(1, 8)), depth=3)
        check_all(document, random_rows(rng, document, 8, missing), name, general=True)


@every_fast_ball
def test_both_paths_agree(name):
    rng = np.random.default_rng(43)
    for _ in range(5):
        document = random_document(rng)
        model = read(document)
        rows = encode(model, random_rows(rng, document, 60, missing=0.1))
        fast, general = (quantify(model.model_, rows, [get(name)], general=g) for g in (0, 1))
        np.testing.assert_allclose(fast.robustness, general.robustness, rtol=1e-9)
        assert np.array_equal(fast.prediction, general.prediction)


@every_fast_ball
def test_wide_features_are_exact(name):
    rng = np.random.default_rng(44)
    for _ in range(5):
        document = random_document(rng, trees=6, features=3, wide=True)
        check_all(document, random_rows(rng, document, 3), name)
        check_all(document, random_rows(rng, document, 2, missing=0.3), name)


def test_joint_probabilities_are_those_of_the_recursion():
    rng = np.random.default_rng(45)
    for _ in range(20):
        document = random_document(rng)
        model = read(document)
        rows = random_rows(rng, document, 4, missing=0.3)
        got = model.predict_joint_log_proba(np.array(rows, dtype=object))
        whole = finish(copy.deepcopy(document))
        for i, row in enumerate(rows):
            truth = [joint(whole, row, c) for c in range(len(document["classes"]))]
            logs = [float(log(p)) if p > 0 else -np.inf for p in truth]
            np.testing.assert_allclose(got[i], logs, rtol=1e-12, atol=1e-12)


def stump(weights, *leaves, size=2):
    """Return a tree that splits its first feature, value 0 from the others."""
    return {
        "nodes": [
            {"feature": 0, "left_values": [0], "weights": weights, "left": 1, "right": 2},
            *(
                {"class_probs": probs, "feature_probs": [cell]}
                for probs, cell in zip(leaves, cells(size), strict=True)
            ),
        ]
    }


def cells(size):
    rest = [0.0] + [1.0 / (size - 1)] * (size - 1)
    return [1.0] + [0.0] * (size - 1), rest


def leaf_tree(probs, size=2):
    return {"nodes": [{"class_probs": probs, "feature_probs": [[1.0 / size] * size]}]}


def document_of(*trees, classes=2, size=2):
    return {
        "format": "robustq-model",
        "version": 1,
        "kind": "generative_forest",
        "classes": list(range(classes)),
        "features": [{"name": "x", "categories": list(range(size))}],
        "trees": list(trees),
    }


def robustness(document, rows, name, **options):
    model = read(document)
    return quantify(model.model_, encode(model, rows), [get(name)], **options).robustness[0]


@pytest.mark.parametrize("general", [False, True])
def test_unanimous_forests_have_epsilon_robustness_one(general):
    rng = np.random.default_rng(46)
    trees = [
        stump([w, 1 - w], [0.9, 0.1], [0.6, 0.4]) for w in rng.uniform(0.05, 0.95, 25).tolist()
    ]
    found = robustness(document_of(*trees), [[0], [1]], "epsilon", general=general)
    assert found.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("general", [False, True])
@every_known_ball
def test_a_single_leaf_never_flips(name, general):
    document = document_of(leaf_tree([0.7, 0.3]), leaf_tree([0.6, 0.4]))
    assert robustness(document, [[0], [1]], name, general=general).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("general", [False, True])
@every_known_ball
def test_ties_are_exactly_zero(name, general):
    alike = stump([0.3, 0.7], [0.5, 0.5], [0.25, 0.75])
    mirrored = [stump([0.3, 0.7], p, [0.1, 0.9]) for p in ([0.8, 0.2], [0.2, 0.8])]
    for document in (document_of(alike), document_of(*mirrored)):
        assert robustness(document, [[0]], name, general=general).tolist() == [0.0]


@every_fast_ball
def test_products_in_any_order_tie(name):
    """Three weights multiplied in another order differ in their last digit."""
    rng = np.random.default_rng(47)
    for _ in range(20):
        weights = rng.uniform(0.1, 0.9, 5).tolist()
        chains = [
            chain(order, probs)
            for order, probs in ((weights, [0.7, 0.3]), (weights[::-1], [0.3, 0.7]))
        ]
        document = document_of(*chains, size=7)
        assert robustness(document, [[6]], name).tolist() == [0.0]


def chain(weights, probs, classes=2):
    """Return a tree that splits off one value after the other; the last value ends deepest."""
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
        own = [0.0] * size
        own[level] = 1.0
        nodes.append({"class_probs": [1.0 / classes] * classes, "feature_probs": [own]})
    own = [0.0] * len(weights) + [0.5, 0.5]
    nodes.append({"class_probs": probs, "feature_probs": [own]})
    return {"nodes": nodes}


@every_fast_ball
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
def test_near_ties_stay_exact(name, gap):
    trees = [
        stump([0.3, 0.7], [0.7 + gap, 0.3 - gap], [0.5, 0.5]),
        stump([0.3, 0.7], [0.3, 0.7], [0.5, 0.5]),
        stump([0.45, 0.55], [0.5, 0.5], [0.5, 0.5]),
    ]
    found = check_all(document_of(*trees), [[0]], name)
    assert 0.0 < found.robustness[0, 0] < 4 * gap


@every_fast_ball
@pytest.mark.parametrize("depth", [40, 400])
def test_long_paths_do_not_underflow(name, depth):
    rng = np.random.default_rng(48)
    trees = [
        chain(rng.uniform(0.01, 0.99, depth).tolist(), probs)
        for probs in ([0.9, 0.1], [0.2, 0.8], [0.7, 0.3])
    ]
    check_all(document_of(*trees, size=depth + 2), [[depth], [depth + 1]], name)


@every_fast_ball
@pytest.mark.parametrize("features", [60, 600])
def test_hundreds_of_features_do_not_underflow(name, features):
    rng = np.random.default_rng(49)
    document = random_document(rng, trees=5, classes=3, features=features, depth=5, zeros=0.0)
    for tree in document["trees"]:
        for node in tree["nodes"]:
            for probs in node.get("feature_probs", []):
                if isinstance(probs, list):
                    squeeze(rng, probs)
    check_all(document, random_rows(rng, document, 3), name)


def squeeze(rng, probs):
    """Give almost all mass to one value of a mass function, as hardly any smoothing would."""
    allowed = [i for i, p in enumerate(probs) if p > 0]
    keep = int(rng.choice(allowed))
    for i in allowed:
        probs[i] = 1e-9
    probs[keep] = 1.0 - 1e-9 * (len(allowed) - 1)


@every_fast_ball
def test_a_lead_too_small_for_a_float_decides_where_all_else_ties(name):
    """Where the likely tree has no preference, one of probability 1e-400 has the say."""
    features = [{"name": f"x{i}", "categories": [0, 1]} for i in range(21)]

    def tree(p, probs):
        split = {"feature": 0, "left_values": [0], "weights": [0.4, 0.6], "left": 1, "right": 2}
        rest = [[p, 1 - p]] * 20
        leaves = [
            {"class_probs": q, "feature_probs": [cell, *rest]}
            for q, cell in zip((probs, [0.5, 0.5]), cells(2), strict=True)
        ]
        return {"nodes": [split, *leaves]}

    document = document_of(tree(0.9, [0.5, 0.5]), tree(1e-20, [0.6, 0.4]), tree(1e-20, [0.5, 0.5]))
    document["features"] = features
    found = check_all(document, [[0] * 21], name)
    assert found.robustness[0, 0] > 0.0


def test_impossible_rows_tie_and_get_the_most_frequent_class():
    leaves = [
        {"class_probs": [0.2, 0.8], "feature_probs": [[1.0, 0.0, 0.0]]},
        {"class_probs": [0.4, 0.6], "feature_probs": [[0.0, 1.0, 0.0]]},
    ]
    split = {"feature": 0, "left_values": [0], "weights": [0.5, 0.5], "left": 1, "right": 2}
    model = read(document_of({"nodes": [split, *leaves]}, size=3))
    row = np.array([[2]])
    assert model.predict(row).tolist() == [1]
    assert model.predict_proba(row).tolist() == [[0.5, 0.5]]
    assert np.isneginf(model.log_likelihood(row)).all()
    result = model.assess(row)
    assert all(r.tolist() == [0.0] for r in result.robustness.values())
    assert result.tipping_class["tv"].tolist() == [0]


@every_fast_ball
def test_one_class_never_flips(name):
    rng = np.random.default_rng(50)
    document = random_document(rng, classes=1)
    rows = random_rows(rng, document, 3, missing=0.2)
    assert np.isinf(robustness(document, rows, name)).all()


@every_fast_ball
def test_relabelling_and_reordering_trees_change_nothing(name):
    rng = np.random.default_rng(51)
    for _ in range(10):
        document = random_document(rng, classes=4, zeros=0.0)
        rows = random_rows(rng, document, 5)
        order = rng.permutation(4)
        other = copy.deepcopy(document)
        other["trees"] = other["trees"][::-1]
        for tree in other["trees"]:
            for node in tree["nodes"]:
                if "class_probs" in node:
                    node["class_probs"] = [node["class_probs"][c] for c in order]
        np.testing.assert_allclose(
            robustness(document, rows, name), robustness(other, rows, name), rtol=1e-9
        )


def test_larger_balls_flip_earlier():
    """The inclusions of docs/perturbations.md, on two outcomes."""
    rng = np.random.default_rng(52)
    for _ in range(10):
        document = random_document(rng)
        rows = random_rows(rng, document, 20, missing=0.1)
        r = {name: robustness(document, rows, name) for name in KNOWN if name != "kl"}
        slack = 1 + 1e-9
        # ε-contamination of size δ lies within total variation of size δ.
        assert np.all(r["tv"] <= r["epsilon"] * slack)
        # Σ (q'−q)²/q ≤ δ implies ½ Σ |q'−q| ≤ √δ / 2.
        chi2 = r["chi2"]
        assert np.all((r["tv"] <= np.sqrt(chi2) / 2 * slack) | np.isinf(chi2))


def test_blocks_of_evidence_change_nothing(monkeypatch):
    rng = np.random.default_rng(53)
    document = random_document(rng, trees=9, features=4)
    rows = random_rows(rng, document, 40, missing=0.5)
    whole = robustness(document, rows, "odds_ratio")
    monkeypatch.setattr(evidence, "MOST_NODES", 50)
    assert np.array_equal(robustness(document, rows, "odds_ratio"), whole)


class Halved(Perturbation):
    """Total variation, twice as fast: only its lower expectation is given."""

    domain = get("tv").domain

    def lower_expectation(self, q, f, delta):
        return get("tv").lower_expectation(q, f, np.minimum(2.0 * np.asarray(delta), 1.0))


def test_a_ball_of_ones_own_works():
    rng = np.random.default_rng(54)
    for _ in range(5):
        document = random_document(rng)
        model = read(document)
        rows = encode(model, random_rows(rng, document, 10, missing=0.2))
        own = quantify(model.model_, rows, [Halved()])
        tv = quantify(model.model_, rows, [get("tv")])
        finite = np.isfinite(tv.robustness)
        np.testing.assert_allclose(own.robustness[finite], tv.robustness[finite] / 2, rtol=1e-9)
        assert np.array_equal(own.tipping[finite], tv.tipping[finite])


class Careless(Perturbation):
    """Gives one number, whatever it is asked."""

    def lower_expectation(self, q, f, delta):
        return 0.0


def test_a_ball_that_gives_too_few_numbers_is_named():
    document = document_of(stump([0.3, 0.7], [0.8, 0.2], [0.1, 0.9]))
    model = read(document)
    with pytest.raises(UnsupportedError, match="Careless"):
        quantify(model.model_, encode(model, [[0]]), [Careless()])


def dying(weight, probs):
    """Return a stump whose first leaf alone has an opinion."""
    return stump([weight, 1.0 - weight], probs, [0.5, 0.5])


@every_fast_ball
@pytest.mark.parametrize("weight", [0.816, 0.3, 0.0625, 0.7071])
def test_a_kink_is_not_taken_for_a_root(weight, name):
    """The largest tree vanishes, and a far smaller one still carries the prediction."""
    for tiny in (1e-9, 1e-13):
        rare = [tiny**1.2, 1.0 - tiny**1.2]
        against = {"nodes": [{"class_probs": [0.0, 1.0], "feature_probs": [rare]}]}
        trees = [dying(weight, [1.0, 0.0]), dying(0.9, [0.5 + tiny, 0.5 - tiny]), against]
        check_all(document_of(*trees), [[0]], name)
        check_all(document_of(*trees), [[None]], name)


@every_fast_ball
@pytest.mark.parametrize("weight", [0.999999, 0.9, 0.5, 1e-9])
def test_a_margin_that_falls_to_zero_and_stays_there_is_found(weight, name):
    constant = {"nodes": [{"class_probs": [0.75, 0.25], "feature_probs": [[1.0, 0.0]]}]}
    document = document_of(constant, dying(weight, [0.25, 0.75]))
    found = check_all(document, [[0]], name)
    assert np.isfinite(found.robustness).all()
    check_all(document, [[0]], name, general=True)


@every_fast_ball
def test_near_ties_of_rows_with_gaps_stay_exact(name):
    rng = np.random.default_rng(55)
    for gap in (1e-7, 1e-10, 1e-13):
        trees = [
            stump([w, 1.0 - w], [0.7 + gap, 0.3 - gap], [0.3, 0.7])
            for w in rng.uniform(0.2, 0.8, 3).tolist()
        ]
        trees += [
            stump([w, 1.0 - w], [0.3, 0.7], [0.7, 0.3])
            for w in (tree["nodes"][0]["weights"][0] for tree in trees)
        ]
        found = check_all(document_of(*trees), [[None]], name)
        assert 0.0 < found.robustness[0, 0] < 1e-3


def test_both_paths_agree_on_images_of_digits():
    """Sixty-four columns, ten classes, trees that vanish one after the other."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(int).astype(str).astype(object)
    learn = np.random.default_rng(0).random(len(y)) < 0.6
    model = GenerativeForestClassifier(random_state=0).fit(X[learn], y[learn])
    rows = model.encoding_.encode(Table.read(X[~learn][:40]))
    for name in ("tv", "chi2"):
        fast, general = (quantify(model.model_, rows, [get(name)], general=g) for g in (0, 1))
        np.testing.assert_allclose(fast.robustness, general.robustness, rtol=1e-9)


def descend(forest, node, row, numbers):
    """Return what a row reaches below a node: a leaf's number, or the node and both children."""
    feature, child = forest.nodes[node, FEATURE], int(forest.nodes[node, CHILD])
    if feature == LEAF:
        return child
    if forest.kinds[feature] == NARROW:
        right = not int(forest.arrays.sets[node, 1]) >> max(int(row[feature]), 0) & 1
    else:
        right = bool(numbers[forest.slots[feature]] > forest.arrays.thresholds[node, 1])
    goes = [row[feature] < 0 or side == right for side in (False, True)]
    sides = [descend(forest, child + k, row, numbers) if goes[k] else None for k in (0, 1)]
    return node, *sides


def unfold(reached, tree, row):
    """Return the same from what a kernel has found."""
    begin, _, origin = reached.trees[tree].tolist()
    end, _, last = reached.trees[tree + 1].tolist()
    entries = np.flatnonzero(reached.members[origin:last] == row)
    starts = reached.leaves[:, 1].searchsorted(origin + entries, side="right") - 1
    below = dict(zip(entries.tolist(), reached.leaves[starts, 0].tolist(), strict=True))
    # Children come before parents, and whatever is joined stands at the first entry.
    for node, first, middle, stop, joins, joined in reached.splits[begin:end].tolist():
        sides = [[k for k in below if a <= k < b] for a, b in ((first, middle), (middle, stop))]
        both = [(a, b) for a in sides[0] for b in sides[1]]
        pairs = list(zip(reached.ones[joins:joined], reached.others[joins:joined], strict=True))
        # Who goes both ways is joined, and nobody else is.
        assert both == [pair for pair in pairs if reached.members[origin + pair[0]] == row]
        if sides[0] or sides[1]:
            found = [below.pop(side[0]) if side else None for side in sides]
            below[(sides[0] or sides[1])[0]] = node, *found
    assert list(below) == [reached.tops[tree, row]]
    return below.popitem()[1]


@pytest.mark.parametrize("numeric", [False, True])
def test_rows_with_gaps_reach_what_a_plain_walk_finds(numeric, monkeypatch):
    rng = np.random.default_rng(56)
    X, y = rng.integers(0, 5, (300, 5)).astype(str).astype(object), rng.integers(0, 3, 300)
    if numeric:
        X[:, 0] = rng.normal(size=300)
    model = GenerativeForestClassifier(4, random_state=0).fit(X, y)
    X[rng.random(X.shape) < 0.4] = None
    rows = model.encoding_.encode(Table.read(X[:40]))
    forest = model.model_
    # There is little room, and then more.
    monkeypatch.setattr(spreading, "ENTRIES", 1)
    monkeypatch.setattr(spreading, "LEAST", 8)
    monkeypatch.setattr(spreading, "AT_ONCE", 21)
    monkeypatch.setattr(spreading, "NODES", 10**6)
    _, spread = Spreader(forest).read(rows.codes, rows.numbers)
    blocks = list(spread)
    assert [block for block, _ in blocks] == [slice(0, 21), slice(21, 40)]
    for block, reached in blocks:
        for i, row in enumerate(range(block.start, block.stop)):
            below = [unfold(reached, tree, i) for tree in range(forest.trees)]
            cells = rows.codes[row], rows.numbers[row]
            assert below == [descend(forest, root, *cells) for root in forest.roots[:-1].tolist()]


@pytest.fixture
def gappy(monkeypatch):
    """A forest, rows with gaps, some of them with nothing else, and what is found of them.

    From then on there is little room, and no recursion.
    """
    rng = np.random.default_rng(60)
    X, y = rng.integers(0, 5, (300, 6)).astype(str).astype(object), rng.integers(0, 3, 300)
    model = GenerativeForestClassifier(4, random_state=0).fit(X, y)
    X[rng.random(X.shape) < 0.3] = None
    X[40:50] = None
    rows = model.encoding_.encode(Table.read(X[:120]))
    found = quantify(model.model_, rows, [get("tv"), get("epsilon")])
    monkeypatch.setattr(engine._Work, "_solve_reached", None)
    monkeypatch.setattr(spreading, "ENTRIES", 1)
    monkeypatch.setattr(spreading, "LEAST", 8)
    return model.model_, rows, found


def assert_found_again(forest, rows, found):
    again = quantify(forest, rows, [get("tv"), get("epsilon")])
    np.testing.assert_array_equal(again.robustness, found.robustness)
    np.testing.assert_array_equal(again.tipping, found.tipping)


def test_rows_with_gaps_that_reach_more_than_is_kept_are_the_same_to_the_bit(gappy, monkeypatch):
    monkeypatch.setattr(spreading, "AT_ONCE", 50)
    monkeypatch.setattr(spreading, "NODES", 10**6)
    monkeypatch.setattr(spreading, "MOST_REACHED", 2000)
    assert_found_again(*gappy)


def test_fewer_rows_with_gaps_go_together_where_they_reach_much(gappy, monkeypatch):
    forest, rows, _ = gappy
    monkeypatch.setattr(spreading, "MOST", 500)
    _, spread = Spreader(forest).read(rows.codes, rows.numbers)
    blocks, reached = zip(*spread, strict=True)
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    assert blocks[-1].stop == 120
    assert len(blocks) > 10
    assert max(len(each.mass) for each in reached if each.tops.shape[1] > 1) <= 2000
    assert_found_again(*gappy)


@pytest.mark.parametrize("name", ["tv", "chi2"])
@pytest.mark.parametrize(("count", "trees", "depth"), [(500, 9, None), (2000, 25, 11)])
def test_rows_with_gaps_of_which_all_trees_vanish_need_no_recursion(
    count, trees, depth, name, monkeypatch
):
    # Of the larger forest, what is left before the last tree vanishes is small beside all leaves.
    rng = np.random.default_rng(59)
    X = rng.integers(0, 4, (count, 9)).astype(str).astype(object)
    y = (rng.random(count) < np.where(X[:, 0] == "0", 0.97, 0.03)).astype(int)
    model = GenerativeForestClassifier(trees, max_depth=depth, max_features=9, random_state=0)
    model.fit(X, y)
    X[rng.random(X.shape) < 0.2] = None
    rows = model.encoding_.encode(Table.read(X[:300]))
    general = quantify(model.model_, rows, [get(name)], general=True)
    monkeypatch.setattr(engine._Work, "_solve_reached", None)
    fast = quantify(model.model_, rows, [get(name)])
    np.testing.assert_allclose(fast.robustness, general.robustness, rtol=1e-9)


@pytest.mark.parametrize("name", ["tv", "chi2"])
def test_rows_with_gaps_that_hang_on_little_need_no_recursion(name, monkeypatch):
    """Of what leaves are worth next to nothing is left; yet no rounding could move the root."""
    rng = np.random.default_rng(60)
    X = rng.integers(0, 4, (600, 8)).astype(str).astype(object)
    y = (rng.random(600) < np.where(X[:, 0] == "0", 0.8, 0.1)).astype(int)
    model = GenerativeForestClassifier(9, max_depth=8, random_state=0).fit(X, y)
    X[rng.random(X.shape) < 0.25] = None
    rows = model.encoding_.encode(Table.read(X))
    general = quantify(model.model_, rows, [get(name)], general=True)
    monkeypatch.setattr(engine._Work, "_solve_reached", None)
    fast = quantify(model.model_, rows, [get(name)])
    np.testing.assert_allclose(fast.robustness, general.robustness, rtol=1e-9)


@pytest.mark.parametrize("name", ["tv", "chi2"])
@pytest.mark.parametrize("depth", [4, 40])
def test_a_row_with_gaps_of_which_little_is_left_is_exact(depth, name):
    """All weights vanish at once: what is left of their product is soon too small for a float."""
    trees = [chain([0.3] * depth + [0.5], [p, 1.0 - p]) for p in (0.9, 0.8)]
    for tree in trees:
        tree["nodes"][-2]["class_probs"] = [0.49, 0.51]
    found = check_all(document_of(*trees, size=depth + 3), [[None]], name)
    assert found.robustness[0, 0] == pytest.approx({"tv": 0.3, "chi2": 3 / 7}[name], rel=1e-9)


def test_what_is_left_of_a_row_with_gaps_leads_even_if_no_float_can_tell():
    """One tree vanishes at 0.3, until it turns; by then the other one underflows, but leads."""
    depth = 480
    early = chain([0.3] + [0.999] * (depth - 2) + [0.5], [0.9, 0.1])
    early["nodes"][-2]["class_probs"] = [0.49, 0.51]
    model = read(document_of(early, chain([0.5] * depth, [0.9, 0.1]), size=depth + 2))
    found = quantify(model.model_, encode(model, [[None]]), [get("tv")])
    # 0.8 (0.5 − x) = 0.02 (0.5 + x)
    assert found.robustness[0, 0] == pytest.approx(0.39 / 0.82, rel=1e-9)


@pytest.mark.parametrize("name", ["epsilon", "tv"])
def test_gaps_in_forests_of_which_some_trees_are_leaves_are_exact(name):
    rng = np.random.default_rng(58)
    constant = {"nodes": [{"class_probs": [0.4, 0.6], "feature_probs": [[1.0, 0.0]]}]}
    for weight in rng.uniform(0.3, 0.7, 5).tolist():
        trees = stump([weight, 1.0 - weight], [0.9, 0.1], [0.6, 0.4]), constant
        check_all(document_of(*trees), [[None]], name)


@every_fast_ball
def test_rows_with_gaps_agree_with_the_recursion_whatever_the_depth(name):
    rng = np.random.default_rng(57)
    X = rng.integers(0, 4, (600, 7)).astype(str).astype(object)
    y = (X[:, 0] == X[:, 1]).astype(int) + (rng.random(600) < 0.3)
    model = GenerativeForestClassifier(9, max_depth=None, random_state=0).fit(X, y)
    X[rng.random(X.shape) < 0.3] = None
    rows = model.encoding_.encode(Table.read(X[:60]))
    fast, general = (quantify(model.model_, rows, [get(name)], general=g) for g in (0, 1))
    np.testing.assert_allclose(fast.robustness, general.robustness, rtol=1e-9)
    assert np.array_equal(fast.tipping, general.tipping)


@every_fast_ball
def test_rivals_that_are_left_out_could_not_have_flipped_first(name):
    """Ten classes: nobody whose bounds were enough is searched for."""
    X, y = load_digits(return_X_y=True)
    X = (X[:, 20:44] // 4).astype(int)
    model = GenerativeForestClassifier(7, random_state=0).fit(X[::3], y[::3])
    rows = model.encoding_.encode(Table.read(X[1:1797:15]))
    fast, general = (quantify(model.model_, rows, [get(name)], general=g) for g in (0, 1))
    np.testing.assert_allclose(fast.robustness, general.robustness, rtol=1e-9)
    clear = np.isfinite(fast.robustness) & (fast.robustness < 0.3)
    assert np.array_equal(fast.tipping[clear], general.tipping[clear])


@pytest.mark.parametrize("name", ["tv", "chi2"])
def test_rows_with_gaps_and_many_classes_agree_with_the_recursion(name):
    """Ten classes, more than there are lanes; and a row by itself gets the same bits."""
    X, y = load_digits(return_X_y=True)
    X = (X[:, 20:44] // 4).astype(int).astype(str).astype(object)
    model = GenerativeForestClassifier(7, random_state=0).fit(X[::3], y[::3])
    some = X[1:1797:45]
    some[np.random.default_rng(62).random(some.shape) < 0.1] = None
    rows = model.encoding_.encode(Table.read(some))
    fast, general = (quantify(model.model_, rows, [get(name)], general=g) for g in (0, 1))
    np.testing.assert_allclose(fast.robustness, general.robustness, rtol=1e-9)
    for i in range(9):
        alone = quantify(model.model_, rows[i : i + 1], [get(name)])
        assert alone.robustness[0, 0] == fast.robustness[0, i]


@pytest.mark.parametrize("name", ["epsilon", "tv", "chi2"])
def test_a_row_with_gaps_has_the_same_bits_alone_and_in_company(name):
    """Also those that take longer than others, and go on by themselves."""
    rng = np.random.default_rng(63)
    X = rng.integers(0, 4, (600, 7)).astype(str).astype(object)
    y = (X[:, 0] == X[:, 1]).astype(int) ^ (rng.random(600) < 0.2)
    model = GenerativeForestClassifier(9, max_depth=None, random_state=0).fit(X, y)
    X[rng.random(X.shape) < 0.3] = None
    rows = model.encoding_.encode(Table.read(X[:300]))
    together = quantify(model.model_, rows, [get(name)])
    some = rng.permutation(300)[:50]
    for i in some.tolist():
        alone = quantify(model.model_, rows[i : i + 1], [get(name)])
        assert alone.robustness[0, 0] == together.robustness[0, i]
    others = quantify(model.model_, rows[some], [get(name)])
    np.testing.assert_array_equal(others.robustness, together.robustness[:, some])


def test_coarse_products_are_those_of_the_paths():
    rng = np.random.default_rng(61)
    parents = np.array([0, 0, 0, 1, 1, 3, 3])
    edges = np.stack([*rng.uniform(0.1, 1.0, (3, 7)), parents], axis=1)
    edges[0, :3] = 1.0, 0.0, 0.0
    points = np.linspace(0.01, 2.0, _path_kernels.POINTS)
    products = np.empty((7, 2, len(points)), dtype=np.float32)
    _path_kernels.find_products(edges, points, products)
    for node in range(7):
        lower, upper, at = np.ones_like(points), np.ones_like(points), node
        while at > 0:
            w, fall, rise, parent = edges[at]
            lower *= np.maximum(w - points * fall, 0.0) / w
            upper *= np.minimum(w + points * rise, 1.0) / w
            at = int(parent)
        np.testing.assert_allclose(products[node], [lower, upper], rtol=1e-5)
