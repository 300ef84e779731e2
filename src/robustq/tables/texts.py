"""What a text means: a number, a date, nothing. One place for all who read text."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "DATE",
    "DECIMAL_COMMA",
    "NUMBER",
    "WHOLE",
    "all_match",
    "any_match",
    "are_written_out",
    "has_ambiguous_commas",
    "is_date",
    "is_text",
    "mark_gaps",
    "parse_number",
    "say_dates",
    "undress",
    "with_decimal_point",
]

# What people write where there is no value, in any case of letters.
NO_VALUE = ("", "?", "na", "n/a", "nan", "null", "none", "#n/a", "<na>")
# No leading zeros: 007 is a name, not a number.
WHOLE = r"^[+-]?(0|[1-9][0-9]{0,18})$"
NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
SYMBOLS = "$€£¥"
GROUPED = r"[0-9]{1,3}(,[0-9]{3})+"
# $1,001.50, 99 €, −5 %, 1,234,567: what a person sees as a number, and a computer does not.
WRITTEN_OUT = rf"^[+-]?[{SYMBOLS}]? ?[+-]?({GROUPED}|0|[1-9][0-9]*)(\.[0-9]+)?( ?[{SYMBOLS}%])?$"
DRESS = rf"[{SYMBOLS}%, +]"
# What tells that a comma in such numbers marks thousands: 1,001 alone may be 1.001 as well.
MARKS_THOUSANDS = rf"[{SYMBOLS}.]|,[0-9]+,"
DECIMAL_COMMA = (
    rf"^[+-]?[{SYMBOLS}]? ?[+-]?([0-9]+|[0-9]{{1,3}}(\.[0-9]{{3}})+)(,[0-9]+)?( ?[{SYMBOLS}%])?$"
)
DATE = (
    r"^([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4})"
    r"([T ][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?)? ?([AaPp][Mm]|Z|[+-][0-9]{2}:?[0-9]{2})?$"
)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is text."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_date(kind: pa.DataType) -> bool:
    """Tell whether a type is dates, with a time of day or without."""
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def say_dates(values: Any) -> Any:
    """Return dates as text, whatever their resolution: 2024-01-31, or 2024-01-31 12:30:00."""
    text = values.cast(pa.string())
    text = pc.replace_substring_regex(text, r"(\.[0-9]*?)0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(text, r"( 00:00:00)?\.?(Z?)$", r"\2")


def trim(values: Any) -> Any:
    """Return text without white space around it."""
    return pc.utf8_trim_whitespace(values)


def mark_gaps(values: Any, known: tuple[str, ...] = ()) -> Any:
    """Return text without white space around it, null where it stands for no value.

    Parameters
    ----------
    values : Arrow array of text
    known : tuple of str
        What is a value all the same.
    """
    trimmed = trim(values)
    empty = pc.is_in(pc.utf8_lower(trimmed), pa.array(NO_VALUE, trimmed.type))
    if known:
        values_known = pa.array(known, trimmed.type)
        trimmed = pc.if_else(pc.is_in(values, values_known), values, trimmed)
        empty = pc.and_(empty, pc.invert(pc.is_in(trimmed, values_known)))
    return pc.if_else(empty, None, trimmed)


def all_match(values: Any, pattern: str) -> bool:
    """Tell whether all texts that are there match a pattern, and there is one."""
    return bool(pc.all(pc.match_substring_regex(values, pattern), min_count=1).as_py())


def any_match(values: Any, pattern: str) -> bool:
    """Tell whether one of the texts matches a pattern."""
    return bool(pc.any(pc.match_substring_regex(values, pattern)).as_py())


def are_written_out(values: Any) -> bool:
    """Tell whether all texts are numbers as people write them, in one unit: $1,001 or 45%."""
    if not all_match(values, WRITTEN_OUT) or has_ambiguous_commas(values):
        return False
    units = [unit for unit in (*SYMBOLS, "%") if any_match(values, f"[{unit}]")]
    return len(units) <= 1 and (units != ["%"] or all_match(values, "%$"))


def has_ambiguous_commas(values: Any) -> bool:
    """Tell whether commas in numbers may mark thousands or decimals: 1,001 and nothing else."""
    return any_match(values, ",") and not any_match(values, MARKS_THOUSANDS)


def with_decimal_point(values: Any, decimal: str) -> Any:
    """Return text whose numbers have a decimal point and no thousands marks.

    Parameters
    ----------
    values : Arrow array of text
    decimal : {".", ","}
        The decimal mark they have: 1.234,5 and 1,234.5 become 1234.5.
    """
    pattern, thousands = (DECIMAL_COMMA, ".") if decimal == "," else (WRITTEN_OUT, ",")
    plain = pc.replace_substring(pc.replace_substring(values, thousands, ""), decimal, ".")
    return pc.if_else(pc.match_substring_regex(values, pattern), plain, values)


def undress(values: Any) -> Any:
    """Return text with written-out numbers as plain ones: no symbols, thousands marks, plus."""
    plain = pc.replace_substring_regex(values, DRESS, "")
    return pc.if_else(pc.match_substring_regex(values, WRITTEN_OUT), plain, values)


def parse_number(text: str) -> float | int | None:
    """Return the number that a text is, written out or not; None if it is none.

    Examples
    --------
    >>> parse_number("12"), parse_number("$1,001"), parse_number("45%"), parse_number("007")
    (12, 1001, 45, None)
    """
    if not re.fullmatch(NUMBER, text):
        if not re.fullmatch(WRITTEN_OUT, text):
            return None
        text = re.sub(DRESS, "", text)
    if re.fullmatch(WHOLE, text):
        return int(text)
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
