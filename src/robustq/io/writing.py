"""Where results go: Parquet, CSV, JSON lines or Excel, batch by batch."""

from __future__ import annotations

import io
import json
import math
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from robustq.exceptions import FileError, InputError
from robustq.files import find_place, hide_secrets

from .workbooks import WorkbookWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STDOUT", "Writer", "check_ending", "open_writer"]

STDOUT = "-"
BATCH_ROWS = 1 << 16  # that a column hands on at a time
ENDINGS = (".parquet", ".pq", ".csv", ".csv.gz", ".jsonl", ".ndjson", ".xlsx")


class Writer(Protocol):
    """What takes batches of results."""

    def write_table(self, table: pa.Table) -> None:
        """Write a batch."""


def check_ending(path: str) -> None:
    """Raise if an ending does not tell a format."""
    if path != STDOUT and not path.lower().endswith(ENDINGS):
        msg = f"{hide_secrets(path)!r} has no ending that tells a format: use {', '.join(ENDINGS)}"
        raise InputError(msg)


@contextmanager
def open_writer(path: str, schema: pa.Schema) -> Iterator[Writer]:
    """Give a writer; the file appears under its name when all is written.

    Parameters
    ----------
    path : str
        Its ending tells the format; "-" is CSV on standard output.
    schema : pyarrow.Schema
    """
    check_ending(path)
    with ExitStack() as stack:
        if path == STDOUT:
            if sys.stdout is None:
                msg = "there is no standard output"
                raise FileError(msg)
            yield stack.enter_context(_CsvWriter(sys.stdout.buffer, schema))
            return
        file: Any = stack.enter_context(find_place(path).writing())
        ending = path.lower()
        if ending.endswith((".parquet", ".pq")):
            writer = stack.enter_context(pq.ParquetWriter(file, schema, **_choose_ways(schema)))
            yield stack.enter_context(_Behind(writer))
        elif ending.endswith((".jsonl", ".ndjson")):
            yield _JsonWriter(stack.enter_context(io.TextIOWrapper(file, encoding="utf-8")))
        elif ending.endswith(".xlsx"):
            yield stack.enter_context(WorkbookWriter(file, schema))
        else:
            packed = "gzip" if ending.endswith(".gz") else None
            stream = stack.enter_context(pa.output_stream(file, compression=packed))
            yield stack.enter_context(_CsvWriter(stream, schema))


def _choose_ways(schema: pa.Schema) -> dict[str, Any]:
    """Return how the columns of a Parquet file are written: what costs more than it saves is not.

    Fractions hardly repeat and hardly get smaller; whole numbers, such as those of the rows and
    classes, lie close to their neighbours, and a dictionary of them would be made anew. Only what
    may be in order, such as the numbers of the rows, has a smallest and a largest that tell more
    of a part of a file than of all of it.
    """
    kinds = {field.name: _plain(field.type) for field in schema}
    ordered = [field.name for field in schema if pa.types.is_integer(field.type)]
    whole = [name for name, kind in kinds.items() if pa.types.is_integer(kind)]
    fractions = {name for name, kind in kinds.items() if pa.types.is_floating(kind)}
    plain = {*whole, *fractions}
    packed = {name: "none" if name in plain else "zstd" for name in kinds}
    # What is within lists and records goes by names that are not those of the columns.
    nested = any(pa.types.is_nested(kind) for kind in kinds.values())
    return {
        "compression": "zstd" if nested else packed,
        "use_dictionary": [name for name in kinds if name not in plain],
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
        "write_statistics": ordered,
        "write_batch_size": BATCH_ROWS,
    }


class _Behind:
    """Writes a batch while the next one is made."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.pool = ThreadPoolExecutor(1)
        self.last: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.pool.shutdown()
        if self.last is not None and kind is None:
            self.last.result()

    def write_table(self, table: pa.Table) -> None:
        # No more than one waits: who is faster than the disk must not fill the memory.
        if self.last is not None:
            self.last.result()
        self.last = self.pool.submit(self.writer.write_table, table)


class _CsvWriter:
    """CSV, whose columns have plain types."""

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        for field in schema:
            if not _fits_csv(_plain(field.type)):
                msg = (
                    f"column {field.name!r} holds {field.type}, which CSV cannot hold: use .parquet"
                )
                raise InputError(msg)
        self.schema = pa.schema([(field.name, _plain(field.type)) for field in schema])
        self.writer = pa.csv.CSVWriter(stream, self.schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()

    def write_table(self, table: pa.Table) -> None:
        self.writer.write_table(table.cast(self.schema))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _fits_csv(kind: pa.DataType) -> bool:
    bare = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return not (bare or pa.types.is_fixed_size_binary(kind) or pa.types.is_nested(kind))


class _JsonWriter:
    """One JSON object on each line."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write_table(self, table: pa.Table) -> None:
        names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
        columns = [column.to_pylist() for column in table.columns]
        for row in zip(*columns, strict=True):
            cells = (f"{name}: {_say(value)}" for name, value in zip(names, row, strict=True))
            self.stream.write("{" + ", ".join(cells) + "}\n")


def _say(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no infinity; a number too large to hold is read as one.
        return "null" if math.isnan(value) else ("1e999" if value > 0 else "-1e999")
    return json.dumps(value, ensure_ascii=False, default=str)
