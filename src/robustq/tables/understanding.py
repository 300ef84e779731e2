"""How a table is understood: the one detector of what is a number and what is a category.

Whole numbers with more than 50 different values and all other numbers are numbers; everything else
is a category. What looks like a mistake is remarked on, and kept: docs/tables.md has the rule.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns import as_numbers, is_missing
from .distinct import MOST_COUNTED, Different
from .giveaways import place_looks, tell_labels
from .texts import (
    DATE,
    DECIMAL_COMMA,
    NUMBER,
    all_match,
    any_match,
    are_written_out,
    has_ambiguous_commas,
    is_date,
    is_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats, Indices

    from .table import Column

__all__ = [
    "FEW_ROWS",
    "LOOKED_AT",
    "MANY",
    "Content",
    "Order",
    "Verdict",
    "are_quantities",
    "is_continuous",
    "judge",
    "look_for_giveaway",
    "name_sort",
    "remark_on_classes",
    "remark_on_labels",
    "take_texts",
    "understand",
]

MANY = 50  # more different whole numbers than this are numbers
MANY_CATEGORIES = 1000  # more categories than this are mostly rare ones
FEW_ROWS = 50  # where there are fewer, everything looks like a mistake
ROWS_PER_CLASS = 10  # on average: numbers with fewer are no classes
LOOKED_AT = 10_000  # texts
ALMOST = 0.98  # of values that are counted by an estimate: all of them
ZEROS = "^0[0-9]+$"  # where zeros lead, digits are names
ID_NAME = r"(^|[ _.-])(id|ids|uuid|guid|key|index|nr|no|number|code|unnamed: 0)$|[a-z](Id|ID)$"


class Verdict(NamedTuple):
    """What a column was taken as, and why.

    Attributes
    ----------
    numeric : bool
        Whether it holds numbers; if not, categories.
    why : str
        What was found in it, in words.
    remark : str
        What a user may want to change; empty if nothing.
    """

    numeric: bool
    why: str
    remark: str = ""


class Order(NamedTuple):
    """Between what numbers lie, and whether each is larger, or each smaller, than the last."""

    low: float
    high: float
    strict: bool


class Content(NamedTuple):
    """What is in a column.

    Attributes
    ----------
    sort : str
        A word for it.
    different : int
        How many different values there are; of more than `MOST_COUNTED` numbers, an estimate.
    present : int
        How many values at all.
    texts : callable
        Returns some of the different texts, in the order in which they first came; None where
        it holds none.
    gaps : bool
        Whether a value is missing.
    order : callable
        Returns how whole numbers follow each other.
    """

    sort: str
    different: int
    present: int
    texts: Callable[[], Any | None] = lambda: None
    gaps: bool = False
    order: Callable[[], Order] = lambda: Order(0.0, 0.0, strict=False)


def understand(
    column: Column,
    name: str,
    label: str,
    *,
    given: bool | None,
    labels: Indices | None,
    remarks: bool = True,
) -> Verdict:
    """Return what a column is to be taken as.

    Parameters
    ----------
    column : Arrow or numpy array
    name, label : str
        What it is called, and how to speak of it.
    given : bool, optional
        Whether a user says that it is numeric; None if he says nothing.
    labels : ndarray of int, optional
        The classes of the rows.
    remarks : bool
        Whether to look for what seems to be a mistake.
    """
    content = _look(column, label)
    verdict = judge(content, name, given=given, remarks=remarks)
    if labels is None or verdict.remark or content.present < FEW_ROWS:
        return verdict
    rows = place_looks(len(labels))
    return look_for_giveaway(verdict, column.take(rows), name, label, labels[rows])


def judge(content: Content, name: str, *, given: bool | None, remarks: bool = True) -> Verdict:
    """Return what a column is to be taken as, whatever the labels.

    Parameters
    ----------
    content : Content
    name, given, remarks
        See `understand`.
    """
    numeric = content.sort == "numbers" or (
        content.sort == "whole numbers" and content.different > MANY
    )
    about = "about " if content.sort == "whole numbers" and content.different > MOST_COUNTED else ""
    why = f"{content.sort}, {about}{content.different:,} different"
    if content.sort == "numbers":
        why = "numbers"
    if content.different <= 1:
        why = "a single value: nothing to learn from" if content.different else "no value at all"
    if given is not None and given != numeric:
        numeric, why = given, f"{why}; {'numeric' if given else 'categorical'} was asked for"
    return Verdict(numeric, why, _remark(content, name) if given is None and remarks else "")


def look_for_giveaway(
    verdict: Verdict, column: Column, name: str, label: str, labels: Indices
) -> Verdict:
    """Return a verdict with a remark on a column that gives the labels away.

    Parameters
    ----------
    verdict : Verdict
    column : Arrow or numpy array
        The rows looked at: see `place_looks`.
    name, label : str
    labels : ndarray of int
        Of those rows.
    """
    share = tell_labels(column, label, labels, numeric=verdict.numeric)
    return verdict if share is None else verdict._replace(remark=_remark_on_giveaway(share, name))


def is_continuous(values: np.ndarray[Any, Any]) -> bool:
    """Tell whether a target is a quantity: other numbers, or so many whole ones that few repeat."""
    return values.dtype.kind in "iuf" and are_quantities(np.unique(values), len(values))


def are_quantities(different: np.ndarray[Any, Any], rows: int) -> bool:
    """Tell whether the different values of a target of so many rows are quantities."""
    if different.dtype.kind == "f" and np.any(different != np.floor(different)):
        return True
    if different.dtype.kind not in "iuf":
        return False
    return len(different) > MANY and len(different) * ROWS_PER_CLASS > rows


def remark_on_labels(texts: np.ndarray[Any, Any], rows: int) -> str:
    """Return what texts look like that hardly repeat, and so name no classes; else nothing.

    Parameters
    ----------
    texts : ndarray
        The different labels, sorted.
    rows : int
        How many labels there are.
    """
    if texts.dtype.kind != "U" or len(texts) <= MANY or 2 * len(texts) <= rows:
        return ""
    remark = _remark_on_numbers(pa.array(texts[:LOOKED_AT]), len(texts))
    return remark or "looks like an id or like prose: name another column"


def remark_on_classes(classes: np.ndarray[Any, Any], rows: Indices) -> str:
    """Return what is to be said of classes with a single row; nothing where rows are few.

    Parameters
    ----------
    classes : ndarray
    rows : ndarray of int, of shape (classes,)
        How many rows each has.
    """
    single = classes[rows == 1].tolist()
    if not single or rows.sum() < FEW_ROWS:
        return ""
    shown = ", ".join(map(repr, single[:5])) + (", …" if len(single) > 5 else "")
    what = f"class {shown} has" if len(single) == 1 else f"classes {shown} have"
    return f"{what} a single row, too little to learn from: join classes, or leave such rows out"


def _look(column: Column, label: str) -> Content:
    if isinstance(column, np.ndarray):
        if column.dtype == object:
            return _look_at_objects(column)
        if column.dtype.kind == "f":
            return _look_at_floats(as_numbers(column, label))
        column = pa.array(column)
    kind, present = column.type, len(column) - column.null_count
    if pa.types.is_floating(kind):
        return _look_at_floats(as_numbers(column, label))
    if pa.types.is_dictionary(kind):
        return Content(
            name_sort(kind), _count(column.indices), present, lambda: take_texts(_list_used(column))
        )
    if pa.types.is_integer(kind):
        return Content(
            name_sort(kind),
            _count_numbers(column),
            present,
            gaps=present < len(column),
            order=lambda: _find_order(column, label),
        )
    return Content(name_sort(kind), _count(column), present, lambda: take_texts(column))


def _list_used(column: Any) -> Any:
    return column.dictionary.take(pc.unique(column.indices.drop_null()))


def _look_at_floats(numbers: Floats) -> Content:
    found = numbers[~np.isnan(numbers)]
    # Whole numbers with gaps among them are floats only because of the gaps.
    whole = len(found) < len(numbers) and np.all(found == np.floor(found))
    if whole:
        return Content("whole numbers", _count_numbers(pa.array(found)), len(found), gaps=True)
    # Of others it matters only whether they differ, and counting takes long.
    different = len(found) if len(found) and found.min() < found.max() else min(len(found), 1)
    return Content("numbers", different, len(found))


def _count(values: Any) -> int:
    try:
        return int(pc.count_distinct(values, mode="only_valid").as_py())
    except pa.ArrowNotImplementedError:
        return len(values)  # of a type that will be refused


def _count_numbers(values: Any) -> int:
    """Count different numbers; where they are very many, estimate as parts of a table do."""
    found = _count(values)
    if found <= MOST_COUNTED:
        return found
    return Different.of(values.drop_null().to_numpy(zero_copy_only=False)).count


def _find_order(column: Column, label: str) -> Order:
    numbers = as_numbers(column, label)
    steps = np.diff(numbers)
    strict = bool(np.all(steps > 0) or np.all(steps < 0))
    return Order(float(numbers.min()), float(numbers.max()), strict)


def name_sort(kind: pa.DataType) -> str:
    """Return a word for what a type holds."""
    if pa.types.is_integer(kind):
        return "whole numbers"
    if is_text(kind):
        return "text"
    if is_date(kind):
        return "dates"
    if pa.types.is_boolean(kind):
        return "truth values"
    return "categories" if pa.types.is_dictionary(kind) else str(kind)


def _look_at_objects(column: np.ndarray[Any, Any]) -> Content:
    found = [value for value in column if not is_missing(value)]
    kinds = {type(value) for value in found}
    different = len(set(found)) if all(kind.__hash__ for kind in kinds) else len(found)
    truth = all(issubclass(kind, (bool, np.bool_)) for kind in kinds)
    numbers = all(issubclass(kind, (int, float, np.number)) for kind in kinds)
    gaps = len(found) < len(column)
    if not numbers or truth:
        texts = all(issubclass(kind, str) for kind in kinds)
        sort = "truth values" if truth else "text" if texts else "mixed values"
    elif any(issubclass(kind, (float, np.floating)) for kind in kinds) and not (
        # Whole numbers that are floats only because of gaps.
        gaps and all(float(value).is_integer() for value in found)
    ):
        sort = "numbers"
    else:
        sort = "whole numbers"
    return Content(
        *(sort, different, len(found)),
        lambda: take_texts(pa.array([v for v in found if isinstance(v, str)], pa.string())),
        gaps=gaps,
        order=lambda: _find_order(column, "a column"),
    )


def _remark(content: Content, name: str) -> str:
    """Return what looks like a mistake in a column, whatever the labels."""
    if content.sort == "dates":
        return _remark_on_dates(name)
    if content.sort == "whole numbers":
        return _remark_on_id(name) if _is_numeric_id(content, name) else ""
    if content.sort not in {"text", "categories"} or content.different <= 1:
        return ""
    texts = content.texts()
    remark = ""
    if texts is not None and all_match(texts, DATE):
        remark = _remark_on_dates(name)
    elif texts is not None and content.sort == "text":
        remark = _remark_on_numbers(texts, content.different)
    return remark or _remark_on_rarity(content, name)


def _remark_on_rarity(content: Content, name: str) -> str:
    if content.different > 20 and content.different > 0.9 * content.present:
        return _remark_on_id(name)
    if content.different > MANY_CATEGORIES:
        return (
            f"has {content.different:,} categories, most of them rare: group them, or leave the "
            f"column out (--drop {name})"
        )
    return ""


def take_texts(values: Any) -> Any | None:
    """Return some of the different texts of a column, None where it holds none."""
    return pc.unique(values.drop_null())[:LOOKED_AT] if is_text(values.type) else None


def _remark_on_dates(name: str) -> str:
    return (
        "holds dates, each a category of its own: make numbers of them (days since, month, "
        f"weekday), or leave the column out (--drop {name})"
    )


def _remark_on_id(name: str) -> str:
    return f"looks like an id, of which nothing can be learned: leave it out (--drop {name})?"


def _remark_on_numbers(texts: Any, different: int) -> str:
    """Return a remark on texts that a person would take for numbers."""
    if any_match(texts, ",") and all_match(texts, DECIMAL_COMMA):
        if are_written_out(texts):
            return _ask_for_numbers(texts)
        if has_ambiguous_commas(texts) and all_match(texts, r"(^[^,]*|,[0-9]{3})$"):
            return (
                "looks like numbers: does the comma mark decimals (--decimal ,) or thousands "
                "(--decimal .)?"
            )
        return 'looks like numbers with a decimal comma: read them with --decimal , (decimal=",")'
    if are_written_out(texts) and not all_match(texts, NUMBER):
        return _ask_for_numbers(texts)
    numbers = pc.match_substring_regex(texts, NUMBER)
    odd = texts.filter(pc.invert(numbers))
    if different > MANY and 0 < len(odd) <= 0.1 * len(texts) and not any_match(odd, ZEROS):
        more = f" and {len(odd) - 1:,} more" if len(odd) > 1 else ""
        shown = odd[0].as_py()
        shown = shown if len(shown) <= 30 else shown[:29] + "…"
        return (
            f"looks like numbers but for {shown!r}{more}, and is taken as categories: mend or "
            "empty those"
        )
    return ""


def _ask_for_numbers(texts: Any) -> str:
    return f"looks like numbers, as {texts[0].as_py()!r} is: make numbers of them"


def _is_numeric_id(content: Content, name: str) -> bool:
    """Tell whether whole numbers look like an id: hardly any repeats, and their name or order."""
    if content.different <= MANY or content.different < 0.9 * content.present:
        return False
    if re.search(ID_NAME, name.strip()) or re.search(ID_NAME, name.strip().lower()):
        return True
    # Repeated ones are told by their place: files without names begin with them.
    if content.gaps or name == "column_1":
        return name == "column_1"
    order, many = content.order(), content.different > MOST_COUNTED
    every = content.different >= (ALMOST if many else 1.0) * content.present
    return order.strict or (every and order.high - order.low < 2 * content.present)


def _remark_on_giveaway(share: float, name: str) -> str:
    return (
        f"gives the target away: it alone tells {share:.1%} of the labels; if it is not known "
        f"before they are, leave it out (--drop {name})"
    )
