"""Random forests as documents, and Theorem 3's recursion over them, to the letter.

Nothing here uses the library's own arrays: the recursion reads the document of `to_dict`, visits
every node, and computes with 60 digits.
"""

from typing import Any

import numpy as np

from tests.arithmetic import mpf, truncated_normal
from tests.perturbations.exact import EXACT

FAST = ("epsilon", "tv", "chi2", "pari_mutuel")
KNOWN = (*FAST, "odds_ratio", "kl")


def random_document(
    rng, *, trees=None, classes=None, features=None, depth=4, zeros=0.2, wide=False
):
    """Make a forest of random trees over categories and numbers."""
    classes = classes or int(rng.integers(2, 6))
    trees = trees or int(rng.integers(1, 31))
    features = features or int(rng.integers(1, 6))
    kinds = []
    for index in range(features):
        if rng.random() < 0.3:
            kinds.append({"name": f"x{index}", "numeric": True})
        else:
            size = int(rng.integers(66, 90)) if wide else int(rng.integers(1, 6))
            kinds.append({"name": f"x{index}", "categories": list(range(size))})
    return {
        "format": "robustq-model",
        "version": 1,
        "kind": "generative_forest",
        "classes": list(range(classes)),
        "features": kinds,
        "trees": [
            {"nodes": random_nodes(rng, kinds, classes, int(rng.integers(0, depth + 1)), zeros)}
            for _ in range(trees)
        ],
    }


def random_nodes(rng, kinds, classes, depth, zeros):
    cell = [
        (-np.inf, np.inf) if "numeric" in kind else list(range(len(kind["categories"])))
        for kind in kinds
    ]
    nodes: list[Any] = []
    add_node(rng, nodes, cell, classes, depth, zeros)
    return nodes


def add_node(rng, nodes, cell, classes, depth, zeros):
    index = len(nodes)
    nodes.append(None)
    open_features = [i for i, part in enumerate(cell) if isinstance(part, tuple) or len(part) > 1]
    if depth == 0 or not open_features or rng.random() < 0.1:
        nodes[index] = random_leaf(rng, cell, classes, zeros)
        return index
    feature = int(rng.choice(open_features))
    part = cell[feature]
    node: dict[str, Any] = {"feature": feature}
    if isinstance(part, tuple):
        low, high = max(part[0], -3.0), min(part[1], 3.0)
        node["threshold"] = float(rng.uniform(low, high))
        sides: list[Any] = [(part[0], node["threshold"]), (node["threshold"], part[1])]
    else:
        count = int(rng.integers(1, len(part)))
        left = sorted(int(v) for v in rng.choice(part, count, replace=False))
        node["left_values"] = left
        sides = [left, [v for v in part if v not in left]]
    weight = 0.0 if rng.random() < 0.05 * zeros else float(rng.beta(1.5, 1.5))
    node["weights"] = [weight, 1.0 - weight]
    nodes[index] = node
    for name, side in zip(("left", "right"), sides, strict=True):
        below = [*cell[:feature], side, *cell[feature + 1 :]]
        node[name] = add_node(rng, nodes, below, classes, depth - 1, zeros)
    return index


def random_leaf(rng, cell, classes, zeros):
    probs = []
    for part in cell:
        if isinstance(part, tuple):
            low, high = (None if np.isinf(end) else end for end in part)
            inside = float(np.clip(rng.normal(), max(part[0], -4), min(part[1], 4)))
            probs.append(
                {"mean": inside, "sd": float(rng.uniform(0.2, 2)), "low": low, "high": high}
            )
        else:
            probs.append(random_mass(rng, part, zeros))
    kind = rng.random()
    if kind < 0.15:
        # Ties between classes
        class_probs = np.full(classes, 1.0 / classes)
    else:
        class_probs = np.array(random_mass(rng, range(classes), zeros)[:classes])
    return {"class_probs": class_probs.tolist(), "feature_probs": probs}


def random_mass(rng, values, zeros):
    """Return a mass function on some values, 0 before and between them."""
    values = list(values)
    mass = rng.dirichlet(np.ones(len(values)))
    mass[rng.random(len(values)) < zeros] = 0.0
    mass = mass / mass.sum() if mass.sum() > 0 else np.full(len(values), 1.0 / len(values))
    full = np.zeros(max(values) + 1)
    full[values] = mass
    return full.tolist()


def finish(document):
    """Fill up mass functions to the number of categories."""
    for tree in document["trees"]:
        for node in tree["nodes"]:
            if "feature" not in node:
                for probs, kind in zip(node["feature_probs"], document["features"], strict=True):
                    if isinstance(probs, list):
                        probs.extend([0.0] * (len(kind["categories"]) - len(probs)))
    return document


def random_rows(rng, document, rows, missing=0.0):
    """Return rows as lists of categories, numbers and None."""
    made = []
    for _ in range(rows):
        row = [
            float(rng.normal()) if "numeric" in kind else int(rng.choice(kind["categories"]))
            for kind in document["features"]
        ]
        made.append([None if rng.random() < missing else value for value in row])
    return made


def joint(document, row, c):
    """Return p(c, f), every node visited."""
    return sum(mass(tree["nodes"], 0, row, c) for tree in document["trees"]) / len(
        document["trees"]
    )


def mass(nodes, index, row, c):
    node = nodes[index]
    if "feature" not in node:
        return mpf(node["class_probs"][c]) * likelihood(node, row)
    left, right = (mpf(w) for w in node["weights"])
    return left * mass(nodes, node["left"], row, c) + right * mass(nodes, node["right"], row, c)


def likelihood(leaf, row):
    product = mpf(1)
    for probs, value in zip(leaf["feature_probs"], row, strict=True):
        if value is not None:
            product *= (
                truncated_normal(probs, value) if isinstance(probs, dict) else mpf(probs[value])
            )
    return product


class Literal:
    """Theorem 3 for one row and two classes: V of every node, from the leaves to the roots."""

    def __init__(self, document, row, best, rival):
        self.trees = [self.prune(tree["nodes"], 0, row, best, rival) for tree in document["trees"]]

    def prune(self, nodes, index, row, best, rival):
        """Return V of a leaf, or weights and children; what is 0 throughout is 0 in any ball."""
        node = nodes[index]
        if "feature" not in node:
            gap = mpf(node["class_probs"][best]) - mpf(node["class_probs"][rival])
            return gap * likelihood(node, row) if gap else mpf(0)
        children = [self.prune(nodes, node[side], row, best, rival) for side in ("left", "right")]
        if all(isinstance(child, mpf) and child == 0 for child in children):
            return mpf(0)
        # Two floats sum to 1 but for their last digit, and that would count as a perturbation.
        weights = [mpf(w) for w in node["weights"]]
        return [w / sum(weights) for w in weights], children

    def margin(self, name, delta):
        return sum(self.value(tree, name, mpf(delta)) for tree in self.trees)

    def value(self, node, name, delta):
        if isinstance(node, mpf):
            return node
        weights, children = node
        values = [self.value(child, name, delta) for child in children]
        return EXACT[name](weights, values, delta)


def check_robustness(document, row, name, prediction, robustness, tipping, domain, tolerance=1e-9):
    """Assert that a robustness is where the recursion changes its sign, to 1e-9."""
    classes = len(document["classes"])
    rivals = {c: Literal(document, row, prediction, c) for c in range(classes) if c != prediction}
    if robustness == 0.0:
        assert rivals[tipping].margin(name, 0) <= 0
        return
    last = domain.end if domain.closed else (1e12 if np.isinf(domain.end) else 1 - 1e-12)
    below = min(robustness, last) * (1 - tolerance)
    for rival in rivals.values():
        assert rival.margin(name, below) > 0, (name, robustness)
    if np.isinf(robustness):
        assert tipping == -1
        assert all(rival.margin(name, last) > 0 for rival in rivals.values())
        return
    above = min(robustness * (1 + tolerance), domain.end)
    assert rivals[tipping].margin(name, above) <= 0, (name, robustness, tipping)
