"""By how much a class is ahead, where it hardly is: fractions tell it exactly."""

from fractions import Fraction
from functools import partial
from math import prod

import numpy as np
import pytest

from robustq import GenerativeForestClassifier
from robustq.core.ties import rank_exactly
from robustq.tables import Table
from tests.arithmetic import log, mpf

from .models import as_rows, make_model


def as_number(fraction):
    return mpf(fraction.numerator) / mpf(fraction.denominator)


def draw_pairs(rng, features, gap):
    """Return p(value | class) of each feature, of two classes that are as close as a gap."""
    first = rng.uniform(0.01, 0.99, features)
    second = rng.permutation(first)
    second[0] *= 1.0 - gap
    return np.stack([first, second], axis=1)


def find_lead(pairs):
    """Return the logarithm of p(0, f) − p(1, f), and which class leads; that is exact."""
    one, other = (prod(map(Fraction, pairs[:, side].tolist())) / 2 for side in range(2))
    if one == other:
        return None, 0
    return log(as_number(abs(one - other))), int(other > one)


def rank(pairs, more=0):
    """Return who leads, and the logarithm of the lead; some more classes are impossible."""
    prior = [0.5, 0.5] + [0.0] * more
    pairs = np.pad(pairs, ((0, 0), (0, more)), constant_values=0.5)
    model = make_model(prior, *(np.stack([pair, 1.0 - pair], axis=1) for pair in pairs))
    rows = as_rows(np.zeros((1, len(pairs)), dtype=np.int32))
    found, leads, _ = rank_exactly(model, rows, model.log_joint(rows))
    rival = 1 - found.prediction
    return int(found.prediction[0]), float(leads.log_leads(np.zeros(1, np.int64), rival)[0])


@pytest.mark.parametrize("features", [3, 30, 34, 40, 100, 400])
@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-15, 1e-9, 1e-6])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("more", [0, 3])
def test_leads_of_many_factors_are_those_of_fractions(features, gap, sign, more):
    rng = np.random.default_rng(features)
    for _ in range(3):
        pairs = draw_pairs(rng, features, sign * gap)
        expected, best = find_lead(pairs)
        prediction, lead = rank(pairs, more)
        assert prediction == best
        assert lead == (-np.inf if expected is None else pytest.approx(float(expected), abs=1e-12))


@pytest.mark.parametrize("features", [40, 150])
def test_leads_of_the_last_digits_are_those_of_fractions(features):
    """Of factors that are moved by one digit each, up and down, squares of a digit are left."""
    rng = np.random.default_rng(features)
    signs = set()
    for _ in range(20):
        pairs = draw_pairs(rng, features, 0.0)
        up, down = rng.permutation(features)[:2]
        pairs[up, 1], pairs[down, 1] = (
            np.nextafter(pairs[up, 1], 1),
            np.nextafter(pairs[down, 1], 0),
        )
        expected, best = find_lead(pairs)
        prediction, lead = rank(pairs)
        assert prediction == best
        assert lead == pytest.approx(float(expected), abs=1e-12)
        signs.add(best)
    assert signs == {0, 1}


@pytest.mark.parametrize("trees", [1, 4, 30])
@pytest.mark.parametrize("depth", [2, 12])
def test_sums_of_products_of_many_factors_lead_as_fractions_say(trees, depth):
    rng = np.random.default_rng(trees)
    X = rng.integers(0, 3, (60, 120))
    y = rng.integers(0, 2, 60)
    forest = GenerativeForestClassifier(trees, random_state=0, max_depth=depth).fit(X, y)
    model, rows = forest.model_, forest.encoding_.encode(Table.read(rng.integers(0, 3, (60, 120))))
    # So that all are close.
    joint = model.log_joint(rows)
    found, leads, _ = rank_exactly(model, rows, np.zeros_like(joint))
    lead = leads.log_leads(np.arange(60), 1 - found.prediction)
    expected = [weigh(model, codes) for codes in rows.codes]
    assert [int(best) for _, best in expected] == found.prediction.tolist()
    np.testing.assert_allclose(lead, [float(size) for size, _ in expected], rtol=0, atol=1e-11)


def weigh(model, codes):
    """Return the logarithm of the lead of a complete row, and who leads, in fractions."""
    exact = partial(map, Fraction)
    base = prod(exact(model.base[model.base_starts[:-1] + codes].tolist()), start=Fraction(1))
    total = Fraction(0)
    for root in model.roots[:-1]:
        node, weight = root, Fraction(1)
        while model.nodes[node, 0] >= 0:
            left = int(model.arrays.sets[node, 1]) >> int(codes[model.nodes[node, 0]]) & 1
            node = model.nodes[node, 1] + 1 - left
            weight *= Fraction(float(model.weights[node]))
        leaf = model.nodes[node, 1]
        mass = prod(exact(find_entries(model, leaf, codes)))
        ahead, behind = exact(model.class_probs[leaf].tolist())
        total += weight * mass * (ahead - behind)
    lead = abs(total) * base / model.trees
    return log(as_number(lead)), total < 0


def find_entries(model, leaf, codes):
    """Return the factor of each value at a leaf."""
    cells = leaf * len(codes) + np.arange(len(codes))
    for cell, code in zip(cells.tolist(), codes.tolist(), strict=True):
        seen = int(model.seen[cell])
        rank = (seen & (1 << code) - 1).bit_count() + 1 if seen >> code & 1 else 0
        yield float(model.entry_probs[model.starts[cell] + rank])
