"""Naive Bayes under Kullback–Leibler: the kernel, beside bisection over bounds of their own."""

import numpy as np
import pytest

from robustq.core import _divergence_kernels
from robustq.core.engine import quantify as engine_quantify
from robustq.core.neighbourhoods import read
from robustq.perturbations import get
from robustq.perturbations.kl_bounds import raise_probability

from .models import as_rows, make_model, quantify, random_codes, random_model

KL = get("kl")


def prior_distance(lead, a, b):
    """Return the divergence of the nearest prior that makes up for a lead."""
    ratio = a / b * np.exp(-lead)
    share = 1 / (1 + ratio)
    gone = -a * np.expm1(-lead * share) - b * np.expm1(lead * ratio * share)
    return -np.log1p(-gone)


def pick(model, codes, classes):
    """Return p(f_i | c) of each row; 1 where it is missing, or there is a single category."""
    columns = [
        np.where(codes[:, i] >= 0, model.local_model(i)[codes[:, i], classes], 1.0)
        for i, size in enumerate(model.layout.sizes)
        if size > 1
    ]
    return np.reshape(columns, (-1, len(codes))).T


def bisect(model, codes, best, rival):
    """Return where a rival of each row catches up."""
    mine, theirs = pick(model, codes, best), pick(model, codes, rival)
    a, b = model.class_probs[best], model.class_probs[rival]
    low, high = np.full(len(codes), -80.0), np.full(len(codes), 6.0)
    for _ in range(60):
        middle = (low + high) / 2
        delta = np.broadcast_to(np.exp(middle)[:, None], mine.shape)
        fallen, risen = (
            raise_probability(1 - mine, mine, delta)[1],
            raise_probability(theirs, 1 - theirs, delta)[0],
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            lead = np.log(a / b) + np.log(fallen).sum(axis=1) - np.log(risen).sum(axis=1)
            ahead = (lead > 0) & (prior_distance(lead, a, b) > np.exp(middle))
        low, high = np.where(ahead, middle, low), np.where(ahead, high, middle)
    return np.exp(high)


def robustness(model, codes, best):
    rivals = [np.full(len(codes), c) for c in range(len(model.class_probs))]
    sizes = [np.where(best == c, np.inf, bisect(model, codes, best, c)) for c in rivals]
    return np.min(sizes, axis=0)


@pytest.fixture
def left(monkeypatch):
    """Count the rows that the kernel has left to others."""
    counted, search = [], _divergence_kernels.search

    def count(*arguments):
        search(*arguments)
        counted.append(np.isnan(arguments[-2]).sum())

    monkeypatch.setattr(_divergence_kernels, "search", count)
    return counted


@pytest.mark.parametrize("seed", range(6))
def test_the_kernel_finds_what_bisection_finds(left, seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, features=int(rng.integers(1, 16)), sizes=(1, (3, 6)[seed % 2]))
    codes = random_codes(rng, model, rows=40, missing=(0.0, 0.3)[seed % 2])
    found = quantify(model, codes, [KL])
    np.testing.assert_allclose(
        found.robustness[0], robustness(model, codes, found.prediction), rtol=2e-10
    )
    # Probabilities below 1e-9, and near ties, are for others.
    assert sum(left) <= 0.05 * len(codes)


@pytest.mark.parametrize("rare", [1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("common", [0.5, 0.9, 0.999])
def test_factors_that_vanish_and_others_that_take_all_are_found(left, rare, common):
    # The more features speak for the first class, the less is left of the rare one's value.
    tables = [[[1 - rare, rare], [common, 1 - common]]]
    tables += [[[0.9, 0.1], [0.1, 0.9]]] * 12
    model = make_model([0.6, 0.4], *tables)
    codes = np.array([[1] + [0] * k + [-1] * (12 - k) for k in range(12)], dtype=np.int32)
    found = quantify(model, codes, [KL])
    expected = robustness(model, codes, found.prediction)
    np.testing.assert_allclose(found.robustness[0], expected, rtol=2e-10)
    assert sum(left) <= 1


@pytest.mark.parametrize("prior", [[0.999, 0.001], [0.45, 0.005, 0.545], [1e-6, 0.5, 0.5 - 1e-6]])
def test_lopsided_priors_are_no_trouble(left, prior):
    rng = np.random.default_rng(7)
    tables = [rng.dirichlet(np.ones(4), size=len(prior)) for _ in range(5)]
    model = make_model(prior, *tables)
    codes = random_codes(rng, model, rows=60)
    found = quantify(model, codes, [KL])
    expected = robustness(model, codes, found.prediction)
    np.testing.assert_allclose(found.robustness[0], expected, rtol=2e-10)
    assert sum(left) == 0


def test_a_class_of_probability_zero_stays_behind(left):
    rng = np.random.default_rng(8)
    tables = [rng.dirichlet(np.ones(3), size=3) for _ in range(4)]
    codes = random_codes(rng, make_model([0.3, 0.3, 0.4], *tables), rows=30)
    plain = quantify(make_model([0.5, 0.5], *(t[:2] for t in tables)), codes, [KL])
    wider = quantify(make_model([0.5, 0.5, 0.0], *tables), codes, [KL])
    np.testing.assert_array_equal(wider.robustness, plain.robustness)
    np.testing.assert_array_equal(wider.tipping, plain.tipping)
    assert sum(left) == 0


def test_parts_of_a_model_are_perturbed_alone(left):
    rng = np.random.default_rng(9)
    model = random_model(rng, classes=3, features=5, sizes=(2, 5))
    codes = random_codes(rng, model, rows=40)
    for part in model.locals.parts:
        bound = read("kl").bind(model, (part,))
        fast, plain = (
            engine_quantify(model, as_rows(codes), [bound], general=general).robustness
            for general in (False, True)
        )
        np.testing.assert_allclose(fast, plain, rtol=1e-9)
    assert sum(left) == 0


def test_no_row_minds_its_neighbours():
    rng = np.random.default_rng(10)
    model = random_model(rng, classes=5, features=12)
    codes = random_codes(rng, model, rows=100, missing=0.1)
    whole = quantify(model, codes, [KL])
    order = rng.permutation(100)
    mixed = quantify(model, codes[order], [KL])
    np.testing.assert_array_equal(mixed.robustness[0], whole.robustness[0, order])
    for row in range(0, 100, 7):
        alone = quantify(model, codes[[row]], [KL])
        assert alone.robustness[0, 0] == whole.robustness[0, row]
        assert alone.tipping[0, 0] == whole.tipping[0, row]


def test_values_that_a_rival_hardly_has_are_no_trouble(left):
    rng = np.random.default_rng(11)
    tables = []
    for rare in (1e-8, 1e-12, 1e-20, 1e-40, 1e-55):
        table = rng.dirichlet(np.ones(3), size=3)
        table[0] = rare, 0.4, 0.6
        tables.append(table / table.sum(axis=1, keepdims=True))
    model = make_model([0.3, 0.3, 0.4], *tables)
    codes = random_codes(rng, model, rows=60)
    codes[:, 0] = 0
    found = quantify(model, codes, [KL])
    expected = robustness(model, codes, found.prediction)
    np.testing.assert_allclose(found.robustness[0], expected, rtol=2e-10)
    assert sum(left) <= 3
