"""Where arrays begin in memory."""

import numpy as np
import pytest

from robustq.core.room import align, make_floats, make_indices


def test_arrays_begin_where_a_line_of_the_cache_does():
    # Several are alive at once: one alone may lie there by chance.
    made = [make(size) for size in range(40) for make in (make_floats, make_indices)]
    assert all(array.ctypes.data % 64 == 0 for array in made if array.size)
    assert [array.size for array in made] == [size for size in range(40) for _ in range(2)]
    assert {array.dtype.name for array in made} == {"float64", "int64"}
    assert all(array.flags.c_contiguous and not array.any() for array in made)


@pytest.mark.parametrize("shape", [(0, 3), (5,), (7, 8), (3, 11)])
def test_tables_are_the_same_elsewhere(shape):
    table = np.random.default_rng(1).random(shape)
    made = align(table)
    np.testing.assert_array_equal(made, table)
    assert made.ctypes.data % 64 == 0 or not made.size
    assert not np.shares_memory(made, table)
    assert made.flags.c_contiguous
