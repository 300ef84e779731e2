"""Lazy frames of polars, scored batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS
from robustq.scoring import open_scorer

from .extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from robustq.scoring import Scorer

__all__ = ["score"]


def score(
    frame: Any,
    model_path: str | Path,
    perturbations: str | Sequence[Any] = DEFAULT_PERTURBATIONS,
    keep: Sequence[str] | Literal["all"] | None = None,
    *,
    threads: int | None = None,
    **settings: Any,
) -> Any:
    """Return the scores of a lazy frame of polars, lazily, in the order of its rows.

    Rows pass through in batches, whatever the frame comes from; `sink_parquet` writes them as they
    come. When all rows are scored, one `UnknownValueWarning` tells how many values were never seen
    in training.

    Parameters
    ----------
    frame : polars.LazyFrame or polars.DataFrame
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
    polars.LazyFrame
        Columns as those of `robustq score`, without its row number. Labels are categories.
    """
    polars = require_extra("polars", "polars")
    register = require_extra("polars.io.plugins", "polars").register_io_source
    settings |= {"perturbations": perturbations, "keep": keep, "threads": threads}
    lazy = frame.lazy()
    announced = lazy.collect_schema().to_frame()
    given = _as_arrow(announced).schema
    scorer = open_scorer(model_path, **settings)
    wanted = scorer.choose(tuple(given.names), "the frame")
    shape = polars.from_arrow(scorer.schema(given).empty_table())

    def read(columns: Any, predicate: Any, n_rows: Any, _: Any) -> Iterator[Any]:
        rows = lazy.select(wanted)
        rows = rows if n_rows is None else rows.head(n_rows)
        for scored in _stream(open_scorer(model_path, **settings), rows, given):
            part = polars.from_arrow(scored)
            part = part if predicate is None else part.filter(predicate)
            yield part if columns is None else part.select(columns)

    return register(read, schema=shape.schema)


def _stream(scorer: Scorer, rows: Any, given: Any) -> Iterator[Any]:
    batches = (one for part in rows.collect_batches() for one in _as_arrow(part).to_batches())
    yield from scorer.stream(batches, given)
    scorer.tally.warn()


def _as_arrow(frame: Any) -> Any:
    """Return a table of types that everybody has."""
    polars = require_extra("polars", "polars")
    return frame.to_arrow(compat_level=polars.CompatLevel.oldest())
