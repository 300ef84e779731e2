"""Forests as plain data, ready for JSON: `to_dict` and `from_dict`."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np

from robustq.documents.documents import get, read_probabilities, read_row_counts, write_rows
from robustq.exceptions import InputError
from robustq.tables import Encoding, Numeric

from .cells import Cell, cut, pack_split, read_split, walk, whole_cell
from .checking import check_forest
from .local_models import PARTS
from .model import NORMAL, Forest, split_kinds
from .nodes import CHILD, FEATURE, HIGHEST, LEAF, NARROW
from .planting import Features, Tree, assemble, measure_heights

if TYPE_CHECKING:
    from robustq.arrays import Bools, Codes, Floats

__all__ = ["read_forest", "read_normal", "write_circuit", "write_forest"]


def write_forest(forest: Forest) -> dict[str, Any]:
    """Return what the document of a forest holds beside its header."""
    trees = [{"nodes": _write_nodes(forest, tree)} for tree in range(forest.trees)]
    if not len(forest.base):
        return {"trees": trees}
    ends = itertools.pairwise(forest.base_starts.tolist())
    return {"base": [forest.base[first:last].tolist() for first, last in ends], "trees": trees}


def _write_nodes(forest: Forest, tree: int, *, whole: bool = False) -> list[dict[str, Any]]:
    """Return the nodes of a tree, with whole mass functions also where there is a base."""
    root = int(forest.roots[tree])
    nodes: list[dict[str, Any]] = [{} for _ in range(int(forest.roots[tree + 1]) - root)]
    for node, cell in walk(forest, tree):
        feature, child = (int(x) for x in forest.nodes[node, [FEATURE, CHILD]])
        if feature == LEAF:
            nodes[node - root] = {
                **_write_leaf(forest, child, cell, whole=whole),
                "rows": write_rows(float(forest.rows[node])),
            }
            continue
        nodes[node - root] = {
            "feature": feature,
            **_write_split(forest, node, cell),
            "weights": forest.weights[child : child + 2].tolist(),
            "left": child - root,
            "right": child + 1 - root,
            "rows": write_rows(float(forest.rows[node])),
        }
    return nodes


def _write_split(forest: Forest, node: int, cell: Cell) -> dict[str, Any]:
    split, allowed = read_split(forest, node), cell[int(forest.nodes[node, FEATURE])]
    if isinstance(split, float):
        return {"threshold": split}
    return {"left_values": np.flatnonzero(split & np.asarray(allowed)).tolist()}


def _write_leaf(forest: Forest, leaf: int, cell: Cell, *, whole: bool) -> dict[str, Any]:
    probs: list[Any] = []
    for feature, allowed in enumerate(cell):
        if isinstance(allowed, tuple):
            at = leaf * len(forest.numeric) + int(forest.slots[feature])
            mean, sd, low, high = forest.normals[at, :4].tolist()
            probs.append({"mean": mean, "sd": sd, "low": _bound(low), "high": _bound(high)})
        elif len(forest.base) and not whole:
            probs.append(_write_ratios(forest, leaf, feature, allowed))
        else:
            probs.append(
                [
                    forest.probability(leaf, feature, code) if inside else 0.0
                    for code, inside in enumerate(allowed.tolist())
                ]
            )
    return {"class_probs": forest.class_probs[leaf].tolist(), "feature_probs": probs}


def _write_ratios(forest: Forest, leaf: int, feature: int, allowed: Bools) -> dict[str, Any]:
    """Return what the base is multiplied by: of values seen, and of others."""
    cell = leaf * len(forest.categorical) + int(forest.slots[feature])
    seen, start = int(forest.seen[cell]), int(forest.starts[cell])
    other, *ratios = forest.entry_probs[start : int(forest.starts[cell + 1])].tolist()
    if forest.kinds[feature] == NARROW:
        codes = [code for code in range(len(allowed)) if seen >> code & 1]
    else:
        codes = forest.entry_codes[seen : seen + len(ratios)].tolist()
    return {"other": other, "codes": codes, "ratios": ratios}


def write_circuit(forest: Forest) -> dict[str, Any]:
    """Return the same as a circuit: a sum of trees, of sums, of products of leaves."""
    nodes: list[dict[str, Any]] = []

    def add(node: dict[str, Any]) -> int:
        nodes.append(node)
        return len(nodes) - 1

    def add_leaf(node: dict[str, Any]) -> int:
        rows = node["rows"]
        leaves = [add({"class_probs": node["class_probs"], "part": "leaf_classes", "rows": rows})]
        for feature, probs in enumerate(node["feature_probs"]):
            held = probs if isinstance(probs, dict) else {"part": "leaf_features", "rows": rows}
            lives = node["cell"][feature]
            where = {} if isinstance(probs, dict) else {"probs": probs, "values": lives}
            leaves.append(add({"feature": feature, **held, **where}))
        return add({"product": leaves})

    def add_tree(tree: int) -> int:
        written = _write_nodes(forest, tree, whole=True)
        cells = {node - int(forest.roots[tree]): cell for node, cell in walk(forest, tree)}
        places: dict[int, int] = {}
        # Children stand after their parents.
        for index in range(len(written) - 1, -1, -1):
            node = written[index]
            if "feature" not in node:
                cell = [np.flatnonzero(allowed).tolist() for allowed in cells[index]]
                places[index] = add_leaf({**node, "cell": cell})
                continue
            below = [places[node["left"]], places[node["right"]]]
            told = {"feature": node["feature"], "part": "weights", "rows": node["rows"]}
            places[index] = add({"sum": below, "weights": node["weights"], **told})
        return places[0]

    trees = [add_tree(tree) for tree in range(forest.trees)]
    weights = [1.0 / forest.trees] * forest.trees
    root = add({"sum": trees, "weights": weights, "part": "root", "rows": None})
    parts = {"parts": list(PARTS), "default_parts": list(forest.default_parts)}
    return {**parts, "root": root, "nodes": nodes}


def _bound(end: float) -> float | None:
    """Return the end of a cell, None where it has none: JSON has no infinity."""
    return end if math.isfinite(end) else None


def read_forest(document: dict[str, Any], encoding: Encoding, classes: int) -> Forest:
    """Return the forest of a document, or raise."""
    trees = get(document, "trees", list)
    if not trees:
        msg = "the model has no trees"
        raise InputError(msg)
    base = _read_base(document.get("base"), encoding)
    features = Features(encoding.sizes, encoding.numeric, base=base)
    planted: list[Tree | None] = []
    for index, tree in enumerate(trees):
        if not isinstance(tree, dict):
            msg = f"trees[{index}] must be a dictionary with nodes"
            raise InputError(msg)
        nodes = get(tree, "nodes", list, f"trees[{index}]")
        reader = _Reader(nodes, f"trees[{index}]", encoding, classes, has_base=len(base) > 0)
        planted.append(reader.read())
    forest = assemble(planted, features)
    if len(base):
        check_forest(forest, classes)
    return forest


def _read_base(given: Any, encoding: Encoding) -> Floats:
    """Return how likely the values of each categorical feature are, one after another."""
    if given is None:
        return np.empty(0)
    sizes = [size for i, size in enumerate(encoding.sizes) if i not in encoding.numeric]
    if not isinstance(given, list) or len(given) != len(sizes):
        msg = f"base must be a list for each of the {len(sizes)} features that are categories"
        raise InputError(msg)
    parts = [
        read_probabilities(part, (size,), f"base[{i}]") if size else np.empty(0)
        for i, (part, size) in enumerate(zip(given, sizes, strict=True))
    ]
    base = np.concatenate([np.empty(0), *parts])
    if np.any(base <= 0.0):
        msg = "base must be above 0: leaves tell how much likelier a value is"
        raise InputError(msg)
    return base


@dataclass
class _Reader:
    """Reads the nodes of a tree, from the root down, and lays them out anew."""

    nodes: list[Any]
    where: str
    encoding: Encoding
    classes: int
    has_base: bool
    table: Codes = field(init=False)
    weights: Floats = field(init=False)
    rows: Floats = field(init=False)
    kinds: Codes = field(init=False)
    lists: list[int] = field(default_factory=list)
    leaves: list[_Leaf] = field(default_factory=list)

    def read(self) -> Tree:
        """Return the tree."""
        self.table = np.zeros((len(self.nodes), 4), dtype=np.int32)
        self.weights = np.ones(len(self.nodes))
        self.rows = np.full(len(self.nodes), np.nan)
        self.kinds = split_kinds(self.encoding.sizes, self.encoding.numeric)
        if not self.nodes:
            self._fail(0, "is missing: a tree has at least one node")
        cell = whole_cell(self.encoding.sizes, self.encoding.numeric)
        visited = {0}
        waiting, used = [(0, 0, cell)], 1
        while waiting:
            theirs, ours, cell = waiting.pop()
            node = self.nodes[theirs]
            if not isinstance(node, dict):
                self._fail(theirs, "must be a dictionary")
            where = f"{self.where}.nodes[{theirs}].rows"
            self.rows[ours] = read_row_counts(node.get("rows"), (), where)
            if "feature" not in node:
                self.table[ours, FEATURE], self.table[ours, CHILD] = LEAF, len(self.leaves)
                self.leaves.append(self._read_leaf(theirs, node, cell))
                continue
            feature, split = self._read_split(theirs, node)
            self.table[ours, FEATURE], self.table[ours, CHILD] = feature, used
            pack_split(self.table[ours], split, self.kinds[feature], self.lists)
            children = [self._read_child(theirs, node, side, visited) for side in ("left", "right")]
            self.weights[used : used + 2] = self._read_weights(theirs, node)
            waiting += [
                (children[side], used + side, cut(cell, feature, split, side)) for side in (1, 0)
            ]
            used += 2
        if used < len(self.nodes):
            msg = f"{self.where} has {len(self.nodes) - used} nodes that the root does not lead to"
            raise InputError(msg)
        return self._make_tree()

    def _make_tree(self) -> Tree:
        cells = [cell for leaf in self.leaves for cell in leaf.cells]
        listed = np.cumsum([0, *(len(cell.codes) for cell in cells)])
        normals = np.array(
            [normal for leaf in self.leaves for normal in leaf.normals], dtype=np.float64
        ).reshape(-1, len(NORMAL))
        measure_heights(normals)
        if not np.all(normals[:, -1] < HIGHEST):
            msg = f"{self.where} has a normal density without mass between low and high"
            raise InputError(msg)
        return Tree(
            self.table,
            np.array(self.lists, dtype=np.int32),
            self.weights,
            self.rows,
            np.array([leaf.class_probs for leaf in self.leaves]),
            np.array(
                [cell.seen if cell.narrow else listed[index] for index, cell in enumerate(cells)],
                dtype=np.uint64,
            ),
            np.cumsum([0, *(len(cell.probs) for cell in cells)]),
            np.array([code for cell in cells for code in cell.codes], dtype=np.int32),
            np.array([p for cell in cells for p in cell.probs], dtype=np.float64),
            normals,
        )

    def _read_child(self, index: int, node: dict[str, Any], side: str, visited: set[int]) -> int:
        child = node.get(side)
        if not _is_integer(child) or not 0 <= child < len(self.nodes):
            self._fail(index, f"has no {side} child: got {child!r}")
        if child in visited:
            self._fail(index, f"leads to node {child}, as another does: that is no tree")
        visited.add(child)
        return int(child)

    def _read_split(self, index: int, node: dict[str, Any]) -> tuple[int, Bools | float]:
        feature = node["feature"]
        if not _is_integer(feature) or not 0 <= feature < len(self.encoding.columns):
            self._fail(index, f"splits feature {feature!r}, which is none")
        if isinstance(self.encoding.columns[feature], Numeric):
            threshold = node.get("threshold")
            if not _is_number(threshold):
                self._fail(index, f"needs a finite threshold, got {threshold!r}")
            return feature, float(threshold)
        values = node.get("left_values")
        size = self.encoding.sizes[feature]
        if not isinstance(values, list) or not all(
            _is_integer(value) and 0 <= value < size for value in values
        ):
            self._fail(index, f"needs left_values, codes below {size}, got {values!r}")
        left = np.zeros(size, dtype=bool)
        left[values] = True
        return feature, left

    def _read_weights(self, index: int, node: dict[str, Any]) -> Floats:
        return read_probabilities(
            get(node, "weights", list, f"{self.where}.nodes[{index}]"),
            (2,),
            f"{self.where}.nodes[{index}].weights",
        )

    def _read_leaf(self, index: int, node: dict[str, Any], cell: Cell) -> _Leaf:
        where = f"{self.where}.nodes[{index}]"
        given = get(node, "feature_probs", list, where)
        if len(given) != len(cell):
            self._fail(index, f"has {len(given)} feature_probs for {len(cell)} features")
        class_probs = read_probabilities(
            get(node, "class_probs", list, where), (self.classes,), f"{where}.class_probs"
        )
        leaf = _Leaf(class_probs)
        for feature, (probs, allowed) in enumerate(zip(given, cell, strict=True)):
            place = f"{where}.feature_probs[{feature}]"
            if isinstance(allowed, tuple):
                leaf.normals.append(read_normal(probs, allowed, place))
            else:
                read = _read_ratios if self.has_base else _read_cell
                narrow = self.kinds[feature] == NARROW
                leaf.cells.append(read(probs, allowed, place, narrow=bool(narrow)))
        return leaf

    def _fail(self, index: int, what: str) -> NoReturn:
        msg = f"{self.where}.nodes[{index}] {what}"
        raise InputError(msg)


@dataclass
class _Leaf:
    class_probs: Floats
    cells: list[_CellProbs] = field(default_factory=list)
    normals: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True)
class _CellProbs:
    """The probabilities of a categorical feature in a leaf, as `Forest` keeps them."""

    narrow: bool
    seen: int
    codes: list[int]
    probs: list[float]


def _read_cell(given: Any, allowed: Bools, where: str, *, narrow: bool) -> _CellProbs:
    probs = read_probabilities(given, allowed.shape, where)
    if np.any(probs[~allowed] > 0.0):
        msg = f"{where} has mass on values that the path to the leaf does not allow"
        raise InputError(msg)
    # The smallest one stands for all that are not listed.
    least = float(probs[allowed].min(initial=1.0))
    codes = np.flatnonzero(allowed & (probs > least)).tolist()
    seen = sum(1 << code for code in codes) if narrow else 0
    return _CellProbs(
        narrow, seen, [] if narrow else codes, [least, *(float(probs[code]) for code in codes)]
    )


def _read_ratios(given: Any, allowed: Bools, where: str, *, narrow: bool) -> _CellProbs:
    """Return what the base is multiplied by; whether that sums to 1 is checked with the rest."""
    if not isinstance(given, dict):
        msg = f"{where} must be a dictionary with other, codes and ratios"
        raise InputError(msg)
    codes, ratios = get(given, "codes", list, where), get(given, "ratios", list, where)
    if not all(_is_integer(code) and 0 <= code < len(allowed) for code in codes) or (
        sorted(set(codes)) != codes or not allowed[np.array(codes, dtype=np.intp)].all()
    ):
        msg = f"{where}.codes must be values that the path to the leaf allows, sorted: got {codes}"
        raise InputError(msg)
    probs = [given.get("other"), *ratios]
    if len(ratios) != len(codes) or not all(_is_number(p) and p >= 0.0 for p in probs):
        msg = f"{where} needs a ratio of at least 0 for each of its codes, and one for the others"
        raise InputError(msg)
    seen = sum(1 << code for code in codes) if narrow else 0
    return _CellProbs(narrow, seen, [] if narrow else codes, [float(p) for p in probs])


def read_normal(given: Any, cell: tuple[float, float], where: str) -> list[float]:
    """Return mean, sd, low and high of a density within a cell, and room for its height."""
    if not isinstance(given, dict):
        msg = f"{where} must be a dictionary with mean, sd, low and high"
        raise InputError(msg)
    mean, sd = given.get("mean"), given.get("sd")
    ends = [
        unbounded if end is None else end
        for end, unbounded in ((given.get("low"), -np.inf), (given.get("high"), np.inf))
    ]
    if not (_is_number(mean) and _is_number(sd) and sd > 0.0):
        msg = f"{where} needs a finite mean and a positive sd, got {mean!r} and {sd!r}"
        raise InputError(msg)
    if not all(_is_number(end) or end in (-np.inf, np.inf) for end in ends):
        msg = f"{where} needs low and high to be numbers or null, got {given!r}"
        raise InputError(msg)
    low, high = (float(end) for end in ends)
    if not cell[0] <= low < high <= cell[1]:
        msg = f"{where} lies between {low} and {high}: its path allows {cell[0]} to {cell[1]}"
        raise InputError(msg)
    return [float(mean), float(sd), low, high, 0.0]


def _is_integer(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> TypeGuard[float]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= 1e300
