"""Dask frames, scored and learned from where their partitions are."""

from __future__ import annotations

import sys
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS
from robustq.exceptions import InputError
from robustq.scoring import ALL, Parcel, Tally, open_scorer, pack

from .dask_training import fit
from .extras import require_extra
from .reports import Report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["fit", "score"]


def score(
    frame: Any,
    model_path: str | Path,
    perturbations: str | Sequence[Any] = DEFAULT_PERTURBATIONS,
    keep: Sequence[str] | Literal["all"] | None = None,
    *,
    threads: int = 1,
    **settings: Any,
) -> Any:
    """Return the scores of a Dask frame, lazily.

    Values never seen in training are counted over the whole cluster; when all partitions have been
    scored, one `UnknownValueWarning` tells how many there are, in this process.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    model_path : path
        A model file. It is sent along, once to each worker: they need not see the path.
    perturbations : sequence of str or Perturbation
    keep : sequence of str, "all" or None
        Columns carried over, before the results, with their types.
    threads : int, default 1
        How many each task uses; Dask runs as many tasks at a time as its workers have threads.
    **settings
        `delta`, `explain` and `min_robustness`, as in `robustq.scoring.open_scorer`.

    Returns
    -------
    dask.dataframe.DataFrame
        With the partitions and the index of the frame; columns as those of `robustq score`, without
        its row number. Labels are categories.
    """
    require_extra("dask.dataframe", "dask")
    from dask import delayed  # noqa: PLC0415 (not always installed)

    digest, content = pack(model_path)
    settings |= {"perturbations": perturbations, "threads": threads}
    names = {str(name): name for name in frame.columns}
    wanted = open_scorer(model_path, keep=keep, **settings).choose(tuple(names), "the frame")
    kept = [names[name] for name in (names if keep == ALL else keep or ())]
    part = frame[[names[name] for name in wanted]]
    task = _Task(str(model_path), digest, settings, part._meta[kept], _Report(frame.npartitions))  # noqa: SLF001
    return part.map_partitions(
        task,
        delayed(content, name=f"robustq-model-{digest}"),
        meta=task.describe(open_scorer(model_path, **settings).score_none()),
        align_dataframes=False,
        transform_divisions=False,
        enforce_metadata=False,
    )


class _Task:
    """What is done with each partition."""

    __name__ = "robustq-score"  # in the names that Dask shows

    def __init__(
        self, path: str, digest: str, settings: dict[str, Any], kept: Any, report: _Report | _Envoy
    ) -> None:
        self.path, self.digest, self.settings = path, digest, settings
        self.kept, self.report = kept, report

    def __call__(self, part: Any, content: bytes, partition_info: Any) -> Any:
        scorer = open_scorer(Parcel(self.path, self.digest, lambda: content), **self.settings)
        scored, tally = scorer.score_and_count(_as_table(part))
        self.report.tell(partition_info["number"], tally)
        return self._join(part, scored)

    def describe(self, results: pa.Table) -> Any:
        """Return what comes out, without rows."""
        return self._join(self.kept, results)

    def _join(self, part: Any, scored: pa.Table) -> Any:
        """Return the kept columns of a partition, as they are announced, and its results."""
        found = scored.to_pandas(use_threads=False)
        found.index = part.index
        # From the last to the first, each in front of the others: nothing else is copied.
        for name in reversed(self.kept.columns):
            column, kind = part[name], self.kept.dtypes[name]
            found.insert(0, name, column if column.dtype == kind else _cast(column, kind))
        return found


def _cast(column: Any, kind: Any) -> Any:
    try:
        return column.astype(kind)
    except (TypeError, ValueError) as error:
        msg = (
            f"column {column.name!r} is {kind} in one part of the table and {column.dtype} in "
            f"another, which does not fit ({error}): give it one type, or keep others"
        )
        raise InputError(msg) from error


def _as_table(part: Any) -> pa.Table:
    columns = {}
    for position, name in enumerate(part.columns):
        try:
            columns[str(name)] = pa.array(part.iloc[:, position], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            msg = f"column {name!r} holds values of several kinds ({error}): give it one"
            raise InputError(msg) from error
    return pa.table(columns)


class _Report(Report):
    """What the partitions of a frame counted; sent to a worker, it becomes who tells from there."""

    def __init__(self, partitions: int) -> None:
        super().__init__()
        self.partitions, self.topic = partitions, f"robustq-{uuid.uuid4().hex}"
        distributed = sys.modules.get("distributed")
        with suppress(ValueError):  # no cluster: the work is done in this process
            if distributed is not None:
                distributed.default_client().subscribe_topic(self.topic, self._hear)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Envoy, (self.topic,)

    def __dask_tokenize__(self) -> str:
        return self.topic

    def tell(self, number: int, tally: Tally) -> None:
        """Count a partition."""
        self.note(number, tally, self.partitions)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        self.tell(message["number"], Tally.from_dict(message["tally"]))


@dataclass(frozen=True)
class _Envoy:
    """Tells from a worker, through the scheduler, what a partition counted."""

    topic: str

    def tell(self, number: int, tally: Tally) -> None:
        from distributed import get_worker  # noqa: PLC0415 (not always installed)

        try:
            get_worker().log_event(self.topic, {"number": number, "tally": tally.to_dict()})
        except ValueError:
            tally.warn()  # a process of Dask's own scheduler, from which nobody can be told
