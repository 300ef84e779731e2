"""Vectors in kernels: arithmetic of all lanes at once, beside numpy's."""

import math

import numpy as np
import pytest
from numba import types

from robustq.core._log_kernels import log_of
from robustq.kernels import (
    code_matrix,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    int_vector,
    int_vector_out,
    kernel,
)
from robustq.vectors import (
    LANES,
    WIDE,
    WIDTH,
    choose,
    fill,
    fill_wide,
    first_lanes,
    get,
    how_many,
    lane_is,
    largest,
    load,
    load_singles,
    load_some,
    load_wide,
    look_up,
    multiply_add,
    pick,
    product,
    some,
    spread_cells,
    store,
    total,
    turn,
)

ONE, OTHER = np.random.default_rng(3).uniform(0.1, 3.0, (2, LANES))


@kernel((float_vector, float_vector, float_matrix_out))
def _compute(one, other, out):
    a, b = load(one, 0), load(other, 0)
    store(out, 0 * LANES, a + b - 1.0)
    store(out, 1 * LANES, a * b / 2.0)
    store(out, 2 * LANES, -abs(a - b))
    store(out, 3 * LANES, max(a, 1.0) + min(a, b))
    store(out, 4 * LANES, choose((a < b) & ~(b >= 2.0), a, 7.0))
    store(out, 5 * LANES, multiply_add(a, b, fill(get(a, 2))))
    store(out, 6 * LANES, log_of(a) + math.sqrt(b))
    c = a
    c += b
    c *= 2.0
    c -= a
    c /= b
    store(out, 7 * LANES, c)


def test_arithmetic_is_of_all_lanes():
    out = np.empty((8, LANES))
    _compute(ONE, OTHER, out)
    a, b = ONE, OTHER
    expected = [
        a + b - 1.0,
        a * b / 2.0,
        -abs(a - b),
        np.maximum(a, 1.0) + np.minimum(a, b),
        np.where((a < b) & ~(b >= 2.0), a, 7.0),
        a * b + a[2],
        np.log(a) + np.sqrt(b),
        ((a + b) * 2.0 - a) / b,
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-15, atol=1e-15)


@kernel((float_vector, float_vector_out))
def _ask(numbers, out):
    a = load(numbers, 0)
    out[0] = 1.0 if some(a > 1.0) else 0.0
    out[1] = 1.0 if some((a < 0.0) | (a == 5.0)) else 0.0


def test_a_condition_in_one_lane_is_enough():
    for lane in range(LANES):
        numbers, out = np.zeros(LANES), np.empty(2)
        numbers[lane] = 2.0
        _ask(numbers, out)
        assert out.tolist() == [1.0, 0.0]
        numbers[lane] = 5.0
        _ask(numbers, out)
        assert out.tolist() == [1.0, 1.0]
    _ask(np.zeros(LANES), out)
    assert out.tolist() == [0.0, 0.0]


@kernel((float_vector, float_vector_out))
def _pick(numbers, out):
    out[0] = choose(numbers[0] < numbers[1], numbers[0], 7.0)


def test_numbers_are_chosen_as_lanes_are():
    out = np.empty(1)
    for one, other, expected in ((1.0, 2.0, 1.0), (2.0, 1.0, 7.0), (math.nan, 1.0, 7.0)):
        _pick(np.array([one, other]), out)
        assert out[0] == expected


@kernel((float_vector, float_vector_out))
def _compute_wide(numbers, out):
    a = load_wide(numbers, 0)
    store(out, 0, choose(a > 1.5, multiply_add(a, a, fill_wide(1.0)), log_of(a)) - get(a, 15))
    out[WIDE] = 1.0 if some(a == get(a, 15)) else 0.0


def test_wide_ones_are_the_same_with_more_lanes():
    numbers, out = np.concatenate([ONE, OTHER]), np.empty(WIDE + 1)
    _compute_wide(numbers, out)
    expected = np.where(numbers > 1.5, numbers**2 + 1.0, np.log(numbers)) - numbers[15]
    np.testing.assert_allclose(out[:WIDE], expected, rtol=1e-15, atol=1e-15)
    assert out[WIDE] == 1.0


@kernel((float_matrix, int_vector, float_matrix_out))
def _gather(table, places, out):
    a, b, c, d = look_up(table, places, 2, 3)
    store(out, 0 * WIDE, a)
    store(out, 1 * WIDE, b)
    store(out, 2 * WIDE, c)
    store(out, 3 * WIDE, d)


def test_columns_are_gathered_from_any_lines():
    rng = np.random.default_rng(4)
    table, lines = rng.random((20, WIDTH)), rng.integers(0, 20, WIDE)
    out = np.empty((4, WIDE))
    _gather(table, np.append([9, 9], lines * WIDTH + 1), out)
    np.testing.assert_array_equal(out, table[lines, 4:8].T)


@kernel((code_matrix, int_vector, int_vector, int_vector_out))
def _spread(cells, starts, shifts, places):
    spread_cells(cells, starts, 2, 70, shifts, places, 1)


def test_cells_of_any_rows_become_places_side_by_side():
    rng = np.random.default_rng(5)
    cells = rng.integers(-1, 60, (30, 11)).astype(np.int32)
    rows, shifts = rng.integers(0, 30, WIDE), rng.integers(0, 99, (2, WIDE))
    places = np.zeros(1 + 8 * 2 * WIDE, dtype=np.int64)
    _spread(cells, rows * 11, shifts.ravel(), places)
    found = cells[rows, 2:10].T.astype(np.int64)
    expected = np.where(found < 0, 70, found)[:, None, :] * WIDTH + shifts
    np.testing.assert_array_equal(places[1:].reshape(8, 2, WIDE), expected)


@kernel((float_vector, code_vector, types.int64, float_matrix_out))
def _move(values, places, count, out):
    store(out, 0 * LANES, pick(values, places, 2))
    store(out, 1 * LANES, choose(first_lanes(count), load(values, 0), -1.0))


def test_numbers_are_picked_from_any_places():
    rng = np.random.default_rng(4)
    values, places = rng.random(40), rng.integers(0, 40, 2 + LANES).astype(np.int32)
    out = np.empty((2, LANES))
    _move(values, places, 0, out)
    np.testing.assert_array_equal(out[0], values[places[2:]])


@pytest.mark.parametrize("count", [0, 1, 5, LANES, LANES + 3])
def test_the_first_lanes_are_so_many(count):
    values, out = np.arange(LANES) + 1.0, np.empty((2, LANES))
    _move(values, np.zeros(2 + LANES, dtype=np.int32), count, out)
    np.testing.assert_array_equal(out[1], np.where(np.arange(LANES) < count, values, -1.0))


@kernel(types.float64(float_vector, types.int64, types.int64, float_vector_out))
def _take(values, start, count, out):
    found = load_some(values, start, count)
    store(out, 0, found)
    return total(found)


@pytest.mark.parametrize("count", range(1, LANES + 1))
def test_no_more_is_loaded_than_there_is(count):
    values, out = np.concatenate([ONE, OTHER]), np.full(LANES, np.nan)
    # The last ones: beyond them nobody may look.
    given = _take(values, len(values) - count, count, out)
    assert out[:count].tolist() == values[len(values) - count :].tolist()
    assert not out[count:].any()
    pairs = out.reshape(-1, 2).sum(axis=1)
    assert given == (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])


singles = types.Array(types.float32, 1, "C", readonly=True)


@kernel(types.int64(singles, types.int64, float_vector_out))
def _widen(values, lane, out):
    found = load_singles(values, 3)
    store(out, 0, choose(lane_is(lane), -1.0, found))
    return how_many(found > 0.5)


@pytest.mark.parametrize("lane", [-1, 0, 5, LANES])
def test_short_floats_become_long_ones_from_any_place(lane):
    values, out = np.random.default_rng(6).random(20).astype(np.float32), np.empty(LANES)
    count = _widen(values, lane, out)
    found = values[3 : 3 + LANES].astype(np.float64)
    assert count == np.count_nonzero(found > 0.5)
    np.testing.assert_array_equal(out, np.where(np.arange(LANES) == lane, -1.0, found))


@kernel((float_vector, float_vector_out))
def _fold(numbers, out):
    a = load(numbers, 0)
    out[0], out[1], out[2] = total(a), product(a), largest(a)


def test_lanes_are_folded():
    out = np.empty(3)
    for numbers in (ONE, -OTHER):
        _fold(numbers, out)
        np.testing.assert_allclose(out, [numbers.sum(), numbers.prod(), numbers.max()], rtol=1e-14)


@kernel((float_vector, int_vector, float_vector_out))
def _turn(numbers, places, out):
    turn(numbers, places, out, 3)


def test_lines_become_columns():
    rng = np.random.default_rng(5)
    numbers, out = rng.random(50), np.zeros(LANES * LANES + 6)
    places = rng.integers(0, 50 - LANES, LANES)
    _turn(numbers, places, out)
    expected = numbers[places[:, None] + np.arange(LANES)].T
    assert np.array_equal(out[3:-3].reshape(LANES, LANES), expected)
    assert not out[:3].any()
    assert not out[-3:].any()
