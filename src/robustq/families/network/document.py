"""Networks as plain data and as arrays of a file, checked: nothing in either is believed."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.documents.checking import check_shape, check_sums, refuse
from robustq.documents.documents import get, read_probabilities, read_row_counts, write_rows
from robustq.exceptions import InputError

from .mixture import Lead, NetworkMixture
from .model import Network
from .structure import CLASS, Structure

if TYPE_CHECKING:
    from robustq.arrays import Floats
    from robustq.tables import Encoding

__all__ = [
    "MIXTURE_ARRAYS",
    "NETWORK_ARRAYS",
    "build_network",
    "pack_mixture",
    "pack_network",
    "read_mixture",
    "read_network",
    "unpack_mixture",
    "unpack_network",
    "write_mixture",
    "write_network",
]

NETWORK_ARRAYS = {
    **dict.fromkeys(("class_probs", "feature_probs", "class_rows", "feature_rows"), np.float64),
    **dict.fromkeys(("parents", "parent_counts", "from_class"), np.int32),
}
MIXTURE_ARRAYS = dict.fromkeys(
    ("class_probs", "prior_rows", "min_rows", "lead_rows", "probs", "table_rows"), np.float64
)


def _refuse_numbers(encoding: Encoding) -> None:
    if encoding.numeric:
        msg = f"features[{encoding.numeric[0]}] is numeric: a network has categories and bins"
        raise InputError(msg)


def _check_counts(rows: Floats, what: str) -> None:
    if np.any(rows < 0.0) or np.any(np.isinf(rows)):
        refuse(f"{what} must be counts, at least 0")


# Files


def unpack_network(model: Network) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a network by name; the class's parents stand last."""
    structure = model.structure
    every = (*structure.parents, structure.class_parents)
    return {
        "class_probs": model.class_probs,
        "feature_probs": model.feature_probs,
        "class_rows": model.class_rows,
        "feature_rows": model.feature_rows,
        "parents": np.array([parent for parents in every for parent in parents], dtype=np.int32),
        "parent_counts": np.array([len(parents) for parents in every], dtype=np.int32),
        "from_class": np.array(structure.from_class, dtype=np.int32),
    }


def pack_network(
    arrays: dict[str, np.ndarray[Any, Any]], encoding: Encoding, classes: int
) -> Network:
    """Return the network of arrays, checked."""
    _refuse_numbers(encoding)
    structure = _read_structure(arrays, encoding, classes)
    structure.require_room()
    wiring = structure.wiring
    check_shape("class_probs", arrays["class_probs"], (prod(structure.class_shape[:-1]), classes))
    check_shape("class_rows", arrays["class_rows"], (len(arrays["class_probs"]),))
    check_shape("feature_probs", arrays["feature_probs"], (int(wiring.offsets[-1]),))
    check_shape("feature_rows", arrays["feature_rows"], (int(wiring.row_offsets[-1]),))
    _check_counts(arrays["class_rows"], "class_rows")
    _check_counts(arrays["feature_rows"], "feature_rows")
    model = Network(
        structure,
        arrays["class_probs"],
        arrays["feature_probs"],
        arrays["class_rows"],
        arrays["feature_rows"],
    )
    check_sums(model.class_probs, "class_probs")
    for i, size in enumerate(structure.sizes):
        if size:
            check_sums(np.moveaxis(model.table(i), -2, -1), f"the table of feature {i}")
    return model


def _read_structure(
    arrays: dict[str, np.ndarray[Any, Any]], encoding: Encoding, classes: int
) -> Structure:
    counts, parents, tied = arrays["parent_counts"], arrays["parents"], arrays["from_class"]
    features = len(encoding.columns)
    check_shape("parent_counts", counts, (features + 1,))
    check_shape("from_class", tied, (features,))
    if np.any(counts < 0) or not np.all((tied == 0) | (tied == 1)):
        refuse("parent_counts and from_class must be counts")
    check_shape("parents", parents, (int(counts.sum(dtype=np.int64)),))
    split = [tuple(part.tolist()) for part in np.split(parents, np.cumsum(counts)[:-1])]
    return check_structure(
        encoding, classes, [*split[:-1]], tuple(bool(one) for one in tied.tolist()), split[-1]
    )


def check_structure(
    encoding: Encoding,
    classes: int,
    parents: list[tuple[int, ...]],
    from_class: tuple[bool, ...],
    class_parents: tuple[int, ...],
) -> Structure:
    """Return a structure, or refuse one with unknown parents, one twice, or a cycle."""
    features = len(parents)
    for own in (*parents, class_parents):
        if not all(0 <= parent < features for parent in own) or len(set(own)) < len(own):
            refuse(f"parents must be different features, got {list(own)}")
    structure = Structure(encoding.sizes, classes, tuple(parents), from_class, class_parents)
    try:
        structure.order  # noqa: B018 (raises where there is a cycle)
    except InputError:
        refuse("its parents form a cycle")
    return structure


def unpack_mixture(model: NetworkMixture) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of averaged networks by name."""
    return {
        "class_probs": model.class_probs,
        "prior_rows": np.array([model.prior_rows]),
        "min_rows": np.array([model.min_rows]),
        "lead_rows": model.lead_rows,
        "probs": model.probs,
        "table_rows": model.table_rows,
    }


def pack_mixture(
    arrays: dict[str, np.ndarray[Any, Any]], encoding: Encoding, classes: int
) -> NetworkMixture:
    """Return the averaged networks of arrays, checked."""
    _refuse_numbers(encoding)
    layout = Lead(encoding.sizes, classes)
    layout.require_room()
    shapes = ((classes,), (1,), (1,), (sum(layout.sizes),), (layout.cells,), (layout.lines,))
    for name, shape in zip(MIXTURE_ARRAYS, shapes, strict=True):
        check_shape(name, arrays[name], shape)
    for name in ("prior_rows", "min_rows", "lead_rows", "table_rows"):
        _check_counts(arrays[name], name)
    if np.isnan(arrays["min_rows"]).any() or np.isnan(arrays["lead_rows"]).any():
        refuse("min_rows and lead_rows must be counts")
    check_sums(arrays["class_probs"][None, :], "class_probs")
    for j in range(len(layout.sizes)):
        for i in range(len(layout.sizes)):
            table = layout.table(arrays["probs"], j, i)
            if table.size:
                check_sums(np.moveaxis(table, -2, -1), f"the table of feature {i} given {j}")
    return NetworkMixture(
        layout,
        arrays["class_probs"],
        float(arrays["prior_rows"][0]),
        float(arrays["min_rows"][0]),
        *(arrays[name] for name in ("lead_rows", "probs", "table_rows")),
    )


# Documents


def _write_rows(rows: Floats) -> list[float | None]:
    return [write_rows(n) for n in rows.ravel().tolist()]


def write_network(model: Network) -> dict[str, Any]:
    """Return what a document holds beside its header: the class's table, then the features'."""
    structure = model.structure
    tables: list[dict[str, Any]] = [
        {
            "variable": "class",
            "parents": list(structure.class_parents),
            "probs": model.class_probs.tolist(),
            "rows": _write_rows(model.class_rows),
        }
    ]
    for i in range(len(structure.sizes)):
        # Configurations count the class first, then the other parents.
        table = np.moveaxis(model.table(i), -1, 0)
        tables.append(
            {
                "variable": i,
                "parents": ["class" if v == CLASS else v for v in structure.parents_of(i)],
                "probs": _list_lines(table),
                "rows": _write_rows(np.moveaxis(model.rows_of(i), -1, 0)),
            }
        )
    return {"tables": tables}


def read_network(document: dict[str, Any], encoding: Encoding, classes: int) -> Network:
    """Return the network of a document, checked."""
    _refuse_numbers(encoding)
    given: dict[int, dict[str, Any]] = {}
    features = len(encoding.columns)
    for index, table in enumerate(get(document, "tables", list)):
        where = f"tables[{index}]"
        if not isinstance(table, dict):
            msg = f"{where} must be a dictionary"
            raise InputError(msg)
        variable = _read_variable(table.get("variable"), features, f"{where}.variable")
        if variable in given:
            msg = f"{where}: there is a table of {table['variable']!r} already"
            raise InputError(msg)
        parents = [
            _read_variable(parent, features, f"{where}.parents")
            for parent in get(table, "parents", list, where)
        ]
        given[variable] = {**table, "parents": parents, "where": where}
    absent = sorted({CLASS, *range(features)} - set(given))
    if absent:
        name = "the class" if absent[0] == CLASS else f"feature {absent[0]}"
        msg = f"tables: there is none of {name}"
        raise InputError(msg)
    return build_network(given, encoding, classes)


def build_network(given: dict[int, dict[str, Any]], encoding: Encoding, classes: int) -> Network:
    """Return the network of tables with parents in any order, by variable.

    Parameters
    ----------
    given : dict
        For each variable: parents, probs (configurations, categories), rows if they are known, and
        where it stands, for messages.
    encoding : Encoding
    classes : int
    """
    features = range(len(encoding.columns))
    parents = {v: tuple(p for p in given[v]["parents"] if p != CLASS) for v in given}
    structure = check_structure(
        encoding,
        classes,
        [parents[i] for i in features],
        tuple(CLASS in given[i]["parents"] for i in features),
        parents[CLASS],
    )
    for v, table in given.items():
        if len(set(table["parents"])) < len(table["parents"]) or v in table["parents"]:
            refuse(f"{table['where']}.parents must be different variables")
    if CLASS in given[CLASS]["parents"]:
        refuse(f"{given[CLASS]['where']}.parents holds the class itself")
    # As many numbers as are given: room is made for no more.
    probs, rows = [np.zeros(0)], [np.zeros(0)]
    for i in features:
        own_probs, own_rows = _arrange(given[i], structure.sizes[i], structure, i)
        probs.append(own_probs)
        rows.append(own_rows)
    class_probs, class_rows = _arrange(given[CLASS], classes, structure, CLASS)
    return Network(
        structure,
        class_probs.reshape(-1, classes),
        np.concatenate(probs),
        class_rows,
        np.concatenate(rows),
    )


def _arrange(
    table: dict[str, Any], outcomes: int, structure: Structure, variable: int
) -> tuple[Floats, Floats]:
    """Return a table, and the rows behind it, flat, in the order of the model."""
    parents, where = table["parents"], table["where"]
    shape = [structure.classes if p == CLASS else structure.sizes[p] for p in parents]
    count = prod(shape)
    given = table.get("probs")
    if not isinstance(given, (list, np.ndarray)) or len(given) != count:
        have = len(given) if isinstance(given, (list, np.ndarray)) else "none"
        msg = f"{where}.probs must have {count} rows, one for each configuration; it has {have}"
        raise InputError(msg)
    probs = read_probabilities(given, (count, outcomes), f"{where}.probs")
    rows = read_row_counts(table.get("rows"), (count,), f"{where}.rows")
    own = structure.class_parents if variable == CLASS else structure.parents[variable]
    order = [parents.index(p) for p in own]
    last = [parents.index(CLASS)] if CLASS in parents else []
    probs = probs.reshape(*shape, outcomes).transpose([*order, len(parents), *last])
    return probs.ravel(), rows.reshape(shape).transpose([*order, *last]).ravel()


def _read_variable(given: Any, features: int, where: str) -> int:
    if given == "class":
        return CLASS
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < features:
        return given
    what = f'"class" or the position of a feature, from 0 to {features - 1}'
    msg = f"{where} must be {what}, got {given!r}"
    raise InputError(msg)


def _list_lines(table: Floats) -> list[list[float]]:
    """Return the mass functions of a table; of a feature without a value, they are empty."""
    return table.reshape(prod(table.shape[:-1]), table.shape[-1]).tolist()


def write_mixture(model: NetworkMixture) -> dict[str, Any]:
    """Return what a document holds beside its header."""
    layout, networks = model.layout, []
    starts = np.concatenate([[0], np.cumsum(layout.sizes, dtype=np.int64)])
    for j, size in enumerate(layout.sizes):
        tables = []
        for i in (j, *(k for k in range(len(layout.sizes)) if k != j)):
            # Configurations count the class first, then the lead.
            probs = np.moveaxis(layout.table(model.probs, j, i), -1, 0)
            rows = layout.rows_of(model.table_rows, j, i).T
            tables.append(
                {
                    "variable": i,
                    "parents": ["class"] if i == j else ["class", j],
                    "probs": _list_lines(probs),
                    "rows": _write_rows(rows),
                }
            )
        lead_rows = model.lead_rows[starts[j] : starts[j] + size].tolist()
        networks.append({"lead": j, "lead_rows": lead_rows, "tables": tables})
    return {
        "class_probs": model.class_probs.tolist(),
        "rows": write_rows(model.prior_rows),
        "min_rows": model.min_rows,
        "networks": networks,
    }


def read_mixture(document: dict[str, Any], encoding: Encoding, classes: int) -> NetworkMixture:
    """Return the averaged networks of a document, checked."""
    _refuse_numbers(encoding)
    layout, features = Lead(encoding.sizes, classes), len(encoding.columns)
    class_probs = read_probabilities(get(document, "class_probs", list), (classes,), "class_probs")
    networks = get(document, "networks", list)
    leads = [network.get("lead") if isinstance(network, dict) else None for network in networks]
    if sorted(map(str, leads)) != sorted(map(str, range(features))) or any(
        isinstance(lead, (bool, str)) for lead in leads
    ):
        msg = f"networks must have each of {features} features as lead once, got {leads}"
        raise InputError(msg)
    layout.require_room()
    probs, rows = np.empty(layout.cells), np.empty(layout.lines)
    lead_rows = [np.zeros(0)] * features
    for index, network in enumerate(networks):
        j, where = network["lead"], f"networks[{index}]"
        counts = read_row_counts(network.get("lead_rows"), (layout.sizes[j],), f"{where}.lead_rows")
        # Nothing said: every value leads.
        lead_rows[j] = np.where(np.isnan(counts), np.finfo(np.float64).max, counts)
        _read_lead(network, j, layout, where, probs, rows)
    min_rows = read_row_counts(document.get("min_rows", 1), (), "min_rows")
    if np.isnan(min_rows):
        msg = "min_rows must be a count"
        raise InputError(msg)
    prior_rows = read_row_counts(document.get("rows"), (), "rows")
    return NetworkMixture(
        *(layout, class_probs, float(prior_rows), float(min_rows)),
        *(np.concatenate([np.zeros(0), *lead_rows]), probs, rows),
    )


def _read_lead(
    network: dict[str, Any], j: int, layout: Lead, where: str, probs: Floats, rows: Floats
) -> None:
    """Write the tables of one lead."""
    features, seen = len(layout.sizes), set()
    for index, table in enumerate(get(network, "tables", list, where)):
        here = f"{where}.tables[{index}]"
        given = table.get("variable") if isinstance(table, dict) else None
        i = _read_variable(given, features, f"{here}.variable")
        parents = ["class"] if i == j else ["class", j]
        if i == CLASS or i in seen or table.get("parents") not in (parents, parents[::-1]):
            msg = f"{here} must be of a feature, once, with parents {parents}"
            raise InputError(msg)
        seen.add(i)
        given_j, size, classes = layout.shape(j, i)
        shape = (classes, given_j) if table["parents"][0] == "class" else (given_j, classes)
        turned = shape[0] == classes and table["parents"][0] == "class"
        found = read_probabilities(table.get("probs"), (classes * given_j, size), f"{here}.probs")
        counts = read_row_counts(table.get("rows"), (classes * given_j,), f"{here}.rows")
        found, counts = found.reshape(*shape, size), counts.reshape(shape)
        if turned:
            found, counts = np.swapaxes(found, 0, 1), counts.T
        layout.table(probs, j, i)[:] = np.moveaxis(found, 1, 2)
        layout.rows_of(rows, j, i)[:] = counts
    if len(seen) < features:
        msg = f"{where}.tables: a feature has none"
        raise InputError(msg)
