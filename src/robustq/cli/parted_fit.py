"""`robustq fit` from parts of a table: on workers, or where it is larger than the memory."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from robustq.exceptions import InputError, RigidModelWarning, TableWarning
from robustq.families.seen_rows import sketch_parts
from robustq.files import hide_secrets, name_file
from robustq.io.columns import require_columns
from robustq.io.streaming import is_larger_than_memory
from robustq.io.training import fit_sources
from robustq.io.understanding import describe_parts
from robustq.learning.partitions import LocalPartitions, Reader

from .consoles import make_console, say, showing_progress
from .training_output import show_columns, show_model, show_remarks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robustq.io import Source

__all__ = ["fit_in_parts", "goes_in_parts"]


def goes_in_parts(
    estimator: Any,
    sources: Sequence[Source],
    engine: str | None,
    address: str | None,
    needs_whole: Sequence[str],
) -> bool:
    """Tell whether a model is learned from parts of a table.

    Parameters
    ----------
    estimator : GenerativeClassifier
    sources : sequence of Source
    engine, address : str, optional
    needs_whole : sequence of str
        Options that need all rows in one place.

    Raises
    ------
    InputError
        If workers are asked for, and something they cannot do.
    """
    if engine is None:
        if address is not None:
            msg = f"--address {address}: of what? Add --engine dask or --engine spark"
            raise InputError(msg)
        able = not needs_whole and estimator._learns_from_parts  # noqa: SLF001 (one house)
        return able and is_larger_than_memory(sources)
    if needs_whole:
        msg = (
            f"{needs_whole[0]} needs all rows in one place, and with --engine they stay where they "
            "are: leave one of the two out (robustq evaluate tries a model on other rows)"
        )
        raise InputError(msg)
    return True


def fit_in_parts(
    estimator: Any,
    sources: Sequence[Source],
    name: str,
    columns: dict[str, tuple[str, ...]],
    engine: str | None,
    address: str | None,
    output: str,
) -> None:
    """Learn from parts of a table, write the model and say how the table was understood."""
    for option, wanted in columns.items():
        have = sources[0].names() if sources[0].is_regular else wanted
        require_columns(wanted, have, name, f"which {option} names")
    (target,) = columns["--target"]
    as_text = tuple({target} & set(columns["--categorical"]))
    reader = Reader(target, drop=columns["--drop"])
    with _find_workers(engine, address) as place, warnings.catch_warnings():
        # What they say is shown in words of the command, once.
        warnings.simplefilter("ignore", TableWarning)
        warnings.simplefilter("ignore", RigidModelWarning)
        with showing_progress(f"learning from {name_file(name)}"):
            found = fit_sources(estimator, sources, reader, place, as_text=as_text)
            _, survey, known = found.fitted
            estimator.training_ |= {"target": target, "source": name_file(name)}
            estimator.training_["sketch"] = sketch_parts(estimator, found.parts, known)
    estimator.save(output)
    console = make_console()
    show_columns(console, describe_parts(estimator.encoding_, survey))
    classes = survey.classes()
    show_remarks(console, found.notes, classes, survey.tally(classes)[0], [])
    show_model(console, estimator, survey.total, survey.unlabelled, None)
    say(console, "Learned from parts of the table, and not tried on rows held out.")
    console.print(f"Model: {hide_secrets(output)}", soft_wrap=True, markup=False)


@contextmanager
def _find_workers(engine: str | None, address: str | None) -> Iterator[Callable[..., Any]]:
    if engine is None:
        yield LocalPartitions
        return
    from robustq.engines.training import open_workers  # noqa: PLC0415 (an extra)

    with open_workers(engine, address) as place:
        yield place
