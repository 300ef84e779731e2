"""Means of products: the kernel beside plain sums, the general path and the oracle."""

import numpy as np
import pytest
from numba import types

from robustq import BayesianNetworkClassifier
from robustq.core import engine
from robustq.core._mean_height_kernels import VANISHED, climb, lay_out, lay_out_prior
from robustq.core._mean_kernels import _choose_rows, make_room
from robustq.core.neighbourhoods import read
from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_vector_out,
    int_vector,
    int_vector_out,
    kernel,
)
from robustq.tables import Table
from robustq.vectors import WIDE, fill_wide, load_wide, store

from .documents import as_table, random_mixture, random_rows
from .oracle import Contest, disagreement

# Columns that tell a class too well are what some of these are about.
pytestmark = pytest.mark.filterwarnings("ignore::robustq.exceptions.TableWarning")
BALLS = ("epsilon", "tv", "chi2", "pari_mutuel", "odds_ratio")
BY_ROWS = ("epsilon_rows", "tv_rows", "chi2_rows")
every_ball = pytest.mark.parametrize("ball", BALLS)
every_neighbourhood = pytest.mark.parametrize("ball", [*BALLS, *BY_ROWS])
EXACT = 1e-9
CLOSER = 2e-11  # what the kernel keeps, also next to a pole


def learn(rng, classes=2, features=8, *, rows=400, most=5, sharp=0.5, smoothing=0.1, missing=0.0):
    """Return an averaged network, and rows; a value tells its class as sharply as is said."""
    sizes, y = rng.integers(2, most + 1, features), rng.integers(0, classes, rows)
    columns = []
    for size in sizes:
        masses = (1.0 - sharp) * rng.dirichlet(np.ones(size), size=classes)
        masses[np.arange(classes), rng.integers(0, size, classes)] += sharp
        edges = masses.cumsum(axis=1)[:, :-1]
        columns.append((rng.random(len(y))[:, None] > edges[y]).sum(axis=1))
    X = np.stack(columns, axis=1).astype(str).astype(object)
    model = BayesianNetworkClassifier("aode", smoothing=smoothing).fit(X, y)
    X[rng.random(X.shape) < missing] = None
    return model, model.encoding_.encode(Table.read(X))


def bind(model, ball, **how):
    return read(ball, **how).bind(model.model_, model.encoding_.names)


def quantify(model, rows, ball, **how):
    return engine.quantify(model.model_, rows, [bind(model, ball)], **how)


def solve(model, rows, ball):
    """Return the x of each row as the kernel has it: NaN where it is not sure."""
    (_, means), *_ = model.model_.read(rows).shapes
    return means.solve(bind(model, ball), quantify(model, rows, ball))[0]


def check(model, rows, ball, tolerance):
    """Assert that what is told of rows is right, as the oracle has it."""
    found, document = quantify(model, rows, ball), model.to_dict()
    for i, codes in enumerate(rows.codes):
        row = [None if code < 0 else int(code) for code in codes]
        tipping = int(found.tipping[0, i])
        problem = disagreement(
            *(Contest(document, row, ball), int(found.prediction[i])),
            *(float(found.robustness[0, i]), None if tipping < 0 else tipping, tolerance),
        )
        assert not problem, (problem, row)


# h and its derivatives


@kernel(
    types.void(
        *(float_vector_out, code_matrix, int_vector, float_matrix, float_matrix, float_matrix),
        *(types.float64, types.float64, types.boolean, types.boolean, int_vector, int_vector),
        *(int_vector_out, *[float_vector_out] * 6),
    )
)
def _climb(
    x,
    cells,
    terms,
    joint,
    prior,
    features,
    cut,
    chi2,
    fractional,
    falls,
    best,
    rival,
    whole,
    known,
    about,
    upper,
    lower,
    h,
    slope,
):
    form, width, classes = (cut, np.inf, chi2, falls), cells.shape[1], joint.shape[1]
    shape = _choose_rows(0, terms, joint, width, best, rival, whole, known), width, fractional
    sides, nothing = (about, upper, lower), len(features) - classes
    lay_out(0, True, cells, terms, shape, features, nothing, whole, *sides)
    both = lay_out_prior(prior, whole, fractional)[:2]
    level, steep, _, _, _ = climb(fill_wide(0.0) + load_wide(x, 0), form, shape, both, *sides)
    store(h, 0, level)
    store(slope, 0, steep)


def climb_at(x, means, made, best, rival):
    """Return h and its slope for the first rows, by the kernel."""
    whole, known, _, about, upper, lower = make_room(2, *means.cells.shape[1:], fractional=True)
    h, slope = np.empty(WIDE), np.empty(WIDE)
    cells = means.cells.reshape(-1, means.cells.shape[2])
    _climb(
        *(x, cells, means.terms, means.joint, made.prior, made.features, made.cut, made.chi2),
        *(made.fractional, made.falls, best, rival, whole, known, about, upper, lower, h, slope),
    )
    return h, slope


def plain_height(x, row, means, made, best, rival):
    """Return h of a row, by the formula."""

    def factors(table, c, low):
        line, side = table[c], -1.0 if low else 1.0
        _, _, p, u, _, _, s, t = line
        value = (p + side * x * (line[0] if low else u)) / (1.0 + x * (s if low else t))
        return max(value, 0.0) if low else min(value, made.cut)

    sums = []
    for c, low in ((rival, False), (best, True)):
        terms = [
            np.prod([factors(made.features, cell + c, low) for cell in term if cell >= 0])
            for term in means.cells[row, : means.terms[row]]
        ]
        # Where nothing of ĉ falls, its sum is left out.
        sums.append(factors(made.prior, c, low) * (sum(terms) if made.falls or not low else 1.0))
    return np.log(sums[0]) - np.log(sums[1]) if sums[1] > 0.0 else VANISHED


@pytest.mark.parametrize("ball", ["epsilon", "tv", "pari_mutuel", "tv_rows", "odds_ratio_rows"])
def test_heights_are_those_of_the_formula_before_and_beyond_kinks(ball):
    model, rows = learn(
        np.random.default_rng(1), features=5, rows=4000, most=3, sharp=0.3, missing=0.2
    )
    rows = rows[np.arange(WIDE)]
    (_, means), *_ = model.model_.read(rows).shapes
    found, made = quantify(model, rows, ball), means._tables(bind(model, ball))
    best, rival = found.prediction, found.runner_up
    roots = solve(model, rows, ball)
    for share in (0.0, 0.3, 0.9, 1.2, 3.0):
        x = share * roots
        h, slope = climb_at(x, means, made, best, rival)
        step = 1e-6 * roots
        after = climb_at(x + step, means, made, best, rival)[0]
        for row in range(WIDE):
            plain = plain_height(x[row], row, means, made, best[row], rival[row])
            assert h[row] == pytest.approx(plain, rel=1e-12, abs=1e-12)
        smooth = (after < VANISHED) & (h < VANISHED)
        rise = (after - h)[smooth] / step[smooth]
        assert np.mean(np.abs(rise - slope[smooth]) < 1e-3 * slope[smooth]) > 0.8


# Roots


@every_ball
@pytest.mark.parametrize("classes", [2, 4, 12])
@pytest.mark.parametrize("features", [1, 8, 14])
def test_both_paths_agree(ball, classes, features):
    rng = np.random.default_rng(2)
    for missing, smoothing in ((0.0, 0.1), (0.3, 1e-6), (0.1, 0.0)):
        model, rows = learn(rng, classes, features, missing=missing, smoothing=smoothing)
        some = rows[np.arange(20 if features < 14 else 5)]
        fast, slow = quantify(model, some, ball), quantify(model, some, ball, general=True)
        np.testing.assert_allclose(fast.robustness, slow.robustness, rtol=EXACT, atol=1e-14)
        np.testing.assert_array_equal(fast.prediction, slow.prediction)


@every_neighbourhood
@pytest.mark.parametrize("classes", [2, 5])
def test_nearly_all_roots_are_the_kernels_own(ball, classes):
    rng = np.random.default_rng(3)
    for sharp in (0.1, 0.6):
        # By rows, every table must have some.
        model, rows = learn(rng, classes, 6, rows=6000, most=3, sharp=sharp)
        some = rows[np.arange(100)]
        assert np.isnan(solve(model, some, ball)).mean() < 0.1
        fast, slow = quantify(model, some, ball), quantify(model, some, ball, general=True)
        np.testing.assert_allclose(fast.robustness, slow.robustness, rtol=EXACT, atol=1e-14)


@every_ball
@pytest.mark.parametrize("smoothing", [1e-3, 1.0])
def test_flips_next_to_poles_keep_their_digits(ball, smoothing):
    rng = np.random.default_rng(4)
    for features, sharp in ((4, 0.99), (7, 0.999)):
        model, rows = learn(rng, 2, features, rows=2000, sharp=sharp, smoothing=smoothing)
        distinct = rows[np.unique(rows.codes, axis=0, return_index=True)[1][:3]]
        assert not np.isnan(solve(model, distinct, ball)).all()
        check(model, distinct, ball, CLOSER)


@pytest.mark.parametrize(
    ("seed", "ball", "row"), [(49, "pari_mutuel", 65), (30, "chi2", 12), (34, "chi2", 95)]
)
def test_long_products_next_to_their_ends_keep_their_digits(seed, ball, row):
    # Multiplied out, as polynomials, what is left of them lost up to seven digits.
    model, rows = learn(np.random.default_rng(seed), 2, 24, rows=600, smoothing=1e-3)
    assert not np.isnan(solve(model, rows[np.array([row])], ball))
    check(model, rows[np.array([row])], ball, CLOSER)


@every_ball
def test_other_rivals_may_come_first(ball):
    # Of many classes, with values so rare that rivals overtake each other on the way.
    model, rows = learn(np.random.default_rng(5), 12, 3, sharp=0.3, smoothing=1e-2)
    found, x = quantify(model, rows, ball), solve(model, rows, ball)
    others = np.flatnonzero((found.tipping[0] != found.runner_up) & ~np.isnan(x))
    assert len(others) > 5
    check(model, rows[others[:4]], ball, EXACT)


@every_ball
def test_zeros_leave_rivals_that_never_flip(ball):
    rng = np.random.default_rng(6)
    for _ in range(6):
        document = random_mixture(rng, classes=3, features=3, zeros=0.3)
        model = BayesianNetworkClassifier.from_dict(document)
        table = as_table(document, random_rows(rng, document, WIDE + 3))
        rows = model.encoding_.encode(Table.read(table))
        fast, slow = quantify(model, rows, ball), quantify(model, rows, ball, general=True)
        np.testing.assert_allclose(fast.robustness, slow.robustness, rtol=EXACT)


@every_ball
@pytest.mark.parametrize("classes", [2, 3])
def test_the_end_of_all_sizes_is_no_root(ball, classes):
    # Features have one value each, and no ball: against a strong prior nothing ever flips.
    rng = np.random.default_rng(7)
    y = np.arange(60) % 20 % classes * (np.arange(60) % 20 < classes)
    model = BayesianNetworkClassifier("aode").fit(np.full((60, 4), "a", dtype=object), y)
    rows = model.encoding_.encode(Table.read(np.full((WIDE + 1, 4), "a", dtype=object)))
    still = [bind(model, ball, parts=["features"])]
    assert np.all(engine.quantify(model.model_, rows, still).robustness == np.inf)
    moving = quantify(model, rows, ball), quantify(model, rows, ball, general=True)
    np.testing.assert_allclose(moving[0].robustness, moving[1].robustness, rtol=EXACT)
    # Nor where others, side by side with them, do flip.
    model, rows = learn(rng, classes, 4, missing=0.6)
    single = bind(model, ball, parts=["feature:0"])
    fast = engine.quantify(model.model_, rows, [single]).robustness[0]
    slow = engine.quantify(model.model_, rows, [single], general=True).robustness[0]
    assert np.isinf(slow).any()
    assert np.isfinite(slow).any()
    np.testing.assert_allclose(fast, slow, rtol=EXACT)


@every_neighbourhood
@pytest.mark.parametrize("classes", [2, 5])
def test_roots_are_the_same_alone_and_in_company(ball, classes):
    rng = np.random.default_rng(8)
    model, rows = learn(rng, classes, 9, missing=0.2, smoothing=0.01)
    together, order = quantify(model, rows, ball), rng.permutation(len(rows))
    other = quantify(model, rows[order], ball)
    np.testing.assert_array_equal(other.robustness[0], together.robustness[0, order])
    np.testing.assert_array_equal(other.tipping[0], together.tipping[0, order])
    for row in range(0, len(rows), 40):
        alone = quantify(model, rows[np.array([row])], ball)
        assert alone.robustness[0, 0] == together.robustness[0, row]
        assert alone.tipping[0, 0] == together.tipping[0, row]
