"""Spark frames, scored and learned from where their partitions are."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS
from robustq.exceptions import UnsupportedError
from robustq.scoring import ALL, Parcel, Tally, open_scorer, pack

from .extras import require_extra
from .reports import Report
from .spark_training import fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["fit", "score"]

Noted = list[tuple[int, int, dict[str, Any]]]  # stage, partition, tally


def score(
    frame: Any,
    model_path: str | Path,
    perturbations: str | Sequence[Any] = DEFAULT_PERTURBATIONS,
    keep: Sequence[str] | Literal["all"] | None = None,
    *,
    threads: int = 1,
    **settings: Any,
) -> Any:
    """Return the scores of a Spark frame, lazily.

    Values never seen in training are counted over the whole cluster; when an action has scored all
    partitions that it needs, one `UnknownValueWarning` tells how many there are, in the driver.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    model_path : path
        A model file. It is broadcast, once to each worker: they need not see the path.
    perturbations : sequence of str or Perturbation
    keep : sequence of str, "all" or None
        Columns carried over, before the results: rows of Spark have no other order or name.
    threads : int, default 1
        How many each task uses.
    **settings
        `delta`, `explain` and `min_robustness`, as in `robustq.scoring.open_scorer`.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns as those of `robustq score`, without its row number.
    """
    require_extra("pyspark.sql", "spark")
    from pyspark.sql.types import StructType  # noqa: PLC0415 (not always installed)

    context = _find_context(frame)
    digest, content = pack(model_path)
    settings |= {"perturbations": perturbations, "threads": threads}
    wanted = open_scorer(model_path, keep=keep, **settings).choose(
        tuple(frame.columns), "the frame"
    )
    kept = list(frame.columns if keep == ALL else keep or ())
    plain = _plain(open_scorer(model_path, **settings).schema())
    results = _describe(plain)
    task = _Task(
        str(model_path),
        digest,
        context.broadcast(content),
        {**settings, "keep": kept},
        wanted,
        plain,
        context.accumulator([], _Report(context)),
    )
    schema = StructType([*(frame.schema[name] for name in kept), *results])
    part = frame.select(*(f"`{name.replace('`', '``')}`" for name in wanted))
    # mapInArrow stumbles over names with dots and quotes.
    return part.toDF(*(f"c{i}" for i in range(len(wanted)))).mapInArrow(task, schema)


def _find_context(frame: Any) -> Any:
    try:
        return frame.sparkSession.sparkContext
    except Exception as error:
        if isinstance(error, AttributeError) or "CONNECT" in str(error).upper():
            msg = "robustq.engines.spark needs a session of its own process, not Spark Connect"
            raise UnsupportedError(msg) from error
        raise


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema of types that Spark has: no dictionaries."""
    kinds = [
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in schema
    ]
    kinds = [pa.decimal128(20, 0) if pa.types.is_uint64(kind) else kind for kind in kinds]
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def _describe(schema: pa.Schema) -> list[Any]:
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 (not always installed)
    from pyspark.sql.types import StructField  # noqa: PLC0415

    return [StructField(field.name, from_arrow_type(field.type)) for field in schema]


class _Task:
    """What is done with each partition."""

    def __init__(
        self,
        path: str,
        digest: str,
        content: Any,
        settings: dict[str, Any],
        names: list[str],
        results: pa.Schema,
        noted: Any,
    ) -> None:
        self.path, self.digest, self.content = path, digest, content
        self.settings, self.names = settings, names
        self.results, self.noted = results, noted

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 (not always installed)

        parcel = Parcel(self.path, self.digest, lambda: self.content.value)
        scorer = open_scorer(parcel, **self.settings)
        named = (batch.rename_columns(self.names) for batch in batches)
        first = next(named, None)
        if first is not None:
            for scored in scorer.stream(itertools.chain([first], named), first.schema):
                yield self._flatten(scored)
        here = TaskContext.get()
        self.noted.add([(here.stageId(), here.partitionId(), scorer.tally.to_dict())])

    def _flatten(self, scored: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch whose results have the types that Spark was told."""
        names = scored.schema.names
        columns = [
            column.cast(self.results.field(name).type) if name in self.results.names else column
            for name, column in zip(names, scored.columns, strict=True)
        ]
        return pa.record_batch(columns, names=names)


class _Adding:
    """How tallies of one worker are put together: one after the other."""

    def zero(self, _: Noted) -> Noted:
        return []

    def addInPlace(self, noted: Noted, more: Noted) -> Noted:  # noqa: N802 (Spark's name)
        return noted + more


class _Report(_Adding):
    """Hears in the driver what tasks counted; sent to a worker, it only puts tallies together.

    Spark tells of each task before it ends the action.
    """

    def __init__(self, context: Any) -> None:
        self.context = context
        self.stages: dict[int, Report] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _Adding, ()

    def addInPlace(self, noted: Noted, more: Noted) -> Noted:  # noqa: N802 (Spark's name)
        for stage, partition, tally in more:
            report = self.stages.setdefault(stage, Report())
            known = self.context.statusTracker().getStageInfo(stage)
            report.note(partition, Tally.from_dict(tally), known.numTasks if known else 0)
        return noted
