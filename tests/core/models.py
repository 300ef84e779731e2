"""Random naive Bayes models, and their robustness in 60-digit arithmetic."""

import math
from functools import cache

import numpy as np

from robustq.core import engine
from robustq.core.neighbourhoods import read
from robustq.core.reached import Reached
from robustq.core.recursion import Gamble, oppose
from robustq.families.naive_bayes.model import NaiveBayes
from robustq.learning.counts import Layout
from robustq.tables import Rows
from tests.arithmetic import digits_now, inf, log, mpf, sqrt
from tests.perturbations.exact import EXACT

FAST = ("epsilon", "tv", "chi2", "pari_mutuel")
KNOWN = (*FAST, "odds_ratio")


def make_model(class_probs, *features):
    """Make a model of p(class) and, for each feature, p(category | class) as (class, category)."""
    class_probs = np.asarray(class_probs, dtype=float)
    tables = [np.asarray(table, dtype=float) for table in features]
    layout = Layout(tuple(table.shape[1] for table in tables), len(class_probs))
    flat = [table.T.ravel() for table in tables]
    rows = np.full((len(tables), len(class_probs)), np.nan)
    return NaiveBayes(class_probs, np.concatenate([*flat, np.empty(0)]), layout, np.nan, rows)


def as_rows(codes):
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    return Rows(codes, np.empty((len(codes), 0)))


def quantify(model, codes, balls, *, general=False):
    """Return what the engine says about rows of codes."""
    bound = [read(ball).bind(model, ()) for ball in balls]
    return engine.quantify(model, as_rows(codes), bound, general=general)


def margins(model, rows, ahead, behind, ball, delta):
    """Return the margins of two classes of each row, by the recursion."""
    perturbed = read(ball).bind(model, ())
    ((_, evidence),) = model.reach(rows if isinstance(rows, Rows) else as_rows(rows))
    payoff = oppose(np.asarray(ahead), np.asarray(behind), model.locals.class_table.shape[1])
    return Gamble(Reached(evidence, model.locals, perturbed), payoff).margins(delta)


def random_model(rng, classes=None, features=None, zeros=0.0, sizes=(1, 6)):
    classes = classes or int(rng.integers(2, 7))
    features = int(rng.integers(1, 10)) if features is None else features
    tables = []
    for _ in range(features):
        size = int(rng.integers(*sizes))
        table = rng.dirichlet(np.full(size, rng.choice([0.4, 1.0, 4.0])), size=classes)
        table[rng.random(table.shape) < zeros] = 0.0
        total = table.sum(axis=1, keepdims=True)
        tables.append(np.where(total > 0, table / np.where(total > 0, total, 1), 1 / size))
    return make_model(rng.dirichlet(np.ones(classes)), *tables)


def random_codes(rng, model, rows, missing=0.0):
    codes = np.stack([rng.integers(0, size, rows) for size in model.layout.sizes], axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    return codes.astype(np.int32)


def local_probabilities(model, codes, c):
    """Return p(f_i | c) of the features that a ball can move."""
    return [
        float(model.local_model(i)[code, c])
        for i, code in enumerate(codes.tolist())
        if code >= 0 and model.layout.sizes[i] > 1
    ]


def exact_robustness(name, model, codes):
    """Return the smallest robustness against any rival, and the rivals that attain it.

    The prediction is the first class with the largest p(c, f) in exact arithmetic.
    """
    prior = [mpf(p) for p in model.class_probs.tolist()]
    prior = [p / sum(prior) for p in prior]
    local = [[mpf(p) for p in local_probabilities(model, codes, c)] for c in range(len(prior))]
    joint = [p * math.prod(ps) for p, ps in zip(prior, local, strict=True)]
    best = joint.index(max(joint))
    roots = [
        exact_root(name, prior, best, c, local[best], local[c], joint)
        for c in range(len(prior))
        if c != best
    ]
    return best, min(roots, default=inf)


def exact_root(name, prior, best, rival, mine, theirs, joint):
    if joint[best] <= joint[rival]:
        return mpf(0)

    @cache
    def robust(delta):
        alpha = math.prod(lower(name, p, delta) for p in mine)
        beta = math.prod(upper(name, p, delta) for p in theirs)
        f = [mpf(0)] * len(prior)
        f[best], f[rival] = alpha, -beta
        return EXACT[name](prior, f, delta) > 0

    end = mpf(1) if name in ("epsilon", "tv", "odds_ratio") else mpf(2) ** 60
    if name == "odds_ratio":
        end -= mpf(10) ** -(digits_now() - 5)
    if robust(end):
        return inf
    low, high = mpf(-1100), log(end) / log(mpf(2))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if robust(mpf(2) ** middle) else (low, middle)
    return mpf(2) ** high


def lower(name, p, delta):
    return {
        "epsilon": lambda: (1 - delta) * p,
        "tv": lambda: max(0, p - delta),
        "chi2": lambda: max(0, p - sqrt(delta * p * (1 - p))),
        "pari_mutuel": lambda: max(0, (1 + delta) * p - delta),
        "odds_ratio": lambda: (1 - delta) * p / (1 - delta * p),
    }[name]()


def upper(name, p, delta):
    return {
        "epsilon": lambda: (1 - delta) * p + delta,
        "tv": lambda: min(1, p + delta),
        "chi2": lambda: min(1, p + sqrt(delta * p * (1 - p))),
        "pari_mutuel": lambda: min(1, (1 + delta) * p),
        "odds_ratio": lambda: p / (1 - delta * (1 - p)),
    }[name]()
