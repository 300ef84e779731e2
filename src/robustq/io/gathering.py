"""Batches of the size that whoever works on them likes, whatever size they come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["gather"]


def gather(batches: Iterable[pa.RecordBatch | pa.Table], rows: int) -> Iterator[pa.Table]:
    """Yield tables of at most so many rows, in order; batches of one schema are put together.

    Examples
    --------
    >>> small = [pa.record_batch({"a": [n]}) for n in range(5)]
    >>> [table["a"].to_pylist() for table in gather(small, 2)]
    [[0, 1], [2, 3], [4]]
    """
    waiting: list[pa.Table] = []
    count = 0
    for batch in batches:
        table = pa.table(batch)
        for start in range(0, table.num_rows, rows):
            part = table.slice(start, rows)
            if waiting and (
                count + part.num_rows > rows or not part.schema.equals(waiting[0].schema)
            ):
                yield pa.concat_tables(waiting)
                waiting, count = [], 0
            waiting.append(part)
            count += part.num_rows
    if waiting:
        yield pa.concat_tables(waiting)
