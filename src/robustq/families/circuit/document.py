"""Circuits as plain data: read with every check there is, and written back.

What is checked: each node is one thing; children are nodes, and no node is below itself; the
children of a product speak of different variables, those of a sum of the same ones; the root of
all of them; weights and probabilities sum to 1; a mass function has no mass outside of where it
lives; and no node stands below several others, except for nodes of features alone that are below
indicators of one class: there every value is pushed in one direction, and elsewhere the minimum
would no longer split.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from robustq.core.evidence import CLASS, FEATURE, NONE, PRODUCT, SUM, VALUE
from robustq.documents.documents import get, read_probabilities, read_row_counts, write_rows
from robustq.exceptions import InputError
from robustq.families.forest.document import read_normal
from robustq.families.forest.nodes import HIGHEST
from robustq.families.forest.planting import measure_heights

from .model import Circuit

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices
    from robustq.tables import Encoding

__all__ = ["read_circuit", "write_circuit"]

DEEPEST = 300
MOST_PARTS = 100
RESERVED = ("all", "joint", "posterior")
KINDS = {"sum": SUM, "product": PRODUCT, "class_probs": CLASS}


def read_circuit(document: dict[str, Any], encoding: Encoding, classes: int) -> Circuit:
    """Return the circuit of a document.

    Raises
    ------
    InputError
        If it is none; the message names the node.
    """
    return _Reader(document, encoding, classes).read()


def write_circuit(circuit: Circuit) -> dict[str, Any]:
    """Return what the document of a circuit holds beside its header."""
    nodes = [_write_node(circuit, node) for node in range(len(circuit.kind))]
    return {
        "parts": list(circuit.parts),
        "default_parts": list(circuit.default_parts),
        "root": len(nodes) - 1,
        "nodes": nodes,
    }


def _write_node(circuit: Circuit, node: int) -> dict[str, Any]:
    kind, feature = int(circuit.kind[node]), int(circuit.feature[node])
    if kind == PRODUCT:
        return {"product": circuit.children_of(node)}
    q, part = circuit.mass(node).tolist(), int(circuit.part[node])
    told = {
        "part": None if part == NONE else circuit.parts[part],
        "rows": write_rows(float(circuit.rows[node])),
    }
    if kind == SUM:
        split = {} if feature == NONE else {"feature": feature}
        return {"sum": circuit.children_of(node), "weights": q, **split, **told}
    if kind == CLASS:
        return {"class_probs": q, **told}
    if kind == VALUE:
        ends = [end if math.isfinite(end) else None for end in q[2:4]]
        return {"feature": feature, "mean": q[0], "sd": q[1], "low": ends[0], "high": ends[1]}
    values = circuit.lives_on(node).tolist()
    probs = [0.0] * circuit.sizes[feature]
    for code, p in zip(values, q, strict=True):
        probs[code] = p
    where = {} if len(values) == len(probs) else {"values": values}
    return {"feature": feature, "probs": probs, **where, **told}


class _Reader:
    def __init__(self, document: dict[str, Any], encoding: Encoding, classes: int) -> None:
        self.document, self.encoding, self.classes = document, encoding, classes
        self.nodes: list[Any] = get(document, "nodes", list)
        self.kinds = [self._find_kind(index) for index in range(len(self.nodes))]
        self.children = [self._read_children(index) for index in range(len(self.nodes))]
        self.parts: list[str] = self._read_names("parts", [])

    def read(self) -> Circuit:
        order = self._order()
        self._check_scopes(order)
        self._check_sharing(order)
        place = {index: at for at, index in enumerate(order)}
        masses = [self._read_mass(index) for index in order]
        probs = [mass for mass, _ in masses]
        parts = [self._read_part(index) for index in order]
        features = [self._read_split(index) for index in order]
        rows = [
            read_row_counts(self.nodes[index].get("rows"), (), f"nodes[{index}].rows")
            for index in order
        ]
        below = [[place[child] for child in self.children[index]] for index in order]
        return Circuit(
            sizes=self.encoding.sizes,
            numeric=self.encoding.numeric,
            classes=self.classes,
            kind=np.array([self.kinds[index] for index in order], dtype=np.int8),
            child_starts=np.cumsum([0, *map(len, below)], dtype=np.int64),
            children=np.array([child for some in below for child in some], dtype=np.int64),
            prob_starts=np.cumsum([0, *map(len, probs)], dtype=np.int64),
            probs=np.concatenate(probs),
            values=np.concatenate([values for _, values in masses]).astype(np.int32),
            feature=np.array(features, dtype=np.int32),
            part=np.array(parts, dtype=np.int8),
            rows=np.array(rows, dtype=np.float64),
            parts=tuple(self.parts),
            default_parts=self._read_defaults(),
        )

    # What nodes are, and how they hang together

    def _find_kind(self, index: int) -> int:
        node = self.nodes[index]
        if not isinstance(node, dict):
            self._fail(index, "must be a dictionary")
        found = [kind for name, kind in KINDS.items() if name in node]
        if not found and "feature" in node:
            found = [VALUE if "mean" in node else FEATURE]
        if len(found) != 1:
            self._fail(index, "must have one of sum, product, class_probs and feature")
        return found[0]

    def _read_children(self, index: int) -> list[int]:
        name = {SUM: "sum", PRODUCT: "product"}.get(self.kinds[index])
        if name is None:
            return []
        given = self.nodes[index][name]
        known = range(len(self.nodes))
        if not isinstance(given, list) or not given:
            self._fail(index, f"must have a list of children, at least one, got {given!r}")
        for child in given:
            if not _is_whole(child) or child not in known:
                self._fail(index, f"has the child {child!r}, and there is no such node")
        return list(given)

    def _order(self) -> list[int]:
        """Return the nodes below the root, children first; refuse circles and loose nodes."""
        root: Any = self.document.get("root")
        if not _is_whole(root) or not 0 <= root < len(self.nodes):
            msg = f"root must be the position of a node, got {root!r}"
            raise InputError(msg)
        order: list[int] = []
        state = dict.fromkeys(range(len(self.nodes)), "new")
        path: list[tuple[int, int]] = [(root, 0)]
        while path:
            index, at = path.pop()
            state[index] = "open"
            if at == len(self.children[index]):
                state[index] = "done"
                order.append(index)
                continue
            path.append((index, at + 1))
            child = self.children[index][at]
            if state[child] == "open":
                self._fail(child, f"is below itself, by way of node {index}")
            if state[child] == "new":
                path.append((child, 0))
            if len(path) > DEEPEST:
                self._fail(child, f"is nested too deeply: more than {DEEPEST} levels")
        loose = [index for index, known in state.items() if known == "new"]
        if loose:
            self._fail(loose[0], f"is not reached from the root, node {root}")
        return order

    def _check_scopes(self, order: list[int]) -> None:
        """Refuse products and sums that make no distribution."""
        self.scopes: dict[int, int] = {}
        for index in order:
            scopes = [self.scopes[child] for child in self.children[index]]
            if self.kinds[index] == CLASS:
                scope = 1
            elif not scopes:
                scope = 2 << self._read_feature(index)
            else:
                scope = scopes[0]
                for child, other in zip(self.children[index][1:], scopes[1:], strict=True):
                    if self.kinds[index] == PRODUCT and scope & other:
                        self._fail(
                            index,
                            f"multiplies {self._name(scope & other)} twice: a product "
                            f"has children that speak of different variables (child {child})",
                        )
                    if self.kinds[index] == SUM and scope != other:
                        self._fail(
                            index,
                            f"adds children of which not all speak of "
                            f"{self._name(scope ^ other)} (child {child})",
                        )
                    scope |= other
            self.scopes[index] = scope
        missing = (2 << len(self.encoding.columns)) - 1 & ~self.scopes[order[-1]]
        if missing:
            self._fail(order[-1], f"is the root, and does not speak of {self._name(missing)}")

    def _check_sharing(self, order: list[int]) -> None:
        """Refuse nodes below several others, but where all push them one way."""
        parents = Counter(child for index in order for child in self.children[index])
        # The classes below whose indicators a node stands; None where there is none above it.
        guards: dict[int, set[int | None]] = {
            index: {None} if self.scopes[index] & 1 else set() for index in order
        }
        for index in reversed(order):
            own = self._find_guard(index)
            for child in self.children[index]:
                if not self.scopes[child] & 1:
                    guards[child] |= guards[index] if own is None else {own}
            if parents[index] > 1 and self.scopes[index] & 1:
                self._fail(
                    index,
                    f"speaks of the class and stands below {parents[index]} nodes: "
                    "its values would be pushed both ways at once; repeat it",
                )
            if parents[index] > 1 and (None in guards[index] or len(guards[index]) > 1):
                self._fail(
                    index,
                    f"stands below {parents[index]} nodes, not all of them below an "
                    "indicator of one and the same class: its values would be pushed both "
                    "ways at once; repeat it",
                )

    def _find_guard(self, index: int) -> int | None:
        """Return the class whose indicator a product has."""
        for child in self.children[index] if self.kinds[index] == PRODUCT else ():
            node = self.nodes[child]
            if self.kinds[child] == CLASS and node.get("part") is None:
                given = node["class_probs"]
                if isinstance(given, list) and 1 in given:
                    return given.index(1)
        return None

    def _name(self, scope: int) -> str:
        if scope & 1:
            return "the class"
        return repr(self.encoding.names[(scope & -scope).bit_length() - 2])

    # What they hold

    def _read_feature(self, index: int) -> int:
        feature = self.nodes[index]["feature"]
        if not _is_whole(feature) or not 0 <= feature < len(self.encoding.columns):
            self._fail(index, f"speaks of feature {feature!r}, which is none")
        density = self.kinds[index] == VALUE
        if (feature in self.encoding.numeric) != density:
            what = "a number and needs mean and sd" if not density else "categories and needs probs"
            self._fail(index, f"speaks of {self.encoding.names[feature]!r}, which is {what}")
        return feature

    def _read_split(self, index: int) -> int:
        if self.kinds[index] in (FEATURE, VALUE):
            return self._read_feature(index)
        feature = self.nodes[index].get("feature", NONE)
        known = range(NONE, len(self.encoding.columns))
        if self.kinds[index] != SUM or not _is_whole(feature) or feature not in known:
            return NONE
        return int(feature)

    def _read_mass(self, index: int) -> tuple[Floats, Indices]:
        """Return a mass function, and the values of a feature that it lives on."""
        node, where = self.nodes[index], f"nodes[{index}]"
        kind = self.kinds[index]
        if kind == PRODUCT:
            mass = np.empty(0)
        elif kind == SUM:
            shape = (len(self.children[index]),)
            mass = read_probabilities(node.get("weights"), shape, f"{where}.weights")
        elif kind == CLASS:
            mass = read_probabilities(node["class_probs"], (self.classes,), f"{where}.class_probs")
        elif kind == VALUE:
            mass = self._read_density(index)
        else:
            return self._read_leaf(index)
        return mass, np.full(len(mass), NONE)

    def _read_leaf(self, index: int) -> tuple[Floats, Indices]:
        node, where = self.nodes[index], f"nodes[{index}].probs"
        size = self.encoding.sizes[node["feature"]]
        values = node.get("values", list(range(size)))
        if (
            not isinstance(values, list)
            or not all(_is_whole(code) and 0 <= code < size for code in values)
            or len(set(values)) < len(values)
        ):
            self._fail(index, f"needs values, different codes below {size}, got {values!r}")
        given = node.get("probs")
        every = isinstance(given, list) and len(given) == size
        probs = read_probabilities(given, (size if every else len(values),), where)
        codes = np.sort(np.array(values, dtype=np.int64))
        if not every:
            return probs[np.argsort(np.array(values), kind="stable")], codes
        outside = np.setdiff1d(np.flatnonzero(probs > 0.0), codes)
        if len(outside):
            self._fail(index, f"has mass on value {outside[0]}, outside of where it lives")
        return probs[codes], codes

    def _read_density(self, index: int) -> Floats:
        node = self.nodes[index]
        if node.get("part") is not None:
            self._fail(index, "is a density, which no ball perturbs: leave its part out")
        normal = np.array([read_normal(node, (-np.inf, np.inf), f"nodes[{index}]")])
        measure_heights(normal)
        if not normal[0, -1] < HIGHEST:
            self._fail(index, "is a density that is too narrow, or too far from its cell")
        return normal[0]

    def _read_part(self, index: int) -> int:
        part = self.nodes[index].get("part") if self.kinds[index] != PRODUCT else None
        if part is None:
            return NONE
        if not _is_name(part):
            self._fail(index, f"has the part {part!r}: give a name of its own, or null")
        if part not in self.parts:
            self.parts.append(part)
        if len(self.parts) > MOST_PARTS:
            self._fail(index, f"has one part more than {MOST_PARTS}: nodes may share parts")
        return self.parts.index(part)

    def _read_defaults(self) -> tuple[str, ...]:
        given = self._read_names("default_parts", self.parts)
        for part in given:
            if part not in self.parts:
                msg = f"default_parts has {part!r}, which is no part of a node: {self.parts}"
                raise InputError(msg)
        return tuple(given)

    def _read_names(self, key: str, default: list[str]) -> list[str]:
        given = self.document.get(key, default)
        if not isinstance(given, list) or not all(_is_name(part) for part in given):
            msg = f"{key} must be a list of names of parts, got {given!r}"
            raise InputError(msg)
        return list(dict.fromkeys(given))

    def _fail(self, index: int, what: str) -> NoReturn:
        msg = f"nodes[{index}] {what}"
        raise InputError(msg)


def _is_name(part: Any) -> bool:
    """Tell whether a part can be called so."""
    named = isinstance(part, str) and part != "" and part not in RESERVED
    return named and not part.startswith("feature:")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
