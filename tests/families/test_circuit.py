"""Circuits: equal to the models they came from, right where they are nobody's, and checked."""

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import robustq
from robustq import (
    BayesianNetworkClassifier,
    CircuitClassifier,
    GenerativeForestClassifier,
    NaiveBayesClassifier,
    RobustqError,
    UnsupportedError,
)
from robustq.core import engine
from robustq.core.neighbourhoods import read
from robustq.perturbations import get
from robustq.tables import Table
from tests.core.documents import as_table, random_forest, random_naive_bayes, random_rows

HEADER: dict[str, Any] = {
    "format": "robustq-model",
    "version": 2,
    "kind": "circuit",
    "classes": ["a", "b"],
    "features": [
        {"name": "x", "categories": ["0", "1"]},
        {"name": "y", "categories": ["0", "1", "2"]},
        {"name": "z", "categories": ["0", "1"]},
    ],
}


def network(rng):
    """Make a tree-augmented network x → y → z as a circuit; p(z | y, c) is shared among x."""
    nodes = []

    def add(**node):
        nodes.append(node)
        return len(nodes) - 1

    def mass(size):
        return rng.dirichlet(np.ones(size)).tolist()

    def point(feature, size, value):
        return add(feature=feature, probs=np.eye(size)[value].tolist(), values=[value])

    products = []
    for c in range(2):
        last = [
            add(feature=2, probs=mass(2), part="features", rows=float(rng.integers(1, 9)))
            for _ in range(3)
        ]
        branches = []
        for value in range(2):
            below = [add(product=[point(1, 3, y), last[y]]) for y in range(3)]
            chosen = add(sum=below, weights=mass(3), part="features", rows=4.0, feature=1)
            branches.append(add(product=[point(0, 2, value), chosen]))
        first = add(sum=branches, weights=mass(2), part="features", rows=7.0, feature=0)
        indicator = add(class_probs=np.eye(2)[c].tolist())
        products.append(add(product=[indicator, first]))
    root = add(sum=products, weights=mass(2), part="prior", rows=20.0)
    return {**HEADER, "root": root, "nodes": nodes}


class Plain:
    """The recursion as it is written down: intervals for features, a signed value for the class."""

    def __init__(self, document, row, ball, delta, ahead, behind):
        self.nodes, self.row, self.ball, self.delta = document["nodes"], row, get(ball), delta
        self.payoff = np.zeros(len(document["classes"]))
        self.payoff[ahead], self.payoff[behind] = 1.0, -1.0

    def expect(self, node, q, f):
        f = np.asarray(f, dtype=float)
        if node.get("part") is None or len(q) == 1:
            return float(np.dot(q, f))
        return float(self.ball.lower_expectation(np.asarray(q), f, self.delta))

    def interval(self, index):
        node = self.nodes[index]
        if "product" in node:
            ends = [self.interval(child) for child in node["product"]]
            return tuple(float(np.prod([end[k] for end in ends])) for k in (0, 1))
        if "sum" in node:
            low, high = zip(*(self.interval(child) for child in node["sum"]), strict=True)
            w = node["weights"]
            return self.expect(node, w, low), -self.expect(node, w, [-u for u in high])
        value = self.row[node["feature"]]
        if value is None:
            return 1.0, 1.0
        lives = node.get("values", list(range(len(node["probs"]))))
        if value not in lives:
            return 0.0, 0.0
        q = [node["probs"][code] for code in lives]
        f = [float(code == value) for code in lives]
        return self.expect(node, q, f), -self.expect(node, q, [-x for x in f])

    def speaks(self, index):
        node = self.nodes[index]
        return "class_probs" in node or any(
            self.speaks(child) for child in node.get("product", node.get("sum", ()))
        )

    def value(self, index):
        node = self.nodes[index]
        if "class_probs" in node:
            return self.expect(node, node["class_probs"], self.payoff)
        if "sum" in node:
            return self.expect(node, node["weights"], [self.value(c) for c in node["sum"]])
        (own,) = [child for child in node["product"] if self.speaks(child)]
        value = self.value(own)
        ends = [self.interval(child) for child in node["product"] if child != own]
        return value * float(np.prod([end[0 if value > 0 else 1] for end in ends]))


def check_flip(document, row, ball, ahead, size):
    """Assert that the plain recursion is robust just before a size, and not just after it."""

    def robust(delta):
        plain = Plain(document, row, ball, delta, ahead, 1 - ahead)
        return plain.value(document["root"]) > 0.0

    end = get(ball).domain.largest if ball == "odds_ratio" else 1.0
    size = min(size, 1.0)
    slack = max(1e-8 * size, 1e-10)
    assert size <= slack or robust(size - slack), row
    assert size + slack > end or not robust(size + slack), row


def rows_with_gaps(document):
    choices = [[*range(len(f["categories"])), None] for f in document["features"]]
    return [list(row) for row in itertools.product(*choices)]


@pytest.mark.parametrize("ball", ["tv", "epsilon", "chi2", "odds_ratio"])
def test_a_network_with_shared_leaves_follows_the_recursion(ball):
    document = network(np.random.default_rng(5))
    model = CircuitClassifier.from_dict(document)
    rows = rows_with_gaps(document)[::2]
    found = model.assess(as_table(document, rows), ball)
    for row, label, size in zip(rows, found.prediction, found.robustness[ball], strict=True):
        check_flip(document, row, ball, int(label == "b"), size)


def test_its_probabilities_are_those_of_the_network():
    document = network(np.random.default_rng(6))
    model = CircuitClassifier.from_dict(document)
    rows = rows_with_gaps(document)
    joint = np.exp(model.predict_joint_log_proba(as_table(document, rows)))
    whole = [row for row in rows if None not in row]
    complete = joint[[None not in row for row in rows]]
    assert complete.sum() == pytest.approx(1.0)
    for row, found in zip(rows, joint, strict=True):
        agree = [
            all(a is None or a == b for a, b in zip(row, other, strict=True)) for other in whole
        ]
        assert found == pytest.approx(complete[agree].sum(axis=0))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["naive_bayes", "generative_forest"])
def test_a_circuit_equals_the_model_it_came_from(kind, seed, tmp_path):
    rng = np.random.default_rng(seed)
    zeros = 0.2 * (seed % 2)
    if kind == "naive_bayes":
        document = random_naive_bayes(rng, zeros=zeros)
        model = NaiveBayesClassifier.from_dict(document)
    else:
        document = random_forest(rng, zeros=zeros, numeric=seed % 4 == 0)
        model = GenerativeForestClassifier.from_dict(document)
    X = as_table(document, random_rows(rng, document, 6, 0.3 * (seed % 3 > 0)))
    circuit = model.to_circuit()
    assert circuit.parts == model.parts
    joint = circuit.predict_joint_log_proba(X)
    assert joint == pytest.approx(model.predict_joint_log_proba(X), rel=1e-12, abs=1e-12)
    names = ["tv", "epsilon_all", "chi2_rows", "kl", "odds_ratio_all"]
    if "rows" in document and document["rows"]["prior"] is None:
        names.remove("chi2_rows")
    ours, theirs = circuit.assess(X, names), model.assess(X, names)
    assert ours.prediction.tolist() == theirs.prediction.tolist()
    for name in names:
        assert ours.robustness[name] == pytest.approx(theirs.robustness[name], rel=1e-9)
    one = f"feature:{document['features'][0]['name']}"
    assert circuit.robustness(X, "tv", parts=[one]) == pytest.approx(
        model.robustness(X, "tv", parts=[one]), rel=1e-9
    )
    circuit.save(tmp_path / "circuit.robustq")
    for again in (
        robustq.load(tmp_path / "circuit.robustq"),
        CircuitClassifier.from_dict(circuit.to_dict()),
        pickle.loads(pickle.dumps(circuit)),  # noqa: S301
    ):
        assert again.to_dict() == circuit.to_dict()
        assert np.array_equal(again.robustness(X, "tv_all"), circuit.robustness(X, "tv_all"))
        assert np.array_equal(again.predict(X), model.predict(X))


def make_unlikely(rare, *, turned):
    """Return a mean of three products: one for the prediction, and two far less likely ones."""
    nodes: list[dict[str, Any]] = []
    features, children = 8, []
    pairs = [(0.9, 0.5), *[(0.9, rare), (0.45, rare)][:: -1 if turned else 1]]
    for ahead, value in pairs:
        first = len(nodes)
        nodes.append({"class_probs": [ahead, 1.0 - ahead], "part": None})
        probs: dict[str, Any] = {"probs": [value, 1.0 - value], "part": None}
        nodes.extend({"feature": i} | probs for i in range(features))
        nodes.append({"product": list(range(first, len(nodes)))})
        children.append(len(nodes) - 1)
    nodes.append({"sum": children, "weights": [0.3, 0.35, 0.35], "part": "root"})
    names = [{"name": f"x{i}", "categories": ["0", "1"]} for i in range(features)]
    document = HEADER | {"features": names, "nodes": nodes, "root": len(nodes) - 1}
    return CircuitClassifier.from_dict(document), as_table(document, [[0] * features])


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("ball", ["epsilon", "tv", "chi2", "pari_mutuel", "kl"])
def test_what_is_far_less_likely_decides_when_all_else_is_given_up(ball, general):
    found = []
    for rare, turned in itertools.product([1e-5, 1e-19, 1e-20, 1e-30, 1e-60, 1e-100], [0, 1]):
        model, X = make_unlikely(rare, turned=bool(turned))
        bound = read(ball, parts=["root"]).bind(model.model_, ())
        rows = model.encoding_.encode(Table.read(X))
        found += (
            engine.quantify(model.model_, rows, [bound], general=general).robustness[0].tolist()
        )
    # However much less likely: after the first one, the second gives way to the third.
    expected = {"epsilon": 1.0, "tv": 0.3 + 0.215 / 0.9}.get(ball, found[0])
    assert found == pytest.approx([expected] * 12, rel=1e-9)
    assert found[0] > {"chi2": 0.3 / 0.7, "kl": -np.log(0.7)}.get(ball, 0.5)


def test_ties_and_impossible_rows():
    model = NaiveBayesClassifier(smoothing=0.0).fit([["u", "v"], ["w", "x"]], ["a", "b"])
    circuit = model.to_circuit()
    X = [["u", "v"], ["u", "x"], [None, None]]
    assert circuit.robustness(X, "tv") == pytest.approx(model.robustness(X, "tv"), rel=1e-9)
    assert circuit.robustness(X, "tv")[1:].tolist() == [0.0, 0.0]
    one = NaiveBayesClassifier().fit([["u"], ["w"]], ["a", "a"]).to_circuit()
    assert one.robustness([["u"]], "tv").tolist() == [np.inf]


@pytest.mark.parametrize("structure", ["naive", "tan", "fan"])
def test_a_network_of_trees_equals_its_circuit(structure):
    rng = np.random.default_rng(11)
    y = rng.integers(0, 3, 300)
    columns = [y + rng.integers(0, 3, 300), rng.integers(0, 3, 300), rng.integers(0, 2, 300) + y]
    X = np.stack([*columns, columns[0] + rng.integers(0, 2, 300)], axis=1) % 4
    model = BayesianNetworkClassifier(structure).fit(X, y)
    circuit = model.to_circuit()
    assert circuit.parts == model.parts
    new = X[:20].astype(object)
    new[rng.random(new.shape) < 0.3] = None
    joint = circuit.predict_joint_log_proba(new)
    assert joint == pytest.approx(model.predict_joint_log_proba(new), rel=1e-12)
    names = ["tv", "epsilon", "chi2_rows", "kl", "odds_ratio", "tv_joint"]
    ours, theirs = circuit.assess(new, names), model.assess(new, names)
    for name in names:
        assert ours.robustness[name] == pytest.approx(theirs.robustness[name], rel=1e-9)
    one = ["feature:3"]
    assert circuit.robustness(new, "tv", parts=one) == pytest.approx(
        model.robustness(new, "tv", parts=one), rel=1e-9
    )


def test_other_networks_say_why_they_are_no_circuits():
    X, y = [["a", "b", "a"], ["b", "b", "b"], ["a", "a", "b"]] * 5, ["u", "v", "v"] * 5
    for structure in ("kdb", "aode"):
        with pytest.raises(RobustqError, match="no circuit"):
            BayesianNetworkClassifier(structure).fit(X, y).to_circuit()


def test_parts_that_nobody_named_are_never_perturbed():
    document = network(np.random.default_rng(1))
    for node in document["nodes"]:
        node.pop("part", None)
    model = CircuitClassifier.from_dict(document)
    assert model.parts == ()
    X = as_table(document, rows_with_gaps(document))
    assert np.all(np.isinf(model.robustness(X, "tv")))


def edit(change):
    document = copy.deepcopy(network(np.random.default_rng(2)))
    change(document)
    return document


def find(document, key, count=1):
    return [index for index, node in enumerate(document["nodes"]) if key in node][count - 1]


WRONG = {
    "there is no such node": lambda d: d["nodes"][d["root"]].update(sum=[0, 99]),
    "at least one": lambda d: d["nodes"][d["root"]].update(sum=[]),
    "one of sum, product": lambda d: d["nodes"].append({"something": 1}),
    "must be a dictionary": lambda d: d["nodes"].append(7),
    "root must be the position": lambda d: d.update(root=-1),
    "not reached from the root": lambda d: d["nodes"].append({"class_probs": [1, 0]}),
    "is below itself": lambda d: d["nodes"][find(d, "product")]["product"].append(d["root"]),
    "sum to 1": lambda d: d["nodes"][d["root"]].update(weights=[0.5, 0.4]),
    "has shape": lambda d: d["nodes"][d["root"]].update(weights=[0.5, 0.3, 0.2]),
    "which is none": lambda d: d["nodes"][0].update(feature=5),
    "different codes below 2": lambda d: d["nodes"][0].update(values=[0, 0]),
    "outside of where it lives": lambda d: d["nodes"][0].update(values=[0]),
    "give a name of its own": lambda d: d["nodes"][0].update(part="joint"),
    "counts, at least 0": lambda d: d["nodes"][0].update(rows=-1),
    "'z' twice": lambda d: d["nodes"][find(d, "product")]["product"].append(0),
    "which is no part": lambda d: d.update(default_parts=["leaves"]),
    "list of names": lambda d: d.update(parts="prior"),
    "does not speak of 'w'": lambda d: d.update(
        features=[*d["features"], {"name": "w", "categories": ["0"]}]
    ),
    "not all speak of": lambda d: (
        d["nodes"][find(d, "sum")]["sum"].append(0)
        or d["nodes"][find(d, "sum")].update(weights=[0.25] * 4)
    ),
    "needs mean and sd": lambda d: d["features"].__setitem__(2, {"name": "z", "numeric": True}),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said_of_the_node(words):
    with pytest.raises(RobustqError, match=words.replace("(", r"\(")):
        CircuitClassifier.from_dict(edit(WRONG[words]))


def test_what_is_shared_elsewhere_is_refused_with_the_reason():
    document: dict[str, Any] = {
        **HEADER,
        "features": HEADER["features"][:1],
        "root": 5,
        "nodes": [
            {"feature": 0, "probs": [0.5, 0.5], "part": "features"},
            {"class_probs": [1, 0]},
            {"class_probs": [0, 1]},
            {"product": [0, 1]},
            {"product": [0, 2]},
            {"sum": [3, 4], "weights": [0.5, 0.5], "part": "prior"},
        ],
    }
    with pytest.raises(RobustqError, match=r"nodes\[0\] stands below 2 nodes.*one and the same"):
        CircuitClassifier.from_dict(document)
    unsure = {"class_probs": [0.5, 0.5], "part": "classes"}
    document["nodes"][1] = document["nodes"][2] = unsure
    with pytest.raises(RobustqError, match=r"nodes\[0\] stands below 2 nodes"):
        CircuitClassifier.from_dict(document)
    again = {"sum": [2, 3], "weights": [0.5, 0.5]}
    nodes = [document["nodes"][0], unsure, {"product": [0, 1]}, {"product": [2]}, again]
    with pytest.raises(RobustqError, match=r"nodes\[2\] speaks of the class and stands below 2"):
        CircuitClassifier.from_dict({**document, "nodes": nodes, "root": 4})


def test_deep_nesting_is_refused_and_not_walked():
    nodes = [{"class_probs": [0.5, 0.5]}, *({"product": [at]} for at in range(5000))]
    with pytest.raises(RobustqError, match="nested too deeply"):
        CircuitClassifier.from_dict({**HEADER, "features": [], "root": 5000, "nodes": nodes})


def test_it_does_not_learn_and_says_so():
    with pytest.raises(UnsupportedError, match="from_dict"):
        CircuitClassifier().fit([["x"]], ["a"])
    with pytest.raises(RobustqError, match="not fitted"):
        CircuitClassifier().predict([["x"]])
