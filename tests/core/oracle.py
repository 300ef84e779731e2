"""Robustness from plain documents, in arithmetic of 50 digits and more: what the engine must give.

Nothing here uses the engine. A document becomes the circuit that one row reaches in it: sums,
products, feature leaves and class leaves, each local mass function with its part, its feature and
the rows behind it. R_c(δ) is then computed node by node as "The lower value" of the design has
it, with lower expectations by the definitions of the balls, and its root is searched for.

- A sign that rounding could have made is computed anew with more digits, and without any
  rounding at size 0 (and just above it, where no row backs a local mass function).
- Probabilities are taken as the floats they are. The bounds of a single value see that value and
  what it lacks to one. A mass function that misses one by its last digits keeps its total.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from tests.arithmetic import (
    digits_now,
    exp,
    inf,
    log,
    log1p,
    log10,
    mpf,
    mpq,
    precision,
    sqrt,
    truncated_normal,
)

BALLS = ("epsilon", "tv", "chi2", "pari_mutuel", "odds_ratio", "kl")
CLOSED = ("epsilon", "tv")  # sizes from 0 to 1, both included
OPEN = ("odds_ratio",)  # sizes from 0 to 1, 1 left out
PARTS = {
    "naive_bayes": ("prior", "features"),
    "generative_forest": ("root", "weights", "leaf_classes", "leaf_features"),
    "bayesian_network": ("prior", "features"),
    "network_mixture": ("prior", "features", "root"),
}
DEFAULT_PARTS = {
    "naive_bayes": ("prior", "features"),
    "generative_forest": ("weights",),
    "bayesian_network": ("prior", "features"),
    "network_mixture": ("prior", "features"),
}

DIGITS = (50, 120, 500, 2000)  # the next ones where rounding could decide
SPARE = 12  # digits that may be lost without doubt
FAR = 1 << 24  # sizes of 2^FAR, or 2^−FAR before an end, stand for the limit
WIDTH = mpf(2) ** -52  # of the bracket in which a root is found, relative


# Lower expectations


class Size(NamedTuple):
    """The size of a ball, and what it lacks to 1 (which may be too little to see in it)."""

    delta: Any
    rest: Any


STILL, END = "size 0", "the ball's end"


def lower_expectation(ball, q, f, size):
    """Return the smallest expectation of f in a ball around q."""
    return dot(minimising(ball, q, f, size), f)


def minimising(ball, q, f, size):
    """Return a mass function in a ball around q that gives f the smallest expectation.

    Parameters
    ----------
    ball : str
    q, f : sequence of numbers
        Where size is STILL or END, any numbers; else mpf.
    size : Size, STILL or END
        At the END of an open domain: the limit.
    """
    if size == STILL:
        return list(q)
    total = sum(q)
    if size == END:
        allowed = range(len(q)) if ball in CLOSED else [i for i, p in enumerate(q) if p > 0]
        lowest = min(allowed, key=lambda i: f[i])
        return [total if i == lowest else q[0] * 0 for i in range(len(q))]
    moved = MINIMISERS[ball]([p / total for p in q], f, size)
    return [total * p for p in moved]


def minimise_epsilon(q, f, size):
    """All (1−δ)q + δq'."""
    moved = [size.rest * p for p in q]
    moved[f.index(min(f))] += size.delta
    return moved


def minimise_tv(q, f, size):
    """All q' with ½ Σ|q'−q| ≤ δ: from the highest values to the lowest."""
    moved, left = list(q), size.delta
    for i in sorted(range(len(q)), key=lambda i: f[i], reverse=True):
        share = min(left, moved[i])
        moved[i] -= share
        left -= share
    moved[f.index(min(f))] += size.delta - left
    return moved


def minimise_pari_mutuel(q, f, size):
    """All q' ≤ (1+δ)q: the lowest values are filled, or the highest lose what is too much."""
    order = sorted(range(len(q)), key=lambda i: f[i])
    moved = [(1 + size.delta) * p for p in q]
    if size.delta < 1:
        left = size.delta
        for i in reversed(order):
            share = min(left, moved[i])
            moved[i] -= share
            left -= share
        return moved
    left = mpf(1)
    for i in order:
        moved[i] = min(left, moved[i])
        left -= moved[i]
    return moved


def minimise_odds_ratio(q, f, size):
    """All q' with q'(A)/q'(B) ≥ (1−δ) q(A)/q(B): the highest values lose against the others."""
    best = None
    for v in {*f}:
        weights = [size.rest * p if w >= v else p for p, w in zip(q, f, strict=True)]
        moved = [w / sum(weights) for w in weights] if sum(weights) > 0 else list(q)
        if best is None or dot(moved, f) < dot(best, f):
            best = moved
    return best


def minimise_chi2(q, f, size):
    """All q' with Σ(q'−q)²/q ≤ δ: q'/q falls in f along a line, cut at 0."""
    support = [i for i, p in enumerate(q) if p > 0]
    removed, lowest = mpf(0), min(f[i] for i in support)
    for v in sorted({f[i] for i in support} - {lowest}, reverse=True):
        level = [i for i in support if f[i] <= v]
        mass = sum(q[i] for i in level)
        mean = sum(q[i] * f[i] for i in level) / mass
        variance = sum(q[i] * (f[i] - mean) ** 2 for i in level) / mass
        excess = size.delta * mass - removed  # = mass (1+δ) − 1
        if excess * (v - mean) ** 2 < variance:
            slope = sqrt(max(excess, 0) / variance)
            moved = [mpf(0)] * len(q)
            for i in level:
                moved[i] = q[i] / mass * (1 - slope * (f[i] - mean))
            return moved
        removed += sum(q[i] for i in level if f[i] == v)
    mass = sum(q[i] for i in support if f[i] == lowest)
    return [p / mass if f[i] == lowest else mpf(0) for i, p in enumerate(q)]


def minimise_kl(q, f, size):
    """All q' with Σ q' log(q'/q) ≤ δ: q e^(−tf) with the t that goes so far."""
    support = [i for i, p in enumerate(q) if p > 0]
    low = min(f[i] for i in support)
    span = max(f[i] for i in support) - low
    if span == 0:
        return list(q)
    # What is left of a small size after a subtraction must have its digits, and so must the sum.
    digits, lost = digits_now(), max(0, -int(log10(size.delta)))
    moved = [mpf(0)] * len(q)
    with precision(digits + lost + 10):
        total = sum(q[i] for i in support)
        u = [(f[i] - low) / span for i in support]
        tilted = tilt([q[i] / total for i in support], u, size.delta, digits)
    for i, p in zip(support, tilted, strict=True):
        moved[i] = +p
    return moved


def tilt(q, u, delta, digits):
    """Return q e^(−tu), made to sum to one, at divergence δ from q, to so many digits; min u is 0.

    Newton's method for log t, within a bracket that closes. Solved is the equation of the odds of
    the divergence within its limit, which is nearly straight.
    """
    at_lowest = sum(p for p, v in zip(q, u, strict=True) if v == 0)
    limit = -log(at_lowest)
    if delta >= limit:
        return [p / at_lowest if v == 0 else mpf(0) for p, v in zip(q, u, strict=True)]
    mean = dot(q, u)
    spread = sum(p * (v - mean) ** 2 for p, v in zip(q, u, strict=True))
    left, right = None, None
    s = log(2 * delta / spread) / 2
    wanted = log(delta / (limit - delta))
    done = mpf(10) ** (-digits * 2 // 3)
    while True:
        t = exp(s)
        weights = [p * exp(-t * v) for p, v in zip(q, u, strict=True)]
        total = sum(weights)
        tilted = [w / total for w in weights]
        mean = dot(tilted, u)
        divergence = -t * mean - log(total)
        left, right = (s, right) if divergence < delta else (left, s)
        if right is not None and left is not None and right - left < done**2:
            return tilted
        room = limit - divergence
        step = None
        if divergence > 0 and room > 0:
            slope = t * t * sum(p * (v - mean) ** 2 for p, v in zip(tilted, u, strict=True))
            step = (log(divergence / room) - wanted) / (slope * (1 / divergence + 1 / room))
            if abs(step) < done:
                # Newton's method doubles the digits: this step is the last that can be seen.
                t *= exp(-step)
                weights = [p * exp(-t * v) for p, v in zip(q, u, strict=True)]
                return [w / sum(weights) for w in weights]
        s = guard(s, step, left, right)


def guard(s, step, left, right):
    """Return where Newton's method goes next: inside the bracket, and not too far."""
    step = None if step is None else max(min(step, mpf(4)), mpf(-4))
    if left is None or right is None:
        side = 2 if right is None else -2
        return s + side if step is None else s - step
    there = None if step is None else s - step
    return there if there is not None and left < there < right else (left + right) / 2


MINIMISERS: dict[str, Callable[..., Any]] = {
    "epsilon": minimise_epsilon,
    "tv": minimise_tv,
    "chi2": minimise_chi2,
    "pari_mutuel": minimise_pari_mutuel,
    "odds_ratio": minimise_odds_ratio,
    "kl": minimise_kl,
}


def dot(q, f):
    return sum(p * v for p, v in zip(q, f, strict=True))


# Circuits


@dataclass(frozen=True, eq=False)
class Local:
    """A local mass function: what it is a part of, the feature it speaks of, the rows behind it."""

    probs: tuple[mpq, ...]
    part: str
    feature: str | None = None
    rows: float | None = None


@dataclass(frozen=True, eq=False)
class FeatureLeaf:
    """A mass function on the values of a feature, and the value that is seen."""

    local: Local
    value: int


@dataclass(frozen=True, eq=False)
class Constant:
    """A density, which nothing moves; or 0, where the row does not lead."""

    number: mpq


@dataclass(frozen=True, eq=False)
class ClassLeaf:
    """A mass function on the classes."""

    local: Local


@dataclass(frozen=True, eq=False)
class Indicator:
    """1 for a class, 0 for the others."""

    label: int


@dataclass(frozen=True, eq=False)
class Product:
    """Children that speak of different variables; the first one may speak of the class."""

    children: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Sum:
    """Children that speak of the same variables, with weights."""

    children: tuple[Any, ...]
    local: Local


NOTHING = Constant(mpq(0))


def speaks_of_class(node):
    if isinstance(node, (Product, Sum)):
        return any(speaks_of_class(child) for child in node.children)
    return isinstance(node, (ClassLeaf, Indicator))


def expand(document, row):
    """Return the circuit of a document as far as a row reaches; missing cells are summed out.

    Parameters
    ----------
    document : dict
        Of version 1 or 2.
    row : list
        A code or a number per feature, None where the cell is missing.
    """
    if document["kind"] == "naive_bayes":
        return _expand_naive_bayes(document, row)
    if document["kind"] == "bayesian_network":
        return _Network(document, row).root()
    if document["kind"] == "network_mixture":
        return _expand_mixture(document, row)
    trees = tuple(_Expansion(document, tree["nodes"], row).root() for tree in document["trees"])
    uniform = Local((mpq(1, len(trees)),) * len(trees), "root")
    return Sum(trees, uniform)


def _expand_naive_bayes(document, row):
    rows = document.get("rows") or {
        "prior": None,
        "features": [[None] * len(document["classes"]) for _ in document["features"]],
    }
    products = []
    for c in range(len(document["classes"])):
        leaves = [
            FeatureLeaf(
                Local(
                    _exact(document["feature_probs"][i][c]),
                    "features",
                    feature["name"],
                    rows["features"][i][c],
                ),
                row[i],
            )
            for i, feature in enumerate(document["features"])
            if row[i] is not None
        ]
        products.append(Product((Indicator(c), *leaves)))
    return Sum(
        tuple(products), Local(_exact(document["class_probs"]), "prior", None, rows["prior"])
    )


class _Network:
    """A network; what is missing is summed out where something that was seen hangs on it."""

    def __init__(self, document, row):
        self.tables = {table["variable"]: table for table in document["tables"]}
        self.sizes = [len(feature["categories"]) for feature in document["features"]]
        self.names = [feature["name"] for feature in document["features"]]
        self.classes, self.row = len(document["classes"]), row
        # What has one value only is known.
        self.known = {
            i: 0 if size == 1 else row[i]
            for i, size in enumerate(self.sizes)
            if size == 1 or row[i] is not None
        }

    def children(self, i):
        return [j for j in range(len(self.sizes)) if i in self.tables[j]["parents"]]

    def matters(self, i):
        return i in self.known or any(self.matters(j) for j in self.children(i))

    def local(self, variable, values):
        """Return a row of a table, given values of all parents."""
        table, index = self.tables[variable], 0
        for parent in table["parents"]:
            size = self.classes if parent == "class" else self.sizes[parent]
            index = index * size + values[parent]
        rows = table.get("rows")
        part, name = ("prior", None) if variable == "class" else ("features", self.names[variable])
        return Local(_exact(table["probs"][index]), part, name, rows[index] if rows else None)

    def below(self, values, parent):
        """Return what hangs on a sum over a feature; on the class alone without one."""
        made = []
        for i, _ in enumerate(self.sizes):
            parents = self.tables[i]["parents"]
            unknown = [p for p in parents if p != "class" and p not in self.known]
            if "class" not in parents or unknown != ([] if parent is None else [parent]):
                continue
            if i in self.known:
                made.append(FeatureLeaf(self.local(i, values), self.known[i]))
            elif self.matters(i):
                branches = [
                    Product(tuple(self.below({**values, i: v}, i))) for v in range(self.sizes[i])
                ]
                made.append(Sum(tuple(branches), self.local(i, values)))
        return made

    def root(self):
        products = [
            Product((Indicator(c), *self.below({**self.known, "class": c}, None)))
            for c in range(self.classes)
        ]
        others = [
            FeatureLeaf(self.local(i, self.known), self.known[i])
            for i in self.known
            if "class" not in self.tables[i]["parents"]
        ]
        return Product((Sum(tuple(products), self.local("class", self.known)), *others))


def _expand_mixture(document, row):
    classes = range(len(document["classes"]))
    names = [feature["name"] for feature in document["features"]]
    seen = [i for i, value in enumerate(row) if value is not None]
    networks = {network["lead"]: network for network in document["networks"]}

    def leaf(lead, i, c):
        tables = {table["variable"]: table for table in networks[lead]["tables"]}
        index = c
        if i != lead:
            index = c * len(document["features"][lead]["categories"]) + row[lead]
        rows = tables[i].get("rows")
        own = Local(
            _exact(tables[i]["probs"][index]), "features", names[i], rows[index] if rows else None
        )
        return FeatureLeaf(own, row[i])

    leads = [
        j for j in seen if networks[j]["lead_rows"][row[j]] >= max(document["min_rows"], 1e-300)
    ]
    below = []
    for c in classes:
        terms = [Product((Indicator(c), *(leaf(j, i, c) for i in seen))) for j in leads]
        if not terms:
            terms = [Product((Indicator(c), *(leaf(i, i, c) for i in seen)))]
        uniform = Local((mpq(1, len(terms)),) * len(terms), "root")
        below.append(Sum(tuple(terms), uniform))
    return Sum(
        tuple(below), Local(_exact(document["class_probs"]), "prior", None, document["rows"])
    )


class _Expansion:
    """One tree, as far as a row reaches."""

    def __init__(self, document, nodes, row):
        self.features, self.nodes, self.row = document["features"], nodes, row

    def root(self):
        cell = [range(len(feature.get("categories", ()))) for feature in self.features]
        return self.node(0, cell)

    def node(self, index, cell):
        node = self.nodes[index]
        if "feature" not in node:
            return self.leaf(node, cell)
        i = node["feature"]
        value, children = self.row[i], []
        for side in ("left", "right"):
            if "threshold" in node:
                allowed = cell[i]
                inside = value is None or (value <= node["threshold"]) == (side == "left")
            else:
                left = side == "left"
                allowed = [code for code in cell[i] if (code in node["left_values"]) == left]
                inside = value is None or value in allowed
            below = [*cell[:i], allowed, *cell[i + 1 :]]
            children.append(self.node(node[side], below) if inside else NOTHING)
        weights = Local(
            _exact(node["weights"]), "weights", self.features[i]["name"], node.get("rows")
        )
        return Sum(tuple(children), weights)

    def leaf(self, node, cell):
        rows = node.get("rows")
        classes = Local(_exact(node["class_probs"]), "leaf_classes", None, rows)
        made: list[Any] = [ClassLeaf(classes)]
        for i, probs in enumerate(node["feature_probs"]):
            value = self.row[i]
            if value is None:
                continue
            if isinstance(probs, dict):
                with precision(DIGITS[0]):
                    made.append(Constant(mpq(truncated_normal(probs, value))))
                continue
            # What the cell does not allow is no outcome.
            own = _exact([probs[code] for code in cell[i]])
            local = Local(own, "leaf_features", self.features[i]["name"], rows)
            made.append(FeatureLeaf(local, list(cell[i]).index(value)))
        return Product(tuple(made))


def _exact(probs):
    return tuple(map(mpq, probs))


# The lower value


class Point(NamedTuple):
    """A size of the whole neighbourhood: δ, or what it lacks to 1, or one of the three words."""

    delta: Any = None
    rest: Any = None
    word: str = ""


ZERO, JUST_ABOVE, LAST = (Point(word=word) for word in ("zero", "just above zero", "last"))


@dataclass(frozen=True)
class Neighbourhood:
    """A ball, the parts perturbed, and how the size is shared out."""

    ball: str
    parts: tuple[str, ...]
    sizes: str = "equal"

    def perturbs(self, local):
        named = local.feature is not None and f"feature:{local.feature}" in self.parts
        if not named and local.part not in self.parts:
            return False
        # A point mass on the only outcome stays where it is.
        return len(local.probs) > 1 and (self.sizes == "equal" or local.rows is not None)

    @property
    def bounded(self):
        return self.sizes == "equal" and self.ball in (*CLOSED, *OPEN)

    def size(self, local, point):
        """Return the size of the ball around a local mass function."""
        if point is ZERO or not self.perturbs(local):
            return STILL
        if point is LAST or (self.sizes == "rows" and local.rows == 0):
            return END
        if point is JUST_ABOVE:
            return STILL
        if self.sizes == "rows":
            return self.by_rows(mpf(local.rows), point.delta)
        if point.delta is None:
            return Size(1 - point.rest, point.rest)
        return Size(point.delta, 1 - point.delta)

    def by_rows(self, n, delta):
        if self.ball in ("epsilon", "odds_ratio"):
            return Size(delta / (n + delta), n / (n + delta))
        share = delta / n
        return END if self.ball == "tv" and share >= 1 else Size(share, 1 - share)


@dataclass
class Evaluation:
    """The recursion at one size; with `exact`, in fractions (at size 0 and just above it)."""

    neighbourhood: Neighbourhood
    point: Point
    exact: bool = False
    bounds: dict = field(default_factory=dict)

    def number(self, fraction):
        return fraction if self.exact else mpf(fraction)

    def minimising(self, local, values):
        q = [self.number(p) for p in local.probs]
        size = self.neighbourhood.size(local, self.point)
        return minimising(self.neighbourhood.ball, q, values, size)

    def bound(self, node, sign):
        """Return L (sign 1) or U (sign −1) of a node that does not speak of the class."""
        key = id(node), sign
        if key not in self.bounds:
            self.bounds[key] = self._bound(node, sign)
        return self.bounds[key]

    def _bound(self, node, sign):
        if isinstance(node, Constant):
            return self.number(node.number)
        if isinstance(node, FeatureLeaf):
            return self._bound_of_value(node, sign)
        below = [self.bound(child, sign) for child in node.children if not speaks_of_class(child)]
        if isinstance(node, Product):
            made = self.number(mpq(1))
            for part in below:
                made *= part
            return made
        return dot(self.minimising(node.local, [sign * value for value in below]), below)

    def _bound_of_value(self, node, sign):
        q = self.number(node.local.probs[node.value])
        size = self.neighbourhood.size(node.local, self.point)
        if size == STILL:
            return q
        one = self.number(mpq(1))
        if size != END and self.neighbourhood.ball == "pari_mutuel" and sign > 0:
            # As a lower expectation, digits of a small probability would be lost.
            return max(mpf(0), q - size.delta * (1 - q))
        return minimising(self.neighbourhood.ball, [q, one - q], [sign * one, 0 * one], size)[0]

    def value(self, node, best, rival):
        """Return V of a node that speaks of the class, and the size of what it is a sum of."""
        if isinstance(node, Constant):
            return self.number(mpq(0)), self.number(mpq(0))
        if isinstance(node, Indicator):
            gap = self.number(mpq((node.label == best) - (node.label == rival)))
            return gap, abs(gap)
        if isinstance(node, ClassLeaf):
            gap = [mpq((c == best) - (c == rival)) for c in range(len(node.local.probs))]
            gap = [self.number(g) for g in gap]
            moved = self.minimising(node.local, gap)
            terms = dot(moved, [abs(g) for g in gap])
            return dot(moved, gap), 0 * terms if moved[best] == moved[rival] else terms
        if isinstance(node, Product):
            value, terms = self.value(node.children[0], best, rival)
            if value == 0 and terms == 0:
                return value, terms
            factor = self.bound(node, 1 if value > 0 else -1)
            return value * factor, terms * factor
        below = [self.value(child, best, rival) for child in node.children]
        values = [value for value, _ in below]
        moved = self.minimising(node.local, values)
        return dot(moved, values), dot(moved, [terms for _, terms in below])

    def joint(self, node, c):
        """Return p(c, f), as the model is."""
        if isinstance(node, Indicator):
            return self.number(mpq(node.label == c))
        if isinstance(node, ClassLeaf):
            return self.number(node.local.probs[c])
        if isinstance(node, Product) and speaks_of_class(node):
            return self.joint(node.children[0], c) * self.bound(node, 1)
        if isinstance(node, Sum):
            weights = [self.number(p) for p in node.local.probs]
            return dot(weights, [self.joint(child, c) for child in node.children])
        return self.bound(node, 1)


class Contest:
    """One row of one document in one neighbourhood: who leads, and where each rival catches up."""

    def __init__(self, document, row, ball, parts=None, sizes="equal"):
        kind = document["kind"]
        chosen = DEFAULT_PARTS[kind] if parts is None else parts
        if chosen == "all":
            chosen = PARTS[kind]
        self.whole = chosen if chosen in ("joint", "posterior") else None
        if self.whole == "joint" and any("numeric" in f for f in document["features"]):
            msg = "a density is no mass: the joint cannot be perturbed"
            raise ValueError(msg)
        self.neighbourhood = Neighbourhood(ball, () if self.whole else tuple(chosen), sizes)
        self.circuit = expand(document, row)
        self.classes = range(len(document["classes"]))
        self.evaluations: dict[Any, Evaluation] = {}

    @cached_property
    def joint(self):
        """Return p(c, f) of all classes, exactly."""
        still = Evaluation(self.neighbourhood, ZERO, exact=True)
        return [still.joint(self.circuit, c) for c in self.classes]

    @cached_property
    def best(self):
        """Return all classes that no other one leads."""
        return [c for c in self.classes if self.joint[c] == max(self.joint)]

    @property
    def prediction(self):
        return self.best[0]

    def margin(self, best, rival, point):
        """Return R_c(δ), 0 if it is 0: its sign is certain."""
        for digits in DIGITS:
            with precision(digits):
                value, terms = self._evaluate(point, digits).value(self.circuit, best, rival)
                if terms == 0 or abs(value) > terms * mpf(10) ** (SPARE - digits):
                    return value
            if point in (ZERO, JUST_ABOVE):
                value, _ = self._evaluate(point, None).value(self.circuit, best, rival)
                return mpf(value)
        return mpf(0)

    def _evaluate(self, point, digits):
        key = point, digits
        if key not in self.evaluations:
            self.evaluations[key] = Evaluation(self.neighbourhood, point, exact=digits is None)
        return self.evaluations[key]

    def last(self):
        """Return the end of the domain, or a size that stands for the limit there."""
        if not self.neighbourhood.bounded:
            return Point(delta=mpf(2) ** FAR)
        return LAST if self.neighbourhood.ball in CLOSED else Point(rest=mpf(2) ** -FAR)

    def point(self, x):
        """Return the size at a place from −∞ (size 0) to ∞ (the end of the domain)."""
        if self.neighbourhood.bounded and x > -1:
            return Point(rest=mpf(2) ** -(x + 2))
        return Point(delta=mpf(2) ** x)

    def root(self, best, rival):
        """Return r_c: 0, a size, or inf.

        Beyond 2^1100, and nearer to 1 than 2^−100, a bound is returned that is a float's inf or 1.
        """
        if self.whole:
            return self._root_of_whole(best, rival)
        if any(self.margin(best, rival, point) <= 0 for point in (ZERO, JUST_ABOVE)):
            return mpf(0)
        if self.margin(best, rival, self.last()) > 0:
            return inf
        with precision(DIGITS[0]):
            return self._search(lambda x: self.margin(best, rival, self.point(x)))

    def _root_of_whole(self, best, rival):
        a, b = self.joint[best], self.joint[rival]
        if a <= b:
            return mpf(0)
        if self.whole == "posterior":
            a, b = a / sum(self.joint), b / sum(self.joint)
        return root_of_whole(self.neighbourhood.ball, a, b)

    def _search(self, margin):
        """Return where a margin that never rises reaches 0, given that it does."""
        low, high, step = None, None, 2
        x = mpf(-4)
        while low is None or high is None:
            if margin(x) > 0:
                low, x = x, x + step
            else:
                high, x = x, x - step
            step *= 2
            if low is not None and low > 100 and self.neighbourhood.bounded:
                return mpf(1)
            if low is not None and low > 1100:
                return mpf(2) ** low
        low, high = _narrow(margin, low, high)
        point = self.point(high)
        return 1 - point.rest if point.delta is None else point.delta


def _narrow(margin, low, high):
    """Close a bracket: by halves at first, then by the Illinois rule, with halves between."""
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if margin(middle) > 0 else (low, middle)
    at_low, at_high, steps, side = margin(low), margin(high), 0, 0
    while high - low > WIDTH:
        steps += 1
        if steps % 6 == 0 or at_high == 0:
            tried = (low + high) / 2
        else:
            tried = low + (high - low) * at_low / (at_low - at_high)
            # A step beyond a root that is known well enough closes the bracket.
            tried = min(max(tried, low + WIDTH / 2), high - WIDTH / 2)
        value = margin(tried)
        if value > 0:
            low, at_low = tried, value
            at_high, side = (at_high / 2 if side > 0 else at_high), 1
        else:
            high, at_high = tried, value
            at_low, side = (at_low / 2 if side < 0 else at_low), -1
    return low, high


def robustness(document, row, ball, parts=None, sizes="equal"):
    """Return the prediction, its robustness, and where each rival catches up.

    Parameters
    ----------
    document : dict
        A model of `to_dict`.
    row : list
        A code or a number per feature, None where the cell is missing.
    ball : str
        One of `BALLS`.
    parts : None, "all", "joint", "posterior", or a list of parts
        None for the family's default; "feature:NAME" for the local models of one feature.
    sizes : {"equal", "rows"}

    Returns
    -------
    prediction : int
        The first of the best classes.
    robustness : mpf
        0 for a tie, or where any size flips; inf where none does.
    rivals : dict of int to mpf
    """
    contest = Contest(document, row, ball, parts, sizes)
    best = contest.prediction
    roots = {c: contest.root(best, c) for c in contest.classes if c != best}
    return best, min(roots.values(), default=inf), roots


def root_of_whole(ball, a, b):
    """Return where the joint mass function, perturbed as a whole, no longer prefers a to b.

    Parameters
    ----------
    ball : str
    a, b : mpq
        p(ĉ, f) and p(c, f), a > b.
    """
    difference = a - b
    closed = {
        "epsilon": (difference, 1 + difference),
        "tv": (difference, mpq(2)),
        "pari_mutuel": (difference, 1 - difference),
        "chi2": (difference**2, a + b - difference**2),
    }
    with precision(DIGITS[0]):
        if ball in closed:
            above, below = closed[ball]
            return mpf(above / below) if below else inf
        if ball == "odds_ratio":
            return mpf(difference / a) if b else inf
        # The nearest mass function that holds both equal is q' ∝ (√(ab), √(ab), rest).
        roots = sqrt(mpf(a)) + sqrt(mpf(b))
        lost = (mpf(difference) / roots) ** 2
        left = mpf(1 - a - b) + 2 * sqrt(mpf(a)) * sqrt(mpf(b))
        if left == 0:
            return inf
        return -log(left) if lost > 0.5 else -log1p(-lost)


# What somebody else says


def disagreement(contest, prediction, robustness, tipping, tolerance=1e-9):
    """Return what is wrong with an answer, or an empty text.

    Only signs are computed: no rival may have caught up a little before the robustness (times
    1 − tolerance), and the tipping class must have a little after it.

    Parameters
    ----------
    contest : Contest
    prediction : int
    robustness : float
    tipping : int or None
        None where nothing flips.
    tolerance : float
        Relative.
    """
    rivals = [c for c in contest.classes if c != prediction]
    if prediction not in contest.best:
        return f"predicted is {prediction}, and {contest.best} lead"
    if not robustness >= 0:
        return f"a robustness of {robustness}"
    if (tipping is None) != (robustness == inf) or tipping not in (*rivals, None):
        return f"{tipping} tips at {robustness}"
    if contest.whole:
        return _compare_roots(contest, prediction, robustness, tipping, tolerance)
    return _compare_signs(contest, prediction, robustness, tipping, tolerance)


def _compare_signs(contest, prediction, robustness, tipping, tolerance):
    if robustness == 0:
        tied = any(contest.margin(prediction, tipping, p) <= 0 for p in (ZERO, JUST_ABOVE))
        return "" if tied else f"no tie with {tipping}: {contest.root(prediction, tipping)}"
    below, above = _around(contest, robustness, tolerance)
    for c in contest.classes:
        if c != prediction and contest.margin(prediction, c, below) <= 0:
            return f"{robustness} for {contest.root(prediction, c)} of {c}"
    if tipping is not None and contest.margin(prediction, tipping, above) > 0:
        return f"{robustness} for {contest.root(prediction, tipping)} of {tipping}"
    return ""


def _around(contest, robustness, tolerance):
    """Return sizes a little below and a little above, within the domain."""
    with precision(DIGITS[0]):
        last = contest.last()
        if robustness == inf:
            # Beyond the largest float nothing can be told.
            open_end = not contest.neighbourhood.bounded
            return (Point(delta=mpf(2) ** 1024) if open_end else last), last
        grain = mpf(2) ** -1074
        below = max(robustness * (1 - mpf(tolerance)) - grain, grain / 4)
        above = robustness * (1 + mpf(tolerance)) + grain
        beyond = contest.neighbourhood.bounded and above >= 1
        return Point(delta=below), last if beyond else Point(delta=above)


def _compare_roots(contest, prediction, robustness, tipping, tolerance):
    roots = {c: contest.root(prediction, c) for c in contest.classes if c != prediction}
    truth = min(roots.values(), default=inf)
    wrong = f"{robustness} at {tipping} for {roots}"
    if truth in (0, inf) or robustness in (0, inf):
        if float(truth) != robustness:
            return wrong
        return wrong if tipping is not None and roots[tipping] != truth else ""
    grain = mpf(2) ** -1074
    near = abs(robustness - truth) <= tolerance * truth + grain
    return "" if near and roots[tipping] <= truth * (1 + mpf(tolerance)) + grain else wrong
