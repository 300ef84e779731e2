"""Columns as a model knows them, whatever file they come from."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError, UnsupportedError
from robustq.tables import Categorical
from robustq.tables.table import join_chunks
from robustq.tables.texts import (
    DECIMAL_COMMA,
    has_ambiguous_commas,
    is_date,
    is_text,
    mark_gaps,
    parse_number,
    say_dates,
    undress,
)

from .columns import require_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from robustq.tables import Encoding

__all__ = ["adapt_labels", "adapt_numbers", "adapt_table", "list_needed"]

TRUTH = {"true": 1, "false": 0}
# A model looks all words of a dictionary up for every block of rows: more than this do not pay.
MOST_WORDS = 1 << 12


def list_needed(encoding: Encoding, names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the columns of a table that a model needs; all of them where it knows no names.

    Raises
    ------
    InputError
        If one of them is not there.
    """
    if not encoding.named:
        return tuple(names)
    require_columns(encoding.names, names, where, "which the model needs")
    return encoding.names


def adapt_table(table: pa.Table, encoding: Encoding, *, strict: bool = False) -> pa.Table:
    """Return the columns that a model knows, in its order, with values as it was trained on.

    So "7", 7 and 7.0 are the same category, whatever file they come from; and what stands for a
    missing value in text is one, unless the model knows it as a value. Columns are found by name,
    or by position where the model was trained without names. Text is left as a dictionary: its
    words are looked at once, and the model finds them so.

    Parameters
    ----------
    table : pyarrow.Table
    encoding : Encoding
    strict : bool, default False
        Whether text where the model knows numbers only is an error, or just unknown.
    """
    names = encoding.names if encoding.named else tuple(table.column_names)
    columns = {}
    for name, feature in itertools.zip_longest(names, encoding.columns[: len(names)]):
        column = table[name]
        _refuse_nested(column, name)
        if isinstance(feature, Categorical):
            columns[name] = _as_categories(column, feature.categories, name, strict=strict)
        else:
            # More columns than a model without names knows: it will say so itself.
            columns[name] = column if feature is None else adapt_numbers(column, name)
    return pa.table(columns)


def adapt_labels(column: pa.ChunkedArray, classes: np.ndarray[Any, Any], name: str) -> Any:
    """Return labels as values of the types that classes have; null where there is none."""
    _refuse_nested(column, name)
    labels = _as_categories(column, tuple(classes.tolist()), name, strict=True)
    return _flatten(labels) if pa.types.is_dictionary(labels.type) else labels


def _refuse_nested(column: pa.ChunkedArray, name: str) -> None:
    if pa.types.is_nested(column.type):
        what = f"column {name!r} holds lists or records ({column.type})"
        msg = f"{what}, where the model expects plain values: flatten it"
        raise InputError(msg)


def _as_categories(
    column: pa.ChunkedArray, categories: tuple[Any, ...], name: str, *, strict: bool
) -> Any:
    """Return a column whose values are written as the categories are.

    Only its different values are looked at; there are few of them.
    """
    known = {category for category in categories if isinstance(category, str)}
    if known and len(known) < len(categories):
        msg = f"the model knows both text and numbers in column {name!r}, which no file can hold"
        raise UnsupportedError(msg)
    values = join_chunks(column)
    if not pa.types.is_dictionary(values.type):
        if not known and not is_text(values.type):
            return values
        values = values.dictionary_encode()
    words = values.dictionary
    if known:
        words = words if is_text(words.type) else _say_all(words, known)
        # Most files hold known words only, and to look for gaps takes longer than to see that.
        if len(words) > len(known) or not known.issuperset(words.to_pylist()):
            words = mark_gaps(words, tuple(sorted(known)))
    elif is_text(words.type):
        words = _parse_words(mark_gaps(words).to_pylist(), categories, name, strict=strict)
    adapted = pa.DictionaryArray.from_arrays(values.indices, words)
    return adapted if len(words) <= MOST_WORDS else _flatten(adapted)


def _flatten(values: pa.DictionaryArray) -> pa.Array:
    return pc.take(values.dictionary, values.indices)


def _parse_words(
    words: list[str | None], categories: tuple[Any, ...], name: str, *, strict: bool
) -> pa.Array:
    """Return the numbers that words are."""
    has_truth = any(isinstance(category, bool) for category in categories)
    parsed = [_parse(word, has_truth=has_truth) for word in words]
    wrong = [word for word in parsed if isinstance(word, str)]
    if wrong and strict:
        shown = ", ".join(map(str, categories[:5])) + (", …" if len(categories) > 5 else "")
        msg = f"column {name!r} holds {wrong[0]!r}, which the model does not know; it knows {shown}"
        raise InputError(msg)
    # A number nobody knows stands for whatever nobody knows.
    unknown = next(number for number in itertools.count() if number not in categories)
    if all(isinstance(category, int) for category in categories):
        # Whole numbers stay exact, however large.
        exact = [word if word is None or word in categories else unknown for word in parsed]
        return pa.array(exact, pa.uint64() if _is_large(categories) else pa.int64())
    numbers = [unknown if isinstance(word, str) else word for word in parsed]
    return pa.array([None if number is None else float(number) for number in numbers])


def _is_large(categories: tuple[Any, ...]) -> bool:
    return any(category >= 2**63 for category in categories)


def _parse(word: str | None, *, has_truth: bool) -> Any:
    """Return the number that a word is, 0 and 1 for truth values, or the word."""
    if word is None:
        return None
    if has_truth and word.lower() in TRUTH:
        return TRUTH[word.lower()]
    if re.fullmatch(r"[+-]?[0-9]{1,20}", word):
        return int(word)
    number = parse_number(word)
    return word if number is None else number


def _say_all(values: pa.Array, known: set[str]) -> pa.Array:
    if is_date(values.type):
        values = say_dates(values)
    return pa.array([_say(value, known) for value in values.to_pylist()], pa.string())


def _say(value: Any, known: set[str]) -> str | None:
    """Return how a value is written; if there are several ways, the one that is known."""
    if value is None or value != value:  # noqa: PLR0124 (NaN)
        return None
    if isinstance(value, bool):
        ways = [str(value), str(value).lower(), str(value).upper(), str(int(value))]
    elif isinstance(value, float) and value.is_integer():
        ways = [str(int(value)), str(value)]
    elif isinstance(value, int):
        ways = [str(value), f"{value}.0"]
    else:
        # Of dates, with their time.
        ways = [str(value), str(value).replace(" ", "T"), f"{value} 00:00:00", f"{value}T00:00:00"]
    return next((way for way in ways if way in known), ways[0])


def adapt_numbers(column: pa.ChunkedArray, name: str) -> Any:
    """Return a column as numbers, null where there is none."""
    values = join_chunks(column)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not is_text(values.type):
        # Whole numbers beyond 2^53 are rounded, as they were in training.
        return values.cast(pa.float64(), safe=False) if pa.types.is_integer(values.type) else values
    values = mark_gaps(values)
    with suppress(pa.ArrowInvalid):
        return pc.utf8_ltrim(values, "+").cast(pa.float64())
    if not has_ambiguous_commas(values):
        # Dress, as in $1,001, was taken off in training too.
        with suppress(pa.ArrowInvalid):
            return undress(values).cast(pa.float64())
    raise InputError(_no_number(values.drop_null(), name))


def _no_number(values: Any, name: str) -> str:
    texts = values.to_pylist()
    odd = [text for text in texts if not _is_float(text)] or texts
    shown = next((text for text in odd if parse_number(text) is None), odd[0])
    remedy = "mend or empty it"
    if "," in shown and re.fullmatch(DECIMAL_COMMA, shown):
        remedy = "does the comma mark decimals (--decimal ,) or thousands (--decimal .)?"
    return f"column {name!r} holds {shown!r}, where a number is expected: {remedy}"


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
