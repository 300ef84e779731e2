"""Files that are read several times, a batch at a time, and never as a whole.

What the text of a column means is found in a first look at all of it, as `infer_types` finds it
in a table that is read at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from robustq.exceptions import InputError
from robustq.learning.partitions import add
from robustq.memory import find_room
from robustq.tables.texts import (
    MARKS_THOUSANDS,
    NUMBER,
    SYMBOLS,
    WHOLE,
    WRITTEN_OUT,
    all_match,
    any_match,
    is_text,
    mark_gaps,
    undress,
)

from .columns import require_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from robustq.learning.partitions import Partitions

    from .sources import Source

__all__ = ["ASKED", "FilePart", "find_types", "is_larger_than_memory", "make_parts"]

ASKED = "which is asked for"

BATCH_ROWS = 1 << 15  # fewer at a time than for scoring: several copies of them are made
TIMES = 4  # how much more memory learning takes than the table alone
TEXT_BYTES = 24  # of a text in memory, about


@dataclass(frozen=True)
class TextLook:
    """What is written in some of the texts of a column; parts add up.

    Attributes
    ----------
    first : str, optional
        The first text there is.
    whole, number : bool
        Whether all are whole numbers of 64 bits, or numbers.
    written : bool
        Whether all are numbers as people write them.
    bare_whole, bare_number : bool
        Whether all are, without what people write around numbers.
    commas, thousands, percents : bool
        Whether there are commas, marks that tell they mark thousands, and whether all end in %.
    units : frozenset of str
    gaps : bool
        Whether some stand for no value, or have white space around them.
    """

    first: str | None = None
    whole: bool = True
    number: bool = True
    written: bool = True
    bare_whole: bool = True
    bare_number: bool = True
    commas: bool = False
    thousands: bool = False
    percents: bool = True
    units: frozenset[str] = frozenset()
    gaps: bool = False

    @classmethod
    def of(cls, column: Any) -> TextLook:
        """Look at texts."""
        written = pc.unique(column)
        read = mark_gaps(written)
        gaps = not read.equals(written)
        texts = pc.unique(read).drop_null()
        if not len(texts):
            return cls(gaps=gaps)
        bare = undress(texts)
        return cls(
            texts[0].as_py(),
            _can_be(texts, WHOLE, pa.int64()),
            _can_be(texts, NUMBER, pa.float64()),
            all_match(texts, WRITTEN_OUT),
            _can_be(bare, WHOLE, pa.int64()),
            _can_be(bare, NUMBER, pa.float64()),
            any_match(texts, ","),
            any_match(texts, MARKS_THOUSANDS),
            all_match(texts, "%$"),
            frozenset(unit for unit in (*SYMBOLS, "%") if any_match(texts, f"[{unit}]")),
            gaps,
        )

    def __add__(self, other: TextLook) -> TextLook:
        """Return what is written in both, the other one after this one."""
        return TextLook(
            self.first if self.first is not None else other.first,
            self.whole and other.whole,
            self.number and other.number,
            self.written and other.written,
            self.bare_whole and other.bare_whole,
            self.bare_number and other.bare_number,
            self.commas or other.commas,
            self.thousands or other.thousands,
            self.percents and other.percents,
            self.units | other.units,
            self.gaps or other.gaps,
        )

    def decide(self) -> TextType:
        """Return what the texts become; see `infer_types`."""
        if self.first is None:
            return TextType(None, bare=False, gaps=self.gaps)
        if self.whole or self.number:
            return TextType(pa.int64() if self.whole else pa.float64(), bare=False, gaps=self.gaps)
        mixed = len(self.units) > 1 or (self.units == {"%"} and not self.percents)
        if self.written and not mixed and not (self.commas and not self.thousands):
            if self.bare_whole:
                return TextType(pa.int64(), bare=True, gaps=self.gaps)
            if self.bare_number:
                return TextType(pa.float64(), bare=True, gaps=self.gaps)
        return TextType(None, bare=False, gaps=self.gaps)


def _can_be(texts: Any, pattern: str, kind: pa.DataType) -> bool:
    if not all_match(texts, pattern):
        return False
    try:
        pc.utf8_ltrim(texts, "+").cast(kind)
    except pa.ArrowInvalid:  # beyond 64 bits
        return False
    return True


@dataclass(frozen=True)
class TextType:
    """What texts become: numbers, of texts that are bared first or not, or what they are.

    Without gaps they are read as they stand: to look for gaps takes longer than all the rest.
    """

    kind: pa.DataType | None
    bare: bool
    gaps: bool

    def read(self, column: Any) -> Any:
        """Return a column of it."""
        values = mark_gaps(column) if self.gaps else column
        if self.kind is None:
            return values
        return pc.utf8_ltrim(undress(values) if self.bare else values, "+").cast(self.kind)


@dataclass(frozen=True)
class FilePart:
    """A file as a part of a table.

    Attributes
    ----------
    source : Source
    types : dict of str to TextType
        What its columns of text become.
    as_text : tuple of str
        Columns to make text of: names of classes that are numbers.
    required : tuple of str
        Columns that it must have.
    """

    source: Source
    types: dict[str, TextType] = field(default_factory=dict)
    as_text: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def __call__(self) -> Iterator[pa.Table]:
        """Yield its rows, a batch at a time."""
        for table in self.source.read():
            require_columns(self.required, table.column_names, self.source.name, ASKED)
            yield pa.table({name: self._read(name, table[name]) for name in table.column_names})

    def _read(self, name: str, column: Any) -> Any:
        if name in self.types:
            column = self.types[name].read(column)
        elif pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        return column.cast(pa.string()) if name in self.as_text else column


def make_parts(sources: Sequence[Source], required: Sequence[str]) -> list[FilePart]:
    """Return files as parts of a table, before anybody has looked into them.

    Parameters
    ----------
    sources : sequence of Source
    required : sequence of str
        Columns that each of them must have.

    Raises
    ------
    InputError
        If one can be read once only.
    """
    for source in sources:
        if not source.is_regular:
            msg = f"{source.name} can be read once only, and this takes several times: give a file"
            raise InputError(msg)
    rows = (min(source.batch_rows, BATCH_ROWS) for source in sources)
    return [
        FilePart(replace(source, batch_rows=most), required=tuple(required))
        for source, most in zip(sources, rows, strict=True)
    ]


def find_types(
    parts: Sequence[FilePart], workers: Partitions
) -> tuple[list[FilePart], dict[str, str]]:
    """Return parts that know what their text means, and notes on what is not plain to see.

    Parameters
    ----------
    parts : sequence of FilePart
    workers : Partitions
        These parts, wherever they are read.
    """
    found = workers.run(_look_at_texts, partial(dict.__or__))
    typed, notes = [], {}
    for index, part in enumerate(parts):
        types = {name: look.decide() for name, look in found[index].items()}
        typed.append(replace(part, types=types))
        for name in (name for name, kind in types.items() if kind.bare):
            text = found[index][name].first
            notes[name] = f"{text!r} was read as {types[name].read(pa.array([text]))[0].as_py()}"
    return typed, notes


def _look_at_texts(index: int, tables: Iterable[pa.Table]) -> dict[int, dict[str, TextLook]]:
    found: dict[str, TextLook] = {}
    for table in tables:
        for name in table.column_names:
            if is_text(table.schema.field(name).type):
                found[name] = add(found.get(name), TextLook.of(table[name]))
    return {index: found}


def is_larger_than_memory(sources: Sequence[Source]) -> bool:
    """Tell whether learning from all rows at once would take more memory than there may be."""
    return TIMES * sum(map(_estimate_size, sources)) > find_room()


def _estimate_size(source: Source) -> int:
    """Return how many bytes the table of a file takes in memory, about."""
    if not source.is_regular:
        return 0
    try:
        metadata = pq.read_metadata(source.path)
    except (pa.ArrowException, OSError):
        return source.size
    schema = metadata.schema.to_arrow_schema()
    width = sum(8 if _is_number(kind) else TEXT_BYTES for kind in schema.types)
    return int(metadata.num_rows * width)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_primitive(kind)
