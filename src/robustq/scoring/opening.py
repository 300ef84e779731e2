"""Models opened once in each process, and scorers of them."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS, Neighbourhood, read, read_all
from robustq.exceptions import FileError, InputError, UnsupportedError
from robustq.files import explain_os_error, find_place, hide_secrets
from robustq.indicators import get
from robustq.indicators.finding import find_neighbourhood
from robustq.selection.gates import Gate

from .guests import find_model, names_object
from .scorer import Scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import pyarrow as pa

__all__ = ["Parcel", "open_model", "open_scorer", "output_schema", "pack"]

MOST_MODELS = 4  # that a process holds at a time

_models: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class Parcel:
    """A model on its way to where the rows are.

    Attributes
    ----------
    name : str
        Of the file, for messages.
    digest : str
        Of its content: a process that has opened it asks for nothing more.
    fetch : callable
        Returns the content.
    """

    name: str
    digest: str
    fetch: Callable[[], bytes]


def pack(path: str | Path) -> tuple[str, bytes]:
    """Return the digest and the content of a model file, to be sent.

    Raises
    ------
    FileError, InputError
        If it cannot be read, or is no model.
    UnsupportedError
        If it names an object in a module: that is no file.
    """
    if names_object(str(path)):
        msg = f"{path}: an engine takes a model file, which holds data only, not code"
        raise UnsupportedError(msg)
    open_model(path)  # what is wrong with it is said here, and not by every worker
    try:
        with find_place(path).open() as file:
            content = file.read()
    except OSError as error:
        msg = f"{hide_secrets(str(path))} cannot be read ({explain_os_error(error)})"
        raise FileError(msg) from error
    return hashlib.sha256(content).hexdigest(), content


def open_scorer(
    model: str | Path | Parcel,
    perturbations: str | Sequence[Any] = DEFAULT_PERTURBATIONS,
    keep: Sequence[str] | Literal["all"] | None = None,
    *,
    delta: float | None = None,
    explain: bool = False,
    min_robustness: float | None = None,
    kept_types: Mapping[str, pa.DataType] | None = None,
    threads: int | None = None,
) -> Scorer:
    """Return what turns Arrow batches into results; each process reads a model file once.

    Parameters
    ----------
    model : path
        A model file, or `module:object`, a fitted classifier in code of yours.
    perturbations : sequence of str or Perturbation
        Names as those of `robustq score --perturbation`.
    keep : sequence of str, "all" or None
        The columns of the rows that go into the results, before them.
    delta : float, optional
        A size, to add the classes that no other beats for certain.
    explain : bool, default False
        Whether to add what each prediction hangs on.
    min_robustness : float, optional
        Accept predictions that are so robust in the first neighbourhood. By default as the model's
        own gate says, if it has one.
    kept_types : dict of str to DataType, optional
        What types kept columns get; their own by default.
    threads : int, optional
        How many to use; by default what ROBUSTQ_THREADS says, or all cores.

    Returns
    -------
    Scorer
        Its `score` takes a batch or a table, its `stream` an iterator of batches.
    """
    classifier = open_model(model)
    asked = _read(perturbations)
    gate = _find_gate(classifier.training_, asked, min_robustness)
    return Scorer(classifier, asked, keep, gate, kept_types or {}, delta, explain, threads)


def output_schema(
    model: str | Path,
    perturbations: str | Sequence[Any] = DEFAULT_PERTURBATIONS,
    keep: Sequence[str] | Literal["all"] | None = None,
    given: pa.Schema | None = None,
    **settings: Any,
) -> pa.Schema:
    """Return the schema of all results of a model: known before the first row.

    Parameters
    ----------
    model, perturbations, keep, **settings
        As in `open_scorer`.
    given : pyarrow.Schema, optional
        That of the rows, where columns are kept.
    """
    return open_scorer(model, perturbations, keep, **settings).schema(given)


def _read(perturbations: str | Sequence[Any]) -> list[Neighbourhood]:
    given = [perturbations] if isinstance(perturbations, str) else list(perturbations)
    return read_all([find_neighbourhood(one) if isinstance(one, str) else one for one in given])


def _find_gate(
    training: dict[str, Any], asked: list[Neighbourhood], least: float | None
) -> Gate | None:
    """Return who is accepted, if anybody asked; the gate's neighbourhood joins the others."""
    if least is not None:
        if least != least:  # noqa: PLR0124 (NaN)
            msg = "--min-robustness must be a number"
            raise InputError(msg)
        return Gate.by(get(asked[0]).name, least, inclusive=True)
    told = training.get("gate")
    if not isinstance(told, dict):
        return None
    gate = Gate.from_dict(told)
    known = {neighbourhood.name for neighbourhood in asked}
    # Never by module and class: a file must not choose what is imported.
    asked += [read(name) for name in gate.ranking.neighbourhoods if name not in known]
    return gate


# Models of this process


def open_model(model: str | Path | Parcel) -> Any:
    """Return a classifier, read once in each process, however many threads ask for it at a time."""
    with _lock:
        key = _key(model)
        if key is None:
            return find_model(str(model))
        if key not in _models:
            _models[key] = _unpack(model) if isinstance(model, Parcel) else find_model(str(model))
        _models.move_to_end(key)
        while len(_models) > MOST_MODELS:
            _models.popitem(last=False)
        return _models[key]


def _key(model: str | Path | Parcel) -> Hashable | None:
    if isinstance(model, Parcel):
        return model.digest
    try:
        status = Path(model).stat()
    except (OSError, ValueError):
        return None
    return str(Path(model).resolve()), status.st_mtime_ns, status.st_size, status.st_ino


def _unpack(parcel: Parcel) -> Any:
    with tempfile.TemporaryDirectory(prefix="robustq-") as folder:
        path = Path(folder, Path(parcel.name).name)
        path.write_bytes(parcel.fetch())
        return find_model(str(path))
