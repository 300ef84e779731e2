"""The data sets that come with the package, as small compressed tables."""

from __future__ import annotations

import csv
import gzip
import io
from importlib.resources import files
from typing import TYPE_CHECKING

from .parsing import Record

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from .sources import Source

__all__ = ["HERE", "is_shipped", "read", "write"]

HERE = "the package"
LABEL = "class"


def _locate(source: Source) -> Traversable:
    return files(__package__) / "shipped" / f"{source.name}.csv.gz"


def is_shipped(source: Source) -> bool:
    """Tell whether the package has the data set."""
    return _locate(source).is_file()


def read(source: Source) -> list[Record]:
    """Return the records of a data set that the package has."""
    text = gzip.decompress(_locate(source).read_bytes()).decode()
    _, *rows = csv.reader(io.StringIO(text))
    return [Record(0, tuple(cells), label) for *cells, label in rows]


def write(source: Source, records: list[Record]) -> bytes:
    """Return the compressed table that `read` reads, the same bytes for the same records."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*source.features, LABEL])
    table.writerows([*record.features, record.label] for record in records)
    return gzip.compress(text.getvalue().encode(), mtime=0)
