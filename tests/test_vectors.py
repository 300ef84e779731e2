"""Vectors in kernels: arithmetic of all lanes at once, beside numpy's."""

import math

import numpy as np

from robustq.core._log_kernels import log_of
from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    int_vector,
    kernel,
)
from robustq.vectors import (
    LANES,
    WIDTH,
    choose,
    fill,
    get,
    load,
    look_up,
    multiply_add,
    some,
    store,
    transpose,
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


@kernel((float_matrix, int_vector, code_matrix, int_vector, int_vector, float_matrix_out))
def _gather(table, places, cells, starts, shifts, out):
    a, b, c, d = transpose(table, places)
    store(out, 0 * LANES, a)
    store(out, 1 * LANES, b)
    store(out, 2 * LANES, c)
    store(out, 3 * LANES, d)
    a, b, c, d = look_up(table, cells, 1, starts, shifts, 19)
    store(out, 4 * LANES, a)
    store(out, 5 * LANES, b)
    store(out, 6 * LANES, c)
    store(out, 7 * LANES, d)


def test_columns_are_gathered_from_any_lines():
    rng = np.random.default_rng(4)
    table, cells = rng.random((20, WIDTH)), rng.integers(0, 18, (LANES, 3)).astype(np.int32)
    cells[3, 1] = -1
    lines, rows = rng.integers(0, 20, LANES), rng.permutation(LANES)
    shifts = rng.integers(0, 1, LANES) * WIDTH + 2
    out = np.empty((8, LANES))
    _gather(table, lines * WIDTH + 1, cells, rows * 3, shifts, out)
    np.testing.assert_array_equal(out[:4], table[lines, 1:5].T)
    found = np.where(cells[rows, 1] < 0, 19, cells[rows, 1])
    np.testing.assert_array_equal(out[4:], table[found, 2:6].T)
