"""Learning from rows in parts: what `fit` makes of all rows at once, to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from robustq.exceptions import UnsupportedError
from robustq.learning.parted_rows import PartedRows
from robustq.learning.partitions import add
from robustq.learning.surveys import make_survey, understand_parts, with_types
from robustq.tables.understanding import are_quantities

from .labels import find_class_factors, refuse_quantities
from .naive_bayes.classifier import NaiveBayesClassifier
from .remarks import warn_of_remarks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from robustq.learning.partitions import Partitions, Reader
    from robustq.learning.surveys import Survey

__all__ = ["FittedParts", "fit_parts"]


class FittedParts(NamedTuple):
    """A fitted estimator, and what it was fitted on.

    Attributes
    ----------
    estimator : GenerativeClassifier
    survey : Survey
    reader : Reader
        That knows the types of all columns.
    """

    estimator: Any
    survey: Survey
    reader: Reader


def fit_parts(
    estimator: Any,
    parts: Partitions,
    reader: Reader,
    check: Callable[[np.ndarray[Any, Any], int, str], None] | None = None,
) -> FittedParts:
    """Fit an estimator on rows in parts.

    Few rows are brought together, and learned from as ever. Of more, each part gives counts, which
    add up to those of all rows.

    Parameters
    ----------
    estimator : GenerativeClassifier, optional
        Naive Bayes by default.
    parts : Partitions
    reader : Reader
    check : callable, optional
        Raises if the different labels of so many rows of the target are no classes.
    """
    estimator = NaiveBayesClassifier() if estimator is None else estimator
    if not getattr(estimator, "_learns_from_parts", False):
        name, remedy = type(estimator).__name__, ""
        if hasattr(estimator, "max_samples"):
            remedy = ": say on how many rows a tree grows, as in max_samples=100_000"
        msg = f"{name} as it is does not learn from parts of a table{remedy}"
        raise UnsupportedError(msg)
    estimator._check_parameters()  # noqa: SLF001 (one house)
    given: dict[str, Any] = {
        name: tuple(getattr(estimator, name) or ()) for name in ("categorical", "numeric")
    }
    weights = estimator.class_weight
    plain = reader
    if isinstance(weights, Mapping):
        reader = replace(reader, factors=weights)
    survey = make_survey(parts, reader, **given)
    if check is not None:
        check(survey.classes(), survey.total, reader.target)
    _refuse_quantities(survey)
    if estimator._learns_together(survey):  # noqa: SLF001
        return _fit_together(estimator, parts, with_types(plain, survey), survey)
    classes = survey.classes()
    if weights is not None:
        factors = find_class_factors(weights, classes, survey.tally(classes)[1])
        if not isinstance(weights, Mapping):
            reader = replace(
                reader, factors=dict(zip(classes.tolist(), factors.tolist(), strict=True))
            )
    reader = with_types(reader, survey)
    encoding = understand_parts(
        parts,
        reader,
        survey,
        **estimator._binning(survey),  # noqa: SLF001
        **given,
    )
    warn_of_remarks(encoding, classes, survey.tally(classes)[0], stacklevel=4)
    rows = PartedRows(parts, reader, survey, encoding, classes)
    estimator._note_training(survey.total)  # noqa: SLF001
    estimator._fit_parted(rows)  # noqa: SLF001
    return FittedParts(estimator, survey, reader)


def _refuse_quantities(survey: Survey) -> None:
    classes = survey.classes()
    if are_quantities(classes, survey.total):
        refuse_quantities(classes, survey.total, next(iter(survey.labels)))


def _fit_together(estimator: Any, parts: Partitions, reader: Reader, survey: Survey) -> FittedParts:
    pieces = parts.run(partial(_bring, reader), add)
    X = pa.concat_tables([piece.X for piece in pieces]).unify_dictionaries()
    y = np.array(pa.concat_arrays([piece.y for piece in pieces]).to_pylist())
    weights = np.concatenate([piece.weights for piece in pieces])
    given = None if reader.weight is None else weights
    estimator._fit_named(X, y, given, reader.target)  # noqa: SLF001
    return FittedParts(estimator, survey, reader)


def _bring(reader: Reader, _index: int, tables: Iterable[pa.Table]) -> list[Any]:
    return list(reader.read(tables))
