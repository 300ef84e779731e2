"""ARFF, the files of Weka: a header that declares the columns, and rows; read strictly.

Nominal columns become dictionaries of their declared values, `integer` whole numbers, `real` and
`numeric` numbers, `string` text. Only ? without quotes means that there is no value.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from robustq.exceptions import InputError

from .sniffing import check_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ArffFile", "is_arff"]

LONGEST_LINE = 1 << 23  # characters
# Comments and empty lines may come first.
BEGINS = re.compile(r"\A(?:\s*(?:%[^\n]*)?\n)*\s*@relation\b", re.IGNORECASE)
NUMBERS = ("real", "numeric", "integer")
QUOTES = "'\""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
WHOLE = 2**53


def is_arff(sample: bytes) -> bool:
    """Tell whether a file that begins like this is ARFF."""
    return b"@" in sample and bool(BEGINS.match(sample.decode("utf-8", "replace").lstrip("\ufeff")))


@dataclass(frozen=True)
class Attribute:
    """A column: its name, its kind, and the values of a nominal one."""

    name: str
    kind: str
    codes: dict[str, int]

    @property
    def type(self) -> pa.DataType:
        """The type of the column."""
        types = {"nominal": pa.dictionary(pa.int32(), pa.string()), "integer": pa.int64()}
        return types.get(self.kind, pa.string() if self.kind == "string" else pa.float64())

    @property
    def plain_type(self) -> pa.DataType:
        """The same, with text for what is nominal."""
        return pa.string() if self.kind == "nominal" else self.type

    def read(self, cell: tuple[str, bool]) -> str | float | int | None:
        """Return what a cell holds; of a nominal column, the position of its value.

        Raises
        ------
        ValueError
            If the column cannot hold it.
        """
        text, quoted = cell
        if text == "?" and not quoted:
            return None
        if self.kind == "string":
            return text
        if self.kind == "nominal":
            if text not in self.codes:
                known = ", ".join(list(self.codes)[:6]) + (", …" if len(self.codes) > 6 else "")
                msg = f"{text!r} is none of its declared values ({known})"
                raise ValueError(msg)
            return self.codes[text]
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or "_" in text:
            msg = f"{text!r} is no number"
            raise ValueError(msg)
        if self.kind == "integer" and (number != int(number) or abs(number) > WHOLE):
            msg = f"{text!r} is no whole number"
            raise ValueError(msg)
        return int(number) if self.kind == "integer" else number

    def gather(self, cells: list[Any]) -> pa.Array:
        """Return a column of what `read` gave."""
        if self.kind != "nominal":
            return pa.array(cells, self.type)
        codes = pa.array(cells, pa.int32())
        return pa.DictionaryArray.from_arrays(codes, pa.array(list(self.codes), pa.string()))


class ArffFile:
    """A stream of UTF-8, whose header is read at once, and its rows when they are asked for.

    Parameters
    ----------
    stream : file
    name : str
        What to call it in an error.

    Raises
    ------
    InputError
        If it is not as it should be; the message names the line.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self.name, self.line = name, 0
        buffer = io.BufferedReader(stream)
        self.text = io.TextIOWrapper(buffer, "utf-8", newline=None)
        self.attributes = self._read_header()
        check_names([attribute.name for attribute in self.attributes], name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(attribute.name for attribute in self.attributes)

    def read(self, wanted: Sequence[str], batch_rows: int) -> Iterator[pa.Table]:
        """Yield batches of rows, some columns of them; the first one is empty."""
        every = {attribute.name: place for place, attribute in enumerate(self.attributes)}
        places = [every[name] for name in wanted]

        def gather(rows: list[list[Any]]) -> pa.Table:
            return pa.table(
                {
                    self.attributes[place].name: self.attributes[place].gather(
                        [row[place] for row in rows]
                    )
                    for place in places
                }
            )

        yield gather([])
        rows = (self._read_row(line) for line in self._lines())
        while batch := list(itertools.islice(rows, batch_rows)):
            yield gather(batch)

    def _lines(self) -> Iterator[str]:
        """Yield lines that say something."""
        while line := self._next_line():
            line = line.strip().lstrip("\ufeff")
            if line and not line.startswith("%"):
                yield line

    def _next_line(self) -> str:
        self.line += 1
        try:
            line = self.text.readline(LONGEST_LINE)
        except UnicodeDecodeError as error:
            encoding = self.text.encoding
            msg = f"{self.name} is not written in {encoding}: give its encoding (--encoding)"
            raise InputError(msg) from error
        if len(line) >= LONGEST_LINE:
            self._refuse(f"a line is longer than {LONGEST_LINE:,} characters")
        return line

    def _read_header(self) -> list[Attribute]:
        attributes: list[Attribute] = []
        for line in self._lines():
            keyword, _, rest = line.replace("\t", " ").partition(" ")
            keyword = keyword.lower()
            if keyword == "@attribute":
                attributes.append(self._read_attribute(rest.strip()))
            elif keyword == "@data" and attributes:
                return attributes
            elif keyword != "@relation":
                self._refuse(f"no part of a header: {_shorten(line)}")
        return self._refuse("the file ends before @data, which follows at least one @attribute")

    def _read_attribute(self, text: str) -> Attribute:
        name, rest = self._take_name(text)
        kind = rest.lower()
        if rest.startswith("{") and rest.endswith("}"):
            cells = [value for value, _ in self._split(rest[1:-1])]
            codes = {value: code for code, value in enumerate(cells)}
            if len(codes) < len(cells):
                self._refuse(f"a value of {name!r} is declared twice")
            return Attribute(name, "nominal", codes)
        if kind in (*NUMBERS, "string"):
            return Attribute(name, kind, {})
        return self._refuse(
            f"{name!r} is declared as {_shorten(rest)}: read are {{values, …}}, "
            f"{', '.join(NUMBERS)} and string"
        )

    def _take_name(self, text: str) -> tuple[str, str]:
        if text[:1] in QUOTES and text:
            name, end = self._unquote(text, 0)
        else:
            name = re.split(r"[\s{]", text, maxsplit=1)[0]
            end = len(name)
        if not name:
            self._refuse("an attribute has no name")
        return name, text[end:].strip()

    def _read_row(self, line: str) -> list[Any]:
        if line.startswith("{"):
            self._refuse("a sparse row, {position value, …}: write all its values")
        cells = self._split(line)
        if len(cells) != len(self.attributes):
            self._refuse(
                f"{len(cells)} values where {len(self.attributes)} are declared: {_shorten(line)}"
            )
        found = []
        for attribute, cell in zip(self.attributes, cells, strict=True):
            try:
                found.append(attribute.read(cell))
            except ValueError as error:
                self._refuse(str(error), f", column {attribute.name!r}")
        return found

    def _split(self, line: str) -> list[tuple[str, bool]]:
        """Return the values of a line, and whether each was quoted."""
        if not any(mark in line for mark in QUOTES):
            cells = [(cell.strip(), False) for cell in line.split(",")]
        else:
            cells, place = [], 0
            while True:
                cell, place = self._take_cell(line, place)
                cells.append(cell)
                if place >= len(line):
                    break
                place += 1  # the comma
        for text, quoted in cells:
            if not quoted and (not text or "%" in text):
                self._refuse(f"a value must be quoted, {text!r}; one that is missing is ?")
        return cells

    def _take_cell(self, line: str, place: int) -> tuple[tuple[str, bool], int]:
        while line[place : place + 1].isspace():
            place += 1
        if line[place : place + 1] not in QUOTES or place >= len(line):
            end = line.find(",", place)
            end = len(line) if end < 0 else end
            return (line[place:end].strip(), False), end
        text, end = self._unquote(line, place)
        while line[end : end + 1].isspace():
            end += 1
        if line[end : end + 1] not in ("", ","):
            self._refuse(f"a row goes on after a quoted value: {_shorten(line[place:])}")
        return (text, True), end

    def _unquote(self, line: str, place: int) -> tuple[str, int]:
        """Return the text in quotes that begins somewhere, and where it ends."""
        quote, text, at = line[place], [], place + 1
        while at < len(line) and line[at] != quote:
            if line[at] == "\\" and at + 1 < len(line):
                at += 1
                text.append(ESCAPES.get(line[at], line[at]))
            else:
                text.append(line[at])
            at += 1
        if at >= len(line):
            self._refuse(f"a quote is left open: {_shorten(line[place:])}")
        return "".join(text), at + 1

    def _refuse(self, what: str, where: str = "") -> NoReturn:
        msg = f"{self.name}, line {self.line}{where}: {what}"
        raise InputError(msg)


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
