"""How the nodes of a forest are written down, for the model and for kernels.

Kernels read it here: whoever compiles them need not import all that a model knows.
"""

__all__ = [
    "CHILD",
    "FARTHEST",
    "FEATURE",
    "FIRST",
    "HIGHEST",
    "LEAF",
    "LENGTH",
    "NARROW",
    "NARROW_SIZE",
    "NUMERIC",
    "WIDE",
]

# The columns of `nodes`. The last two are 64 bits together: a set of values, a threshold, or a
# list of values (where it begins, and how long it is).
FEATURE, CHILD, FIRST, LENGTH = range(4)
LEAF = -1

# How a feature is split: up to 64 values by a set, more by a list, numbers by a threshold.
NARROW, WIDE, NUMERIC = range(3)
NARROW_SIZE = 64

FARTHEST = -1e9  # a density whose logarithm is below this is 0: scales are 32 bits

HIGHEST = 1e300  # what a density is cut off at
