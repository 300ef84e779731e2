"""Edges that a user gives, as a structure."""

from __future__ import annotations

import difflib
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from robustq.exceptions import InputError

from .structure import CLASS, Structure

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["name_class", "read_edges"]


def name_class(target: object, names: Sequence[str]) -> str:
    """Return what the class is called beside features of these names."""
    for name in (target, "class", "(class)"):
        if isinstance(name, str) and name and name not in names:
            return name
    return "((class))"


def read_edges(
    edges: Any, names: Sequence[str], target: str, sizes: Sequence[int], classes: int
) -> Structure:
    """Return the structure of edges (parent, child).

    Where none of them comes from the class, every feature has the class as a parent; where some do,
    only the features they lead to.

    Raises
    ------
    InputError
        If an edge is no pair of names, names something unknown, comes twice or closes a cycle.
    """
    position = {name: index for index, name in enumerate(names)}
    position |= {target: CLASS} if "class" in position else {"class": CLASS, target: CLASS}
    pairs: list[tuple[int, int]] = []
    for edge in edges:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            msg = f"an edge is a pair (parent, child) of names, got {edge!r}"
            raise InputError(msg)
        parent, child = (_locate(name, position, edge) for name in edge)
        if (parent, child) in pairs:
            msg = f"the edge {tuple(edge)!r} is given twice"
            raise InputError(msg)
        if parent == child:
            msg = f"the edge {tuple(edge)!r} leads from {edge[0]!r} to itself"
            raise InputError(msg)
        if parent != CLASS and sizes[parent] == 0:
            msg = f"the edge {tuple(edge)!r} comes from a column without any value"
            raise InputError(msg)
        pairs.append((parent, child))
    return _build(pairs, names, target, sizes, classes)


def _locate(name: Any, position: dict[str, int], edge: Any) -> int:
    # Names that are whole numbers are text in tables.
    known = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    if isinstance(known, str) and known in position:
        return position[known]
    near = difflib.get_close_matches(str(name), position, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(map(repr, list(position)[:12])) + (", …" if len(position) > 12 else "")
    msg = f"the edge {tuple(edge)!r} names {name!r}, which is no column; there are {shown}{hint}"
    raise InputError(msg)


def _build(
    pairs: list[tuple[int, int]],
    names: Sequence[str],
    target: str,
    sizes: Sequence[int],
    classes: int,
) -> Structure:
    tied = {child for parent, child in pairs if parent == CLASS}
    parents = {
        child: tuple(p for p, c in pairs if c == child and p != CLASS)
        for child in (CLASS, *range(len(sizes)))
    }
    _refuse_cycle(pairs, names, target)
    # What the class hangs on cannot be its child too.
    before = _ancestors(CLASS, pairs)
    every = tuple((i in tied) if tied else i not in before for i in range(len(sizes)))
    return Structure(
        tuple(sizes), classes, tuple(parents[i] for i in range(len(sizes))), every, parents[CLASS]
    )


def _ancestors(variable: int, pairs: list[tuple[int, int]]) -> set[int]:
    found: set[int] = set()
    waiting = [variable]
    while waiting:
        child = waiting.pop()
        more = {parent for parent, own in pairs if own == child} - found
        found |= more
        waiting.extend(more)
    return found


def _refuse_cycle(pairs: list[tuple[int, int]], names: Sequence[str], target: str) -> None:
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for parent, child in pairs:
        sorter.add(child, parent)
    try:
        sorter.prepare()
    except CycleError as error:
        called = [*names, target]
        way = " → ".join(called[v] for v in reversed(error.args[1]))
        msg = f"the edges close a cycle: {way}"
        raise InputError(msg) from error
