"""Where rows come from: files, folders, patterns, standard input; read batch by batch."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from robustq.blocks import count_cores
from robustq.exceptions import FileError, InputError
from robustq.files import Place, explain_os_error, find_place, name_file
from robustq.tables.texts import with_decimal_point

from .arff import ArffFile, is_arff
from .columns import require_columns
from .csv_rows import CsvRows
from .sniffing import SAMPLE, CsvOptions, check_names, guess_encoding, sniff
from .utf8 import CSV_BLOCK, Utf8, size_pieces
from .workbooks import Sheet, open_sheet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

__all__ = [
    "BATCH_ROWS",
    "STDIN",
    "Source",
    "as_path",
    "open_sources",
    "read_ahead",
    "unify_types",
]

STDIN = "-"
# Arrow makes room for a little more, in powers of two, and copies what is read where one is near.
BATCH_ROWS = 100_000
PARQUET = (".parquet", ".pq", ".parq")
TEXT = (".csv", ".tsv", ".txt", ".arff")
WORKBOOK = (".xlsx", ".xlsm")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
PATTERN = "*?["
# Types that little can be done with, and what holds the same values.
PLAIN = {"string_view": pa.string(), "binary_view": pa.binary(), "halffloat": pa.float32()}


Batch = TypeVar("Batch")


@dataclass(eq=False)
class Source:
    """One file, or standard input.

    Attributes
    ----------
    path : str
        "-" for standard input.
    options : CsvOptions
        How to read it, if it is text.
    share : float
        How much of it has been read, from 0 to 1.
    batch_rows : int
        How many rows to read at a time, at most.
    notes : tuple of str
        What whoever reads it should know: perhaps its first row is data.
    """

    path: str
    options: CsvOptions = field(default_factory=CsvOptions)
    share: float = 0.0
    batch_rows: int = BATCH_ROWS
    notes: tuple[str, ...] = ()

    @cached_property
    def place(self) -> Place:
        """Where it is."""
        return find_place(self.path)

    def __getstate__(self) -> dict[str, Any]:
        # Its place knows where it is, for whoever reads it from another folder.
        return vars(self) if self.path == STDIN else vars(self) | {"place": self.place}

    @property
    def name(self) -> str:
        """What to call it: without secrets that a URL may hold."""
        return "standard input" if self.path == STDIN else self.place.name

    @property
    def size(self) -> int:
        """Its size in bytes, 0 if nobody knows."""
        return 0 if self.path == STDIN else self.place.size()

    @property
    def is_regular(self) -> bool:
        """Whether it can be opened twice; pipes cannot."""
        return self.path != STDIN and self.place.is_file()

    @property
    def _ending(self) -> str:
        return PurePath(name_file(self.path)).suffix.lower()

    def types(self, names: Sequence[str]) -> list[pa.DataType]:
        """Return the types of some columns; of text, all are text."""
        with _explaining(self.name):
            schema = self._schema()
            if schema is None:
                return [pa.string() for _ in names]  # in workbooks too
            require_columns(names, schema.names, self.name, "which is to be kept")
            return [_plain(schema.field(name).type) for name in names]

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns; not of a pipe, which can be read once only."""
        with _explaining(self.name):
            schema = self._schema()
            if schema is not None:
                return tuple(schema.names)
            if self._is_workbook():
                with self._open_sheet() as sheet:
                    return sheet.names
            with self._open() as (_, stream):
                return sniff(_read_head(stream), self.options, self.name).names

    def _schema(self) -> pa.Schema | None:
        """Return what a file declares of its columns; nothing where it is CSV, or a pipe."""
        if self._is_parquet():
            with self.place.for_arrow() as file:
                return pq.read_schema(file)
        if not self.is_regular:
            return None
        with self._open() as (_, stream):
            sample = _read_head(stream)
            if not is_arff(sample):
                return None
            file = self._open_arff(sample, stream)
            # Values are kept, not the dictionaries that a column declares.
            return pa.schema([(a.name, a.plain_type) for a in file.attributes])

    def read(
        self,
        choose: Callable[[tuple[str, ...]], Sequence[str]] | None = None,
        repeating: Collection[str] = (),
    ) -> Iterator[pa.Table]:
        """Yield batches of rows; of text, all columns are text.

        Parameters
        ----------
        choose : callable, optional
            Takes the names of the columns, and returns those wanted, in that order; all by default.
        repeating : collection of str, optional
            Columns of words that repeat: of a text or Parquet file they may come as dictionaries,
            each word once.

        Raises
        ------
        FileError, InputError
            If it cannot be read, or is no table; the message names the file, and the row.
        """
        with _explaining(self.name):
            if self._is_parquet():
                yield from self._read_parquet(choose, repeating)
            elif self._is_workbook():
                yield from self._read_workbook(choose)
            else:
                yield from self._read_text(choose, repeating)

    def _is_parquet(self) -> bool:
        if not self.is_regular:
            return False
        if self._ending in (*TEXT, *COMPRESSED):
            return False
        if self._ending in PARQUET:
            return True
        with self.place.open() as file:
            return file.read(4) == b"PAR1"

    def _is_workbook(self) -> bool:
        return self.is_regular and self._ending in WORKBOOK

    @contextmanager
    def _open_sheet(self) -> Iterator[Sheet]:
        with self.place.open(seekable=True) as file:
            yield open_sheet(file, self.options, self.name)

    def _read_workbook(self, choose: Any) -> Iterator[pa.Table]:
        with self._open_sheet() as sheet:
            self.notes = sheet.notes
            wanted = self._choose(choose, sheet.names)
            for batch in sheet.read(wanted, BATCH_ROWS):
                yield self._mend_decimals(batch)

    def _choose(self, choose: Any, names: tuple[str, ...]) -> list[str]:
        try:
            return list(names if choose is None else choose(names))
        except InputError as error:
            msg = " ".join([f"{error};", *self.notes])
            raise InputError(msg if self.notes else str(error)) from error

    def _mend_decimals(self, batch: pa.Table) -> pa.Table:
        if self.options.decimal is None:
            return batch
        columns = [with_decimal_point(column, self.options.decimal) for column in batch.columns]
        return pa.table(columns, names=batch.column_names)

    def _read_parquet(self, choose: Any, repeating: Collection[str]) -> Iterator[pa.Table]:
        with ExitStack() as stack:
            opened = stack.enter_context(self.place.for_arrow())
            file = stack.enter_context(pq.ParquetFile(opened, pre_buffer=True))
            words = [field.name for field in file.schema_arrow if field.name in repeating]
            if words:
                known = {"metadata": file.metadata, "read_dictionary": words}
                file = stack.enter_context(pq.ParquetFile(opened, pre_buffer=True, **known))
            names = tuple(file.schema_arrow.names)
            check_names(list(names), self.name)
            wanted = self._choose(choose, names)
            rows, done = max(1, file.metadata.num_rows), 0
            yielded = False
            threads = count_cores() > 1  # where one is allowed, Arrow starts none either
            for batch in file.iter_batches(self.batch_rows, columns=wanted, use_threads=threads):
                done += len(batch)
                self.share = done / rows
                yielded = True
                yield _simplify(pa.table(batch).select(wanted))
            if not yielded:
                yield _simplify(file.schema_arrow.empty_table().select(wanted))

    def _read_text(self, choose: Any, repeating: Collection[str]) -> Iterator[pa.Table]:
        with self._open() as (raw, stream):
            sample = _read_head(stream)
            if is_arff(sample):
                batches = self._read_arff(sample, stream, choose)
            else:
                batches = self._read_csv(sample, stream, choose, repeating)
            for batch in batches:
                self.share = min(1.0, raw.tell() / self.size) if self.size else 0.0
                yield batch

    def _open_arff(self, sample: bytes, stream: Any) -> ArffFile:
        encoding = self.options.encoding or guess_encoding(sample)
        return ArffFile(Utf8(sample, stream, encoding, self.name), self.name)

    def _read_arff(self, sample: bytes, stream: Any, choose: Any) -> Iterator[pa.Table]:
        file = self._open_arff(sample, stream)
        yield from file.read(self._choose(choose, file.names), self.batch_rows)

    def _read_csv(
        self, sample: bytes, stream: Any, choose: Any, repeating: Collection[str]
    ) -> Iterator[pa.Table]:
        options, names, self.notes = sniff(sample, self.options, self.name)
        if self.options.decimal is not None:
            repeating = ()  # it is mended in texts
        wanted = self._choose(choose, names)
        piece = size_pieces(len(names))
        text = Utf8(sample, stream, str(options.encoding), self.name, piece)
        rows = CsvRows(self.name, text, options, names, wanted, repeating)
        for table in rows.read(self.batch_rows, self.size):
            yield self._mend_decimals(table)

    @contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], Any]]:
        if self.path == STDIN:
            if sys.stdin is None:
                msg = "there is no standard input"
                raise FileError(msg)
            yield sys.stdin.buffer, sys.stdin.buffer
            return
        with self.place.open() as raw:
            kind = COMPRESSED.get(self._ending)
            yield raw, raw if kind is None else pa.CompressedInputStream(raw, kind)


def _read_head(stream: Any) -> bytes:
    """Return the beginning of a file, the whole first line at least."""
    sample = _read_fully(stream, SAMPLE)
    while b"\n" not in sample and len(sample) < CSV_BLOCK:
        more = _read_fully(stream, SAMPLE)
        if not more:
            break
        sample += more
    return sample


def _simplify(table: pa.Table) -> pa.Table:
    """Return a table without types that little can be done with."""
    schema = pa.schema([(field.name, _plain(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    return PLAIN.get(str(kind), kind)


def _read_fully(stream: Any, size: int) -> bytes:
    """Return so many bytes, or all there are: a pipe may give fewer at a time."""
    parts, missing = [], size
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


@contextmanager
def _explaining(name: str) -> Iterator[None]:
    try:
        yield
    except (FileError, MemoryError):
        raise
    except pa.ArrowException as error:
        msg = f"{name} cannot be read as a table ({error})"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{name} cannot be read ({explain_os_error(error)})"
        raise FileError(msg) from error


def as_path(path: Any) -> str:
    """Return a path as text.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(path, str | os.PathLike):
        msg = f"a path is text or a Path, got {type(path).__name__}"
        raise InputError(msg)
    return os.fspath(path)


def open_sources(
    paths: Sequence[str], options: CsvOptions | None = None, batch_rows: int = BATCH_ROWS
) -> list[Source]:
    """Return the files that some paths, folders and patterns stand for.

    Raises
    ------
    FileError
        If there is none.
    """
    found = [file for path in paths for file in _expand(str(path))]
    return [Source(file, options or CsvOptions(), batch_rows=batch_rows) for file in found]


def _expand(path: str) -> list[str]:
    if path == STDIN:
        return [path]
    place = find_place(path)
    if place.is_file():
        return [path]
    if place.is_folder():
        files = [file for file in place.list_files() if _is_data(file, path)]
        what = "has no CSV, ARFF, Parquet or Excel files"
    elif any(character in path for character in PATTERN):
        files, what = place.match(), "matches no file"
    else:
        files, what = [path] if place.exists() else [], "does not exist"
    if not files:
        msg = f"{place.name} {what}"
        raise FileError(msg)
    return files


def _is_data(file: str, folder: str) -> bool:
    parts = PurePath(file).parts[len(PurePath(folder).parts) :]
    hidden = any(part.startswith((".", "_")) for part in parts)
    endings = [ending.lower() for ending in PurePath(file).suffixes]
    if endings and endings[-1] in COMPRESSED:
        known = len(endings) > 1 and endings[-2] in TEXT
    else:
        known = bool(endings) and endings[-1] in (*PARQUET, *TEXT, *WORKBOOK)
    return known and not hidden


def read_ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches, the next one being read meanwhile."""
    pool = ThreadPoolExecutor(1)
    try:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch
    finally:
        # Whoever waits for rows from a pipe may wait for ever.
        pool.shutdown(wait=False, cancel_futures=True)


def unify_types(sources: Sequence[Source], names: Sequence[str]) -> dict[str, pa.DataType]:
    """Return types for columns that all files can give: text, where they differ in kind.

    Parameters
    ----------
    sources : sequence of Source
    names : sequence of str
    """
    found = [source.types(names) for source in sources]
    return {name: _unify([types[i] for types in found], name) for i, name in enumerate(names)}


def _unify(types: list[pa.DataType], name: str) -> pa.DataType:
    different = {kind for kind in types if not pa.types.is_null(kind)}
    if len(different) <= 1:
        return next(iter(different), pa.null())
    if all(pa.types.is_signed_integer(kind) for kind in different):
        return pa.int64()
    if any(pa.types.is_nested(kind) or pa.types.is_binary(kind) for kind in different):
        shown = " and ".join(sorted(map(str, different)))
        msg = f"column {name!r} is {shown} in different files: it cannot be kept"
        raise InputError(msg)
    # Text keeps everything as it is written: 007 is not 7, nor is 2^60 + 1 a float.
    return pa.string()
