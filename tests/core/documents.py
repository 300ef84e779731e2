"""Random models as plain documents (`to_dict`, version 2), and rows for them.

Probabilities are multiples of 2^−30 by default, so that they sum to one *exactly*, as floats and
as numbers: what a test finds is then never a matter of how sums that miss one are understood.
"""

from typing import Any

import numpy as np

GRID = 30
EDGE = 4.0  # means and thresholds of numbers lie within this


def random_naive_bayes(
    rng,
    *,
    classes=None,
    features=None,
    sizes=(1, 5),
    zeros=0.0,
    rows=True,
    zero_rows=0.0,
    prior_rows=True,
    grid=GRID,
):
    """Make a naive Bayes document.

    Parameters
    ----------
    rng : numpy.random.Generator
    classes, features : int, optional
        By default 2 to 5, and 1 to 6.
    sizes : pair of int
        How many categories a feature has: from the first to the second, both included.
    zeros : float
        The share of probabilities that are 0.
    rows : bool
        Whether the rows behind local mass functions are known; without them the document is of
        version 1.
    zero_rows : float
        The share of local mass functions with no row behind them.
    prior_rows : bool
        Whether the prior was counted.
    grid : int or None
        Probabilities are multiples of 2^−grid; None for any floats.
    """
    classes = classes or int(rng.integers(2, 6))
    features = features or int(rng.integers(1, 7))
    names = [_categorical(rng, index, sizes) for index in range(features)]
    made: dict[str, Any] = {
        **_header("naive_bayes", classes, names, rows=rows),
        "class_probs": random_mass(rng, classes, zeros=zeros, grid=grid),
        "feature_probs": [
            [
                random_mass(rng, len(name["categories"]), zeros=zeros, grid=grid)
                for _ in range(classes)
            ]
            for name in names
        ],
    }
    if rows:
        made["rows"] = {
            "prior": random_count(rng, zero_rows) if prior_rows else None,
            "features": [[random_count(rng, zero_rows) for _ in range(classes)] for _ in names],
        }
    return made


def random_forest(
    rng,
    *,
    trees=None,
    depth=3,
    classes=None,
    features=None,
    sizes=(1, 5),
    numeric=False,
    zeros=0.0,
    rows=True,
    zero_rows=0.0,
    grid=GRID,
):
    """Make the document of a generative forest.

    Parameters are those of `random_naive_bayes`, and:

    trees : int, optional
        By default 1 to 6.
    depth : int
        Of the deepest tree at most; some are single leaves.
    numeric : bool
        Whether some columns (the first one at least) are numbers.
    """
    trees = trees or int(rng.integers(1, 7))
    classes = classes or int(rng.integers(2, 6))
    features = features or int(rng.integers(2, 6))
    names: list[dict[str, Any]] = [
        {"name": f"x{index}", "numeric": True}
        if numeric and (index == 0 or rng.random() < 0.3)
        else _categorical(rng, index, sizes)
        for index in range(features)
    ]
    planter = _Planter(rng, classes, zeros, zero_rows if rows else None, grid)
    cell = [
        (-np.inf, np.inf) if "numeric" in name else list(range(len(name["categories"])))
        for name in names
    ]
    return {
        **_header("generative_forest", classes, names, rows=rows),
        "trees": [
            {"nodes": planter.plant(cell, names, int(rng.integers(0, depth + 1)))}
            for _ in range(trees)
        ],
    }


def random_network(
    rng, *, classes=None, features=None, sizes=(1, 4), tree=True, zeros=0.0, zero_rows=0.0
):
    """Make the document of a Bayesian network.

    Parameters are those of `random_naive_bayes`, and:

    tree : bool
        Whether every feature has the class and at most one feature as parents; else there are
        features that do not hang on the class, some with several parents, and it has parents too.
    """
    classes = classes or int(rng.integers(2, 5))
    features = features or int(rng.integers(3, 7))
    names = [_categorical(rng, index, sizes) for index in range(features)]
    order = rng.permutation(features).tolist()
    above: dict[Any, list[Any]] = {"class": []}
    for at, i in enumerate(order):
        if tree:
            above[i] = ["class", *(rng.permutation(order[:at])[:1].tolist() if at % 4 else [])]
            continue
        # The first two come before the class.
        own = [*(["class"] if at > 1 and rng.random() < 0.7 else [])]
        more = rng.permutation(order[:at])[: int(rng.integers(0, 3))].tolist()
        above[i] = rng.permutation(np.array([*own, *more], dtype=object)).tolist()
    if not tree:
        above["class"] = order[: int(rng.integers(1, 3))]
    tables = []
    for variable, parents in above.items():
        outcomes = classes if variable == "class" else len(names[variable]["categories"])
        count = 1
        for parent in parents:
            count *= classes if parent == "class" else len(names[parent]["categories"])
        probs = [random_mass(rng, outcomes, zeros=zeros) for _ in range(count)]
        rows = [random_count(rng, zero_rows) for _ in range(count)]
        tables.append({"variable": variable, "parents": parents, "probs": probs, "rows": rows})
    return {**_header("bayesian_network", classes, names, rows=True), "tables": tables}


def random_mixture(rng, *, classes=None, features=None, sizes=(1, 4), zeros=0.0, zero_rows=0.0):
    """Make the document of averaged networks; parameters are those of `random_naive_bayes`."""
    classes = classes or int(rng.integers(2, 5))
    features = features or int(rng.integers(2, 6))
    names = [_categorical(rng, index, sizes) for index in range(features)]

    def make_table(i, j):
        count = classes * (1 if i == j else len(names[j]["categories"]))
        return {
            "variable": i,
            "parents": ["class"] if i == j else ["class", j],
            "probs": [
                random_mass(rng, len(names[i]["categories"]), zeros=zeros) for _ in range(count)
            ],
            "rows": [random_count(rng, zero_rows) for _ in range(count)],
        }

    networks = [
        {
            "lead": j,
            "lead_rows": rng.integers(0, 4, len(names[j]["categories"])).tolist(),
            "tables": [make_table(i, j) for i in range(features)],
        }
        for j in range(features)
    ]
    return {
        **_header("network_mixture", classes, names, rows=True),
        "class_probs": random_mass(rng, classes, zeros=0.0),
        "rows": random_count(rng, zero_rows),
        "min_rows": 1,
        "networks": networks,
    }


def random_rows(rng, document, count, missing=0.0):
    """Return rows: category codes, numbers, and None for a missing cell."""
    made = []
    for _ in range(count):
        row = [
            float(rng.normal())
            if "numeric" in feature
            else int(rng.integers(len(feature["categories"])))
            for feature in document["features"]
        ]
        made.append([None if rng.random() < missing else value for value in row])
    return made


def as_table(document, rows):
    """Return rows of codes as an array of labels, as users give them."""
    table = np.empty((len(rows), len(document["features"])), dtype=object)
    for i, row in enumerate(rows):
        for j, (value, feature) in enumerate(zip(row, document["features"], strict=True)):
            known = value is not None and "categories" in feature
            table[i, j] = feature["categories"][value] if known else value
    return table


def without_rows(document):
    """Return a document of version 1: the same probabilities, and no rows behind them."""
    plain = {key: value for key, value in document.items() if key != "rows"}
    plain["version"] = 1
    if "trees" in plain:
        plain["trees"] = [
            {
                "nodes": [
                    {key: value for key, value in node.items() if key != "rows"}
                    for node in tree["nodes"]
                ]
            }
            for tree in plain["trees"]
        ]
    return plain


def with_equal_rows(document, count):
    """Return the same model with so many rows behind every local mass function."""
    other = dict(document)
    if "trees" in document:
        other["trees"] = [
            {"nodes": [{**node, "rows": count} for node in tree["nodes"]]}
            for tree in document["trees"]
        ]
    else:
        behind = [[count] * len(document["classes"]) for _ in document["features"]]
        other["rows"] = {"prior": count, "features": behind}
    return {**other, "version": 2}


def random_mass(rng, count, *, zeros=0.0, grid=GRID):
    """Return a mass function on so many outcomes."""
    mass = rng.dirichlet(np.full(count, rng.choice([0.5, 1.0, 4.0])))
    mass[rng.random(count) < zeros] = 0.0
    total = mass.sum()
    mass = mass / total if total > 0.0 else np.full(count, 1.0 / count)
    if grid is None:
        return mass.tolist()
    whole = np.floor(mass * 2.0**grid)
    whole[mass.argmax()] += 2.0**grid - whole.sum()
    return (whole / 2.0**grid).tolist()


def random_count(rng, zero_rows):
    """Return how many rows there are: mostly whole, sometimes weights, sometimes none."""
    if rng.random() < zero_rows:
        return 0
    if rng.random() < 0.2:
        return float(rng.integers(1, 400)) / 4.0
    return int(np.exp(rng.uniform(0.0, 6.0)))


def _header(kind, classes, features, *, rows):
    return {
        "format": "robustq-model",
        "version": 2 if rows else 1,
        "kind": kind,
        "classes": [f"c{index}" for index in range(classes)],
        "features": features,
    }


def _categorical(rng, index, sizes):
    size = int(rng.integers(sizes[0], sizes[1] + 1))
    return {"name": f"x{index}", "categories": [f"v{code}" for code in range(size)]}


class _Planter:
    """Grows random trees; a leaf has mass on what its path allows only."""

    def __init__(self, rng, classes, zeros, zero_rows, grid):
        self.rng, self.classes, self.zeros = rng, classes, zeros
        self.zero_rows, self.grid = zero_rows, grid

    def plant(self, cell, names, depth):
        nodes: list[Any] = []
        self.add(nodes, cell, names, depth)
        return nodes

    def add(self, nodes, cell, names, depth):
        """Add a node and what is below it; the rows of a node are those of its leaves."""
        index = len(nodes)
        nodes.append(None)
        open_features = [
            i for i, part in enumerate(cell) if isinstance(part, tuple) or len(part) > 1
        ]
        if depth == 0 or not open_features or self.rng.random() < 0.1:
            nodes[index] = self.leaf(cell, names)
            return index
        feature = int(self.rng.choice(open_features))
        split, sides = self.split(cell[feature])
        node = {"feature": feature, **split, "weights": self.weights()}
        nodes[index] = node
        for name, side in zip(("left", "right"), sides, strict=True):
            below = [*cell[:feature], side, *cell[feature + 1 :]]
            node[name] = self.add(nodes, below, names, depth - 1)
        if self.zero_rows is not None:
            node["rows"] = nodes[node["left"]]["rows"] + nodes[node["right"]]["rows"]
        return index

    def split(self, part):
        if isinstance(part, tuple):
            low, high = max(part[0], -EDGE + 1), min(part[1], EDGE - 1)
            threshold = float(self.rng.uniform(low, high))
            return {"threshold": threshold}, [(part[0], threshold), (threshold, part[1])]
        count = int(self.rng.integers(1, len(part)))
        left = sorted(int(code) for code in self.rng.choice(part, count, replace=False))
        return {"left_values": left}, [left, [code for code in part if code not in left]]

    def weights(self):
        if self.rng.random() < 0.1 * self.zeros:
            return [0.0, 1.0] if self.rng.random() < 0.5 else [1.0, 0.0]
        return random_mass(self.rng, 2, grid=self.grid)

    def leaf(self, cell, names):
        probs: list[Any] = []
        for part, name in zip(cell, names, strict=True):
            if isinstance(part, tuple):
                probs.append(self.density(part))
                continue
            full = np.zeros(len(name["categories"]))
            full[part] = random_mass(self.rng, len(part), zeros=self.zeros, grid=self.grid)
            probs.append(full.tolist())
        made = {"class_probs": self.class_probs(), "feature_probs": probs}
        if self.zero_rows is not None:
            made["rows"] = random_count(self.rng, self.zero_rows)
        return made

    def class_probs(self):
        if self.rng.random() < 0.1 * self.zeros:
            # A leaf that holds two classes equal.
            return [0.5, 0.5] + [0.0] * (self.classes - 2)
        return random_mass(self.rng, self.classes, zeros=self.zeros, grid=self.grid)

    def density(self, part):
        low, high = (None if np.isinf(end) else end for end in part)
        mean = float(np.clip(self.rng.normal(), max(part[0], -EDGE), min(part[1], EDGE)))
        return {"mean": mean, "sd": float(self.rng.uniform(0.3, 2.0)), "low": low, "high": high}
