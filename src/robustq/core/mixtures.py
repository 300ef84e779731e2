"""Mixtures: of each tree of a mixture one leaf counts, below a path of weights that are perturbed.

Complete evidence f has mass in one leaf of each tree, with v = (p(ĉ) − p(c)) Π p(f_i). So V(tree)
is v times the product of the lower weights on the path if v > 0, or else of the upper ones: that is
Theorem 3 (robustness of generative forests), for rows without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .circuits import find_limit, size_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robustq.arrays import Codes, Floats, Indices

    from .keeping import Keeper
    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["NEAR", "MixtureTables", "Mixtures", "Straight"]

# Classes whose difference is, relative to their sum, below this share of the number of factors
# are told apart in exact arithmetic.
NEAR = 2e-7
FAR = 0.9
RANGE = 400.0  # of the points that are looked at first


@dataclass(frozen=True, eq=False)
class MixtureTables:
    """The trees of a mixture, node by node, parents before children.

    Attributes
    ----------
    leaf_nodes : ndarray of shape (leaves,)
        The node of each leaf.
    weights : ndarray of shape (nodes,)
        The weight of each node among the children of its parent.
    parents : ndarray of shape (nodes,)
        −1 for a root.
    rows : ndarray of shape (nodes,), optional
        The weight of the training rows there; None where nothing was counted.
    reach, reach_scale : ndarray of shape (leaves,)
        The product of the weights on the path, as mantissa and scale.
    class_probs : ndarray of shape (leaves, classes)
    depth : int
        The length of the longest path.
    part : int
        The position of the weights among the model's parts.
    """

    leaf_nodes: Indices
    weights: Floats
    parents: Codes
    rows: Floats | None
    reach: Floats
    reach_scale: Codes
    class_probs: Floats
    depth: int
    part: int


class BallTables(NamedTuple):
    """What a ball makes of the weights; see `_mixture_kernels`.

    All denominators being 1 + x · scale, y = x / (1 + x · scale) makes bounds straight lines.
    """

    edges: Floats
    scale: float
    limit: float
    looks: tuple[Floats, NDArray[np.float32], Floats]


@dataclass(frozen=True, eq=False)
class Straight:
    """Rows of a mixture of trees whose weights are perturbed, for balls with straight bounds.

    Attributes
    ----------
    tables : MixtureTables
    factors : int
        How many factors a row has beside the weights.
    kept : Keeper
        Keeps what balls make of the weights.
    """

    tables: MixtureTables
    factors: int
    kept: Keeper

    def fits(self, perturbed: Perturbed) -> bool:
        """Tell whether kernels know a neighbourhood: weights alone, and straight bounds."""
        if perturbed.parts != (self.tables.part,) or perturbed.features or not perturbed.has_form:
            return False
        return self._find(perturbed) is not None

    def made(self, perturbed: Perturbed) -> BallTables:
        """Return what a ball that fits makes of the weights."""
        made = self._find(perturbed)
        assert made is not None  # noqa: S101 (`fits` was asked)
        return made

    def _find(self, perturbed: Perturbed) -> BallTables | None:
        return self.kept.find(perturbed.key, lambda: _make_tables(perturbed, self.tables))

    def forget_unclear(self, perturbed: Perturbed, y: Floats) -> Floats:
        """Return y without what lies so near to its end that x = y / (1 − y · scale) loses digits.

        Sizes that do not go by rows are y itself, or its square.
        """
        scale = self.made(perturbed).scale
        if scale == 0.0 or perturbed.sizes != "rows":
            return y
        return np.where((y * scale > FAR) & np.isfinite(y), np.nan, y)

    def size_of(self, perturbed: Perturbed, y: Floats) -> Floats:
        """Return the sizes that belong to y."""
        made = self.made(perturbed)
        if made.scale == 0.0:
            return size_of(perturbed, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            x = y / np.maximum(1.0 - y * made.scale, 0.0)
        sizes = size_of(perturbed, np.where(np.isfinite(x), x, 0.0))
        at_end = np.isfinite(y) & ~np.isfinite(x)
        return np.where(np.isinf(y), np.inf, np.where(at_end, perturbed.domain.end, sizes))


@dataclass(frozen=True, eq=False)
class Mixtures(Straight):
    """Complete rows: the leaf each reaches in each tree.

    Attributes
    ----------
    leaves : ndarray of shape (trees, rows)
    mass, scale : ndarray of shape (trees, rows)
        Π p(f_i) there, as mantissa and scale.
    """

    leaves: Codes
    mass: Floats
    scale: Codes

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class of each row; x is NaN where rounding would show."""
        from . import _mixture_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)
        from ._path_kernels import POINTS  # noqa: PLC0415
        from ._rival_kernels import RIVALS  # noqa: PLC0415

        made, tables = self.made(perturbed), self.tables
        trees, rows = self.leaves.shape
        y, tipping = np.empty(rows), np.empty(rows, dtype=np.int64)
        kernels.search(
            *(tables.leaf_nodes, made.edges, tables.reach, tables.reach_scale),
            *(tables.class_probs, made.looks, self.leaves, self.mass, self.scale),
            *(found.prediction, found.runner_up, made.limit),
            NEAR * (self.factors + tables.depth),
            *(np.empty(trees, dtype=np.int64), np.empty(trees, dtype=np.int64)),
            np.empty(_round_up(trees) // kernels.LANES, dtype=np.int64),
            *_make_room(trees, tables.depth),
            np.empty((len(kernels.HEIGHTS), POINTS), dtype=np.float32),
            np.empty((len(RIVALS), _round_up(tables.class_probs.shape[1]))),
            *(y, tipping),
        )
        return self.forget_unclear(perturbed, y), tipping


def _round_up(count: int) -> int:
    """Return how many there are in lanes that are filled up."""
    from . import _mixture_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    return -(-count // kernels.LANES) * kernels.LANES


def _make_room(trees: int, depth: int) -> tuple[Floats, Floats]:
    """Return paths and terms to be filled; of more than all trees, to which no path leads."""
    from . import _mixture_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    width = _round_up(trees)
    paths = np.zeros((len(kernels.PATHS), depth + 1, width))
    paths[kernels.W] = 1.0
    return paths, np.zeros((len(kernels.TERMS), width))


def _make_tables(perturbed: Perturbed, tables: MixtureTables) -> BallTables | None:
    """Return what a ball makes of the weights; None where the kernel cannot use it."""
    from . import _path_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    rows = None
    is_root = tables.parents < 0
    parents = np.where(is_root, np.arange(len(tables.parents)), tables.parents)
    if perturbed.sizes == "rows":
        if tables.rows is None:
            return None
        rows = np.where(is_root, 1.0, tables.rows[parents])
        if np.any(rows == 0.0):
            return None
    form = perturbed.ball.form(tables.weights, rows)
    if form is None:
        return None
    scales = np.concatenate([form.fall_scale[~is_root], form.rise_scale[~is_root]])
    scale = float(scales[0]) if len(scales) else 0.0
    # A ball with denominators of its own for every weight may have equal ones by chance.
    if not np.all(scales == scale) or (scale > 0.0 and not perturbed.ball.together):
        return None
    fall = form.fall + tables.weights * scale
    rise = form.rise - tables.weights * scale
    edges = np.stack([tables.weights, fall, rise, parents], axis=1)
    # A root has no edge above it, and is its own parent.
    edges[is_root, : kernels.PARENT] = 1.0, 0.0, 0.0
    limit = find_limit(perturbed)
    if scale > 0.0:
        limit = 1.0 / scale if limit > 1e200 else limit / (1.0 + limit * scale)
    return BallTables(edges, scale, limit, _look_ahead(edges, tables.leaf_nodes, limit))


def _look_ahead(
    edges: Floats, leaf_nodes: Indices, limit: float
) -> tuple[Floats, NDArray[np.float32], Floats]:
    """Return where leaves end, and what comes before, at points that are looked at first."""
    from . import _path_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    ends = np.empty((len(edges), len(kernels.ENDS)))
    kernels.find_ends(edges, ends)
    ends = ends[leaf_nodes]
    # Beyond this no tree is left that could carry a prediction.
    vanishes = ends[:, kernels.VANISHES]
    last = min(limit, float(vanishes[np.isfinite(vanishes)].max(initial=0.0)) or 1.0)
    points = last * np.geomspace(1.0 / RANGE, 1.0, kernels.POINTS)
    products = np.empty((len(edges), 2, kernels.POINTS), dtype=np.float32)
    kernels.find_products(edges, points, products)
    return ends, products[leaf_nodes], points
