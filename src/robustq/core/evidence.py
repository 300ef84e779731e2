"""What rows reach of a model: small trees of nodes, as flat arrays that one recursion reads.

Every model is a circuit of four kinds of nodes over the class and the features. A leaf holds a mass
function on the values of one feature, or on the classes; a product has children that speak of
different variables; a sum is a weighted mean of children. Of all that, a row reaches a tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.tables import Rows

    from .engine import Reading

__all__ = [
    "BRANCH",
    "CLASS",
    "FEATURE",
    "NONE",
    "PRODUCT",
    "SAME",
    "SIDE",
    "SUM",
    "TREE",
    "VALUE",
    "About",
    "Condition",
    "Evidence",
    "Locals",
    "Model",
    "split_evidence",
]

# What a node is: a number that no ball moves, a feature's leaf, a leaf of the class, and so on;
# and one that has the value of another.
VALUE, FEATURE, CLASS, PRODUCT, SUM, SAME = range(6)
SIDE = -2
NONE = -1
TREE, BRANCH = -2, -3
MOST_NODES = 1 << 19


class Evidence(NamedTuple):
    """What rows reach, row after row, children before their parents.

    Children of a node are those that stand last before it and have no parent yet. Leaves stand
    below products, the class before the features. What is missing, and what no row reaches, has no
    node.

    Below an indicator of a class everything is pushed in one direction. There, sums over the values
    of a feature may stand as the last children of a product, and a product may be used again
    (`SAME`). Such products begin with a mark of the side they are on, the class: its value is 1.

    Attributes
    ----------
    starts : ndarray of shape (rows + 1,)
        Where the nodes of each row begin; the last one of a row is its root.
    op : ndarray of int8
        `VALUE`, `FEATURE`, `CLASS`, `PRODUCT`, `SUM` or `SAME`.
    arity : ndarray of int32
        How many children there are.
    p : ndarray
        At a leaf, the probability of what was observed; else what the sum above gives to the node;
        1 for a root.
    extra : ndarray of int64
        At `VALUE`, the exponent of p · 2^extra, which it stands for; at `CLASS`, the row of the
        class table, −1 for an indicator, `SIDE` for a mark; at `PRODUCT`, how many children are
        sums without the class; at `SUM`, how many of its children are not reached; at `SAME`, how
        many nodes back the one stands whose value it has.
    local : ndarray of int64
        The local mass function that p belongs to; at `CLASS`, the one on the classes, `NONE` for an
        indicator.
    slot : ndarray of int32
        Which outcome of the local mass function p is of; at an indicator, which class.
    part : ndarray of int8
        The part of the model that the local mass function belongs to, as a position among the
        model's; `NONE` where it has one outcome only, which no ball moves.
    feature : ndarray of int32
        The feature it speaks of; of weights, the one that is split; `NONE` if there is none.
    rows : ndarray
        The weight of the training rows behind it; NaN where nothing was counted.
    """

    starts: Indices
    op: NDArray[np.int8]
    arity: Codes
    p: Floats
    extra: Indices
    local: Indices
    slot: Codes
    part: NDArray[np.int8]
    feature: Codes
    rows: Floats

    @classmethod
    def empty(cls, starts: Indices) -> Evidence:
        """Return room for the nodes of rows; every column of every node is to be written."""
        nodes = int(starts[-1])
        kinds = (np.int8, np.int32, np.float64, np.int64, np.int64, np.int32)
        more = (np.int8, np.int32, np.float64)
        columns: list[Any] = [np.empty(nodes, dtype=kind) for kind in (*kinds, *more)]
        return cls(starts, *columns)


def split_evidence(counts: Indices) -> Iterator[slice]:
    """Yield blocks of rows that have as many nodes as can be held at once, at least one row.

    Parameters
    ----------
    counts : ndarray of shape (rows,)
        How many nodes each row has.
    """
    first, total = 0, np.cumsum(counts)
    while first < len(counts):
        before = total[first - 1] if first else 0
        last = int(np.searchsorted(total, before + MOST_NODES, side="right"))
        yield slice(first, max(last, first + 1))
        first = max(last, first + 1)


# Some values of a feature by their codes, or the numbers above the first and up to the second.
Condition: TypeAlias = "tuple[int, ...] | tuple[float, float]"


class About(NamedTuple):
    """What a local mass function is about, for words and documents.

    Attributes
    ----------
    variable : int
        The feature whose values are its outcomes; `NONE` where they are classes, `TREE` trees or
        networks, `BRANCH` where nobody knows what tells them apart.
    outcomes : tuple of conditions, optional
        What each outcome is; by default the values of the feature in the order of their codes, or
        the classes in theirs. Of networks, the feature that leads each.
    label : int
        The class it is given; `NONE` if there is none.
    given : tuple of pairs (feature, condition)
        What else it is given.
    tree, node : int
        Which tree, and which node of a document, it is in; `NONE` if there are none.
    path : tuple, optional
        Where its probabilities stand in the document of the model; None where a document has no
        place for them: then no model of the same kind has others.
    codes : tuple of int, optional
        Which entries there are its outcomes; all by default.
    """

    variable: int
    outcomes: tuple[Condition, ...] | None = None
    label: int = NONE
    given: tuple[tuple[int, Condition], ...] = ()
    tree: int = NONE
    path: tuple[str | int, ...] | None = None
    codes: tuple[int, ...] | None = None
    node: int = NONE


class Locals(Protocol):
    """The local mass functions of a model, as a view: nothing is unpacked before it must be.

    With a method `about`, which takes the number of one and returns an `About`, explanations speak
    of them in the words of the table, and a witness can be made.
    """

    parts: tuple[str, ...]
    class_table: Floats

    @property
    def wide(self) -> tuple[int, ...]:
        """The parts that weigh more than two children."""

    @property
    def on_classes(self) -> tuple[int, ...]:
        """The parts that are mass functions on the classes in a leaf."""

    @property
    def counted(self) -> Bools:
        """For each part, whether rows were counted there."""

    def outcomes(self, local: Indices) -> Indices:
        """Return how many outcomes some of them have."""

    def expand(self, local: Indices) -> Floats:
        """Return whole mass functions, all with the same number of outcomes."""

    def position(self, local: Indices, slot: Indices) -> Indices:
        """Return where values of features stand among the outcomes."""


class Model(Protocol):
    """What the engine asks of a model: it never asks what kind it is."""

    default_parts: tuple[str, ...]
    leaf_parts: tuple[int, ...]  # the parts that `reach` may fold
    merges_rows: bool  # whether it pays to look for equal rows in a whole table

    @property
    def locals(self) -> Locals:
        """The local mass functions."""

    @property
    def depth(self) -> int:
        """The length of the longest path: how many factors there are beside the features'."""

    @property
    def has_numbers(self) -> bool:
        """Whether a feature has a density, so that p(c, f) is no mass."""

    @property
    def by_frequency(self) -> Indices:
        """The classes, the most frequent one first."""

    def log_joint(self, rows: Rows) -> Floats:
        """Return log p(c, f), (rows, classes)."""

    def read(self, rows: Rows) -> Reading:
        """Return log p(c, f), and the shapes that kernels of their own take."""

    def reach(self, rows: Rows, *, fold: bool = False) -> Iterator[tuple[slice, Evidence]]:
        """Yield what rows reach, in blocks that fit into memory.

        With `fold`, leaves of features that stand together may be one value: nobody moves them.
        """
