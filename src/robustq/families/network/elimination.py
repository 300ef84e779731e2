"""p(c, f) with features missing in any structure, by variable elimination."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.memory import require_memory

from .structure import CLASS

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats

    from .model import Network

__all__ = ["eliminate"]

SUMMED = 2
AT_ONCE = 1 << 22  # cells of all rows together


class Factor(NamedTuple):
    """A function of some variables, for rows: the first axis is the rows."""

    variables: tuple[int, ...]
    values: Floats


def eliminate(model: Network, codes: Codes, states: Codes) -> Floats:
    """Return log p(c, f), (rows, classes).

    Raises
    ------
    UnsupportedError
        If it would not fit into memory; before it is tried.
    """
    found = np.empty((len(codes), model.structure.classes))
    # Rows that lack the same cells are eliminated together.
    patterns, group = np.unique(states, axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        rows = np.flatnonzero(group.ravel() == index)
        order, cells = _plan(model, pattern)
        step = max(1, AT_ONCE // cells)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            found[some] = _solve(model, codes[some], pattern, order)
    return found


def _scopes(model: Network, pattern: Codes) -> list[tuple[int, ...]]:
    """Return what each factor is a function of: variables that were not seen, and the class."""
    structure = model.structure
    own = (*_unseen(structure.class_parents, pattern), CLASS)
    return [
        own,
        *(
            _unseen((*structure.parents[i], i, *structure.parents_of(i)[:1]), pattern)
            for i in np.flatnonzero(pattern).tolist()
        ),
    ]


def _unseen(variables: tuple[int, ...], pattern: Codes) -> tuple[int, ...]:
    kept = [v for v in variables if v == CLASS or pattern[v] == SUMMED]
    return tuple(dict.fromkeys(kept))


def _plan(model: Network, pattern: Codes) -> tuple[list[int], int]:
    """Return in which order to sum variables out, and how many cells a row needs at the most.

    Whichever makes the smallest factor is next.
    """
    structure = model.structure
    scopes = [set(scope) for scope in _scopes(model, pattern)]
    left = set(np.flatnonzero(pattern == SUMMED).tolist())
    order, most = [], structure.classes

    def size(variables: set[int]) -> int:
        return prod(structure.classes if v == CLASS else structure.sizes[v] for v in variables)

    while left:
        joined = {v: set().union(*(s for s in scopes if v in s)) for v in left}
        best = min(left, key=lambda v: (size(joined[v]), v))
        most = max(most, size(joined[best]))
        scopes = [s for s in scopes if best not in s] + [joined[best] - {best}]
        left.remove(best)
        order.append(best)
    require_memory(
        16 * most,
        "the posteriors of a row with so many missing cells",
        "fill some of them, or take a structure with fewer parents",
    )
    return order, most


def _solve(model: Network, codes: Codes, pattern: Codes, order: list[int]) -> Floats:
    factors, scale = _read(model, codes, pattern), np.zeros(len(codes))
    for variable in order:
        own = [factor for factor in factors if variable in factor.variables]
        factors = [factor for factor in factors if variable not in factor.variables]
        joined, logs = _multiply(own)
        axis = joined.variables.index(variable) + 1
        rest = tuple(v for v in joined.variables if v != variable)
        factors.append(Factor(rest, joined.values.sum(axis=axis)))
        scale += logs
    whole, logs = _multiply([*factors, Factor((CLASS,), np.ones((1, model.structure.classes)))])
    with np.errstate(divide="ignore"):
        return np.log(whole.values) + (scale + logs)[:, None]


def _read(model: Network, codes: Codes, pattern: Codes) -> list[Factor]:
    """Return the tables as far as rows leave them open."""
    structure = model.structure
    factors = [
        _take(
            model.class_probs.reshape(structure.class_shape),
            (*structure.class_parents, CLASS),
            codes,
            pattern,
        )
    ]
    for i in np.flatnonzero(pattern).tolist():
        axes = (*structure.parents[i], i, CLASS)
        factor = _take(model.table(i), axes, codes, pattern)
        if not structure.from_class[i]:
            factor = Factor(factor.variables[:-1], factor.values[..., 0])
        factors.append(factor)
    return factors


def _take(table: Floats, axes: tuple[int, ...], codes: Codes, pattern: Codes) -> Factor:
    """Return a table at the codes that were seen, rows first."""
    seen = [k for k, v in enumerate(axes) if v != CLASS and pattern[v] != SUMMED]
    open_ = [k for k in range(len(axes)) if k not in seen]
    turned = table.transpose([*seen, *open_])
    values = turned[tuple(codes[:, axes[k]] for k in seen)] if seen else turned[None]
    return Factor(tuple(axes[k] for k in open_), values)


def _multiply(factors: list[Factor]) -> tuple[Factor, Floats]:
    """Return the product, its largest value 1 in each row, and the logarithm of what that takes."""
    variables = tuple(sorted({v for factor in factors for v in factor.variables}))
    product, logs = np.ones((1,) * (1 + len(variables))), np.zeros(1)
    for factor in factors:
        order = sorted(range(len(factor.variables)), key=lambda k: factor.variables[k])
        values = factor.values.transpose([0, *(k + 1 for k in order)])
        shape = [1] * (1 + len(variables))
        shape[0] = len(values)
        for k in order:
            at = variables.index(factor.variables[k]) + 1
            shape[at] = factor.values.shape[k + 1]
        product = product * values.reshape(shape)
        most = product.reshape(len(product), -1).max(axis=1)
        safe = np.where(most > 0.0, most, 1.0)
        product = product / safe.reshape(-1, *([1] * len(variables)))
        logs = logs + np.log(safe)
    return Factor(variables, product), logs
