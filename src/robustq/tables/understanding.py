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
from .giveaways import tell_labels
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
    from robustq.arrays import Floats, Indices

    from .table import Column

__all__ = [
    "MANY",
    "Verdict",
    "is_continuous",
    "remark_on_classes",
    "remark_on_labels",
    "understand",
]

MANY = 50  # more different whole numbers than this are numbers
MANY_CATEGORIES = 1000  # more categories than this are mostly rare ones
FEW_ROWS = 50  # where there are fewer, everything looks like a mistake
ROWS_PER_CLASS = 10  # on average: numbers with fewer are no classes
LOOKED_AT = 10_000  # texts
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


class _Content(NamedTuple):
    """What is in a column: a word for it, how many different values, how many at all."""

    sort: str
    different: int
    present: int


def understand(
    column: Column, name: str, label: str, *, given: bool | None, labels: Indices | None
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
    """
    content = _look(column, label)
    numeric = content.sort == "numbers" or (
        content.sort == "whole numbers" and content.different > MANY
    )
    why = f"{content.sort}, {content.different:,} different"
    if content.sort == "numbers":
        why = "numbers"
    if content.different <= 1:
        why = "a single value: nothing to learn from" if content.different else "no value at all"
    if given is not None and given != numeric:
        numeric, why = given, f"{why}; {'numeric' if given else 'categorical'} was asked for"
    remark = _remark(column, content, name) if given is None else ""
    if not remark and labels is not None and content.present >= FEW_ROWS:
        share = tell_labels(column, label, labels, numeric=numeric)
        remark = "" if share is None else _remark_on_giveaway(share, name)
    return Verdict(numeric, why, remark)


def is_continuous(values: np.ndarray[Any, Any]) -> bool:
    """Tell whether a target is a quantity: other numbers, or so many whole ones that few repeat."""
    if values.dtype.kind == "f" and np.any(values != np.floor(values)):
        return True
    if values.dtype.kind not in "iuf":
        return False
    different = len(np.unique(values))
    return different > MANY and different * ROWS_PER_CLASS > len(values)


def remark_on_labels(values: np.ndarray[Any, Any]) -> str:
    """Return what texts look like that hardly repeat, and so name no classes; else nothing."""
    if values.dtype.kind != "U":
        return ""
    texts = np.unique(values)
    if len(texts) <= MANY or 2 * len(texts) <= len(values):
        return ""
    remark = _remark_on_numbers(pa.array(texts[:LOOKED_AT]), len(texts))
    return remark or "looks like an id or like prose: name another column"


def remark_on_classes(classes: np.ndarray[Any, Any], labels: Indices) -> str:
    """Return what is to be said of classes with a single row; nothing where rows are few."""
    single = classes[np.bincount(labels, minlength=len(classes)) == 1].tolist()
    if not single or len(labels) < FEW_ROWS:
        return ""
    shown = ", ".join(map(repr, single[:5])) + (", …" if len(single) > 5 else "")
    what = f"class {shown} has" if len(single) == 1 else f"classes {shown} have"
    return f"{what} a single row, too little to learn from: join classes, or leave such rows out"


def _look(column: Column, label: str) -> _Content:
    if isinstance(column, np.ndarray):
        if column.dtype == object:
            return _look_at_objects(column)
        if column.dtype.kind == "f":
            return _look_at_floats(as_numbers(column, label))
        column = pa.array(column)
    kind, present = column.type, len(column) - column.null_count
    if pa.types.is_floating(kind):
        return _look_at_floats(as_numbers(column, label))
    different = _count(column.indices if pa.types.is_dictionary(kind) else column)
    return _Content(_name_sort(kind), different, present)


def _look_at_floats(numbers: Floats) -> _Content:
    found = numbers[~np.isnan(numbers)]
    # Whole numbers with gaps among them are floats only because of the gaps.
    whole = len(found) < len(numbers) and np.all(found == np.floor(found))
    if whole:
        return _Content("whole numbers", _count(pa.array(found)), len(found))
    # Of others it matters only whether they differ, and counting takes long.
    different = len(found) if len(found) and found.min() < found.max() else min(len(found), 1)
    return _Content("numbers", different, len(found))


def _count(values: Any) -> int:
    try:
        return int(pc.count_distinct(values, mode="only_valid").as_py())
    except pa.ArrowNotImplementedError:
        return len(values)  # of a type that will be refused


def _name_sort(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "whole numbers"
    if is_text(kind):
        return "text"
    if is_date(kind):
        return "dates"
    if pa.types.is_boolean(kind):
        return "truth values"
    return "categories" if pa.types.is_dictionary(kind) else str(kind)


def _look_at_objects(column: np.ndarray[Any, Any]) -> _Content:
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
    return _Content(sort, different, len(found))


def _remark(column: Column, content: _Content, name: str) -> str:
    """Return what looks like a mistake in a column, whatever the labels."""
    if content.sort == "dates":
        return _remark_on_dates(name)
    if content.sort == "whole numbers":
        return _remark_on_id(name) if _is_numeric_id(column, content, name) else ""
    if content.sort not in {"text", "categories"} or content.different <= 1:
        return ""
    texts = _take_texts(column)
    remark = ""
    if texts is not None and all_match(texts, DATE):
        remark = _remark_on_dates(name)
    elif texts is not None and content.sort == "text":
        remark = _remark_on_numbers(texts, content.different)
    return remark or _remark_on_rarity(content, name)


def _remark_on_rarity(content: _Content, name: str) -> str:
    if content.different > 20 and content.different > 0.9 * content.present:
        return _remark_on_id(name)
    if content.different > MANY_CATEGORIES:
        return (
            f"has {content.different:,} categories, most of them rare: group them, or leave the "
            f"column out (--drop {name})"
        )
    return ""


def _take_texts(column: Column) -> Any | None:
    """Return some of the different texts of a column."""
    if isinstance(column, np.ndarray):
        found = (value for value in column.tolist() if isinstance(value, str))
        return pa.array(list(dict.fromkeys(found))[:LOOKED_AT], pa.string())
    if pa.types.is_dictionary(column.type):
        column = column.dictionary
    return pc.unique(column.drop_null())[:LOOKED_AT] if is_text(column.type) else None


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


def _is_numeric_id(column: Column, content: _Content, name: str) -> bool:
    """Tell whether whole numbers look like an id: hardly any repeats, and their name or order."""
    if content.different <= MANY or content.different < 0.9 * content.present:
        return False
    if re.search(ID_NAME, name.strip()) or re.search(ID_NAME, name.strip().lower()):
        return True
    numbers = as_numbers(column, name)
    if content.different < content.present or content.present < len(numbers):
        # Repeated ones are told by their place: files without names begin with them.
        return name == "column_1"
    steps = np.diff(numbers)
    dense = numbers.max() - numbers.min() < 2 * len(numbers)
    return bool(dense or np.all(steps > 0) or np.all(steps < 0) or name == "column_1")


def _remark_on_giveaway(share: float, name: str) -> str:
    return (
        f"gives the target away: it alone tells {share:.1%} of the labels; if it is not known "
        f"before they are, leave it out (--drop {name})"
    )
