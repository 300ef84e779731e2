"""Quantiles of numbers in parts are those of all numbers at once."""

import numpy as np
import pytest

from robustq.tables import order_statistics
from robustq.tables.order_statistics import Search

SHARES = np.linspace(0, 1, 11)[1:-1]


def find(numbers, weights, cuts, shares=SHARES):
    search = Search.begin(shares)
    looks = 0
    while not search.done:
        window = search.window
        parts = zip(np.split(numbers, cuts), np.split(weights, cuts), strict=True)
        counted = [window.count(*part) for part in parts]
        whole = counted[0]
        for part in counted[1:]:
            whole = whole + part
        search.narrow(window, whole)
        looks += 1
    return search.quantiles, looks


COLUMNS = {
    "normal": lambda rng: rng.normal(size=3000),
    "ties": lambda rng: rng.integers(-3, 4, 3000).astype(float),
    "one value": lambda _: np.full(3000, 2.5),
    "tiny and huge": lambda rng: rng.normal(size=3000) * 10.0 ** rng.integers(-300, 140, 3000),
    "neighbours": lambda rng: 1.0 + rng.integers(0, 40, 3000) * 2.0**-52,
    "two zeros": lambda rng: rng.choice([-0.0, 0.0, -1e-310, 1e-310], 3000),
}


@pytest.mark.parametrize("few", [0, 1 << 16])
@pytest.mark.parametrize("name", COLUMNS)
def test_quantiles_are_exact_for_any_parts(name, few, monkeypatch):
    monkeypatch.setattr(order_statistics, "FEW_NUMBERS", few)
    monkeypatch.setattr(order_statistics, "MOST_BUCKETS", 1 << 12)
    rng = np.random.default_rng(5)
    numbers = COLUMNS[name](rng)
    numbers[rng.random(3000) < 0.1] = np.nan
    weights = rng.integers(1, 4, 3000).astype(float)
    there = ~np.isnan(numbers)
    exact = np.quantile(numbers[there], SHARES, method="inverted_cdf", weights=weights[there])
    for cuts in ([], [0, 0, 1500], sorted(rng.integers(0, 3000, 7))):
        found, _ = find(numbers, weights, cuts)
        np.testing.assert_array_equal(found, exact)


def test_shares_that_weights_reach_exactly_are_rounded_as_numpy_rounds():
    for size in range(1, 200):
        numbers = np.arange(size, dtype=float)
        exact = np.quantile(numbers, SHARES, method="inverted_cdf", weights=np.ones(size))
        np.testing.assert_array_equal(find(numbers, np.ones(size), [])[0], exact)


def test_nothing_has_no_quantiles():
    assert not len(find(np.full(5, np.nan), np.ones(5), [2])[0])


def test_a_few_looks_are_enough():
    numbers = np.random.default_rng(0).normal(size=200_000)
    assert find(numbers, np.ones(len(numbers)), [])[1] <= 3
