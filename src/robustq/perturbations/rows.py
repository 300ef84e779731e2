"""One formula over many mass functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.blocks import for_each_block

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats

    Formula = Callable[[Floats, Floats, Floats], Floats]

__all__ = ["map_rows"]

# Measured: smaller blocks pay for calls, larger ones for memory.
BLOCK_CELLS = 1 << 17


def map_rows(
    formula: Formula,
    q: Floats,
    f: Floats,
    delta: Floats,
    out: Floats,
    *,
    block_cells: int = BLOCK_CELLS,
    threads: int | None = None,
) -> Floats:
    """Fill `out` with `formula`, called on blocks with the outcomes on the first axis.

    Parameters
    ----------
    formula : callable
        Takes q, f of shape (outcomes, rows) and delta of shape (rows,); returns
        an array whose last axis is the rows.
    q, f : ndarray of shape (rows, outcomes)
    delta : ndarray of shape (rows,)
    out : ndarray of shape (rows,) or (rows, outcomes)
        Receives the result, rows first.
    block_cells : int
        How many cells of q a block holds; the result does not depend on it.
    threads : int, optional
        How many threads to use, all cores by default; the result does not depend on it.

    Returns
    -------
    ndarray
        `out`.
    """

    def fill(block: slice) -> None:
        out[block] = _apply(formula, q[block], f[block], delta[block])

    block_rows = max(1, block_cells // q.shape[1])
    for_each_block(fill, len(delta), block_rows, threads)
    return out


def _apply(
    formula: Formula,
    q: Floats,
    f: Floats,
    delta: Floats,
) -> Floats:
    # numpy rounds logarithms and exponentials of a view in steps differently.
    q, f, delta = np.ascontiguousarray(q.T), np.ascontiguousarray(f.T), np.ascontiguousarray(delta)
    # Overflow and 0/0 in a branch that is not taken are no news to anybody.
    with np.errstate(all="ignore"):
        return formula(q, f, delta).T
