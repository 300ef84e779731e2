"""The types of what kernels take, for their signatures.

Inputs are read-only, because a model may be a memory-mapped file; outputs are not.
"""

from numba import types

__all__ = [
    "bool_vector",
    "code_matrix",
    "code_matrix_out",
    "float_matrix",
    "float_matrix_out",
    "float_vector",
    "float_vector_out",
    "int_vector",
    "int_vector_out",
]

code_matrix = types.Array(types.int32, 2, "C", readonly=True)
bool_vector = types.Array(types.boolean, 1, "C", readonly=True)
int_vector = types.Array(types.int64, 1, "C", readonly=True)
float_matrix = types.Array(types.float64, 2, "C", readonly=True)
float_vector = types.Array(types.float64, 1, "C", readonly=True)

code_matrix_out = types.Array(types.int32, 2, "C")
int_vector_out = types.Array(types.int64, 1, "C")
float_vector_out = types.Array(types.float64, 1, "C")
float_matrix_out = types.Array(types.float64, 2, "C")
