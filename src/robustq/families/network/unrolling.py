"""A network in which features form trees, unrolled into the nodes of a circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.documents.documents import write_rows
from robustq.exceptions import UnsupportedError

if TYPE_CHECKING:
    from .model import Network

__all__ = ["unroll"]

PARTS = ("prior", "features")


def unroll(network: Network) -> dict[str, Any]:
    """Return the nodes of a circuit with the same probabilities and local mass functions.

    Below each class stands, for a feature that has children, a sum over its values: each is the
    value itself, times what its children are then. That is the same whatever the feature's own
    parent is, and shared: below the indicator of one class all is pushed the same way.

    Raises
    ------
    UnsupportedError
        If a feature has two features as parents, or hangs on no class.
    """
    structure = network.structure
    if not structure.is_forest:
        msg = (
            "this network has no circuit: only where every feature has the class and at most one "
            "feature as parents does each local model stand in one place of it"
        )
        raise UnsupportedError(msg)
    nodes: list[dict[str, Any]] = []
    products = [_unroll_class(network, c, nodes) for c in range(structure.classes)]
    told = {"part": PARTS[0], "rows": write_rows(float(network.class_rows[0]))}
    root = _add(nodes, {"sum": products, "weights": network.class_probs[0].tolist(), **told})
    return {"parts": list(PARTS), "root": root, "nodes": nodes}


def _unroll_class(network: Network, c: int, nodes: list[dict[str, Any]]) -> int:
    """Add what stands below a class; return where."""
    structure = network.structure
    children: dict[int, list[int]] = {}
    for feature, parents in enumerate(structure.parents):
        children.setdefault(parents[0] if parents else -1, []).append(feature)
    # For each feature, the node for each value of its parent.
    made: dict[int, list[int]] = {}
    for feature in reversed(structure.order):
        if feature >= 0:
            made[feature] = _unroll_feature(network, c, feature, children, made, nodes)
    label = {"class_probs": np.eye(structure.classes)[c].tolist(), "part": None}
    below = [made[feature][0] for feature in children.get(-1, [])]
    return _add(nodes, {"product": [_add(nodes, label), *below]})


def _unroll_feature(
    network: Network,
    c: int,
    feature: int,
    children: dict[int, list[int]],
    made: dict[int, list[int]],
    nodes: list[dict[str, Any]],
) -> list[int]:
    size = network.structure.sizes[feature]
    table = network.table(feature)[..., c].reshape(-1, size)
    rows = network.rows_of(feature)[..., c].reshape(-1)
    below = children.get(feature, [])
    values = []
    for value in range(size if below else 0):
        leaf = {"feature": feature, "probs": [1.0], "values": [value], "part": None}
        then = [made[child][value] for child in below]
        values.append(_add(nodes, {"product": [_add(nodes, leaf), *then]}))
    told = {"feature": feature, "part": PARTS[1]}
    return [
        _add(
            nodes,
            {
                **({"sum": values, "weights": probs} if below else {"probs": probs}),
                **told,
                "rows": write_rows(float(count)),
            },
        )
        for probs, count in zip(table.tolist(), rows, strict=True)
    ]


def _add(nodes: list[dict[str, Any]], node: dict[str, Any]) -> int:
    nodes.append(node)
    return len(nodes) - 1
