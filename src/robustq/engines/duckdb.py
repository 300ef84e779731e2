"""Relations of DuckDB, scored batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS
from robustq.scoring import open_scorer

from .extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from robustq.scoring import Scorer

__all__ = ["score"]

BATCH_ROWS = 1 << 17


def score(
    relation: Any,
    model_path: str | Path,
    perturbations: str | Sequence[Any] = DEFAULT_PERTURBATIONS,
    keep: Sequence[str] | Literal["all"] | None = None,
    *,
    threads: int | None = None,
    **settings: Any,
) -> pa.RecordBatchReader:
    """Return the scores of a relation as a stream of record batches, which DuckDB reads as a table.

    Rows pass through as they are read; the stream can be read once. When all rows are scored, one
    `UnknownValueWarning` tells how many values were never seen in training.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
        As `connection.sql(query)` gives it. Query the stream by another cursor of the connection
        (`connection.cursor()`): one cursor holds one result at a time.
    model_path : path
        A model file, or `module:object`.
    perturbations : sequence of str or Perturbation
    keep : sequence of str, "all" or None
        Columns carried over, before the results.
    threads : int, optional
        How many to use, all cores by default.
    **settings
        `delta`, `explain` and `min_robustness`, as in `robustq.scoring.open_scorer`.

    Returns
    -------
    pyarrow.RecordBatchReader
        Columns as those of `robustq score`, without its row number.
    """
    require_extra("duckdb", "duckdb")
    scorer = open_scorer(model_path, perturbations, keep, threads=threads, **settings)
    wanted = scorer.choose(tuple(relation.columns), "the relation")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in wanted)
    part = relation.project(names)
    # DuckDB 1.4 and newer have another name for it.
    read = getattr(part, "to_arrow_reader", None) or part.fetch_arrow_reader
    rows = read(BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(scorer.schema(rows.schema), _stream(scorer, rows))


def _stream(scorer: Scorer, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    yield from scorer.stream(rows, rows.schema)
    scorer.tally.warn()
