"""Loops over what rows reach."""

from numba import types

from robustq.kernels import code_vector, int_vector, int_vector_out, kernel

from .evidence import PRODUCT, SAME, SUM

__all__ = ["find_parents"]

byte_vector = types.Array(types.int8, 1, "C", readonly=True)


@kernel(
    types.void(
        *(int_vector, byte_vector, code_vector, int_vector),
        *(int_vector_out, int_vector_out, int_vector_out),
    )
)
def find_parents(starts, op, arity, extra, waiting, parent, height):
    """Write the parent of each node, −1 for a root, and how high it stands above its leaves."""
    for row in range(len(starts) - 1):
        count = 0
        for node in range(starts[row], starts[row + 1]):
            parent[node], height[node] = -1, 0
            if op[node] == SAME:
                height[node] = height[node - extra[node]] + 1
            if op[node] == PRODUCT or op[node] == SUM:
                count -= arity[node]
                for k in range(arity[node]):
                    child = waiting[count + k]
                    parent[child] = node
                    height[node] = max(height[node], height[child] + 1)
            waiting[count] = node
            count += 1
