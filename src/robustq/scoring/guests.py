"""Classifiers from somebody's own code, asked about tables of files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from robustq.exceptions import InputError
from robustq.families.base import GenerativeClassifier
from robustq.families.files import load
from robustq.families.functions import find_subject
from robustq.io import infer_types, require_columns
from robustq.io.adapting import adapt_numbers
from robustq.perturbations.importing import import_object
from robustq.tables.frames import as_pandas
from robustq.tables.table import join_chunks
from robustq.tables.texts import is_text, mark_gaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.core.neighbourhoods import Neighbourhood
    from robustq.core.quantified import Quantified

__all__ = ["Guest", "find_model", "names_object"]

OBJECT = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"
PICKLES = (".pkl", ".pickle", ".joblib", ".sav")


def find_model(name: str) -> Any:
    """Return the classifier in a model file, or the fitted one that `module:object` names.

    To import a module runs the code in it. A pickle, which runs code too, is never opened here.

    Raises
    ------
    FileError, InputError
        If there is none.
    """
    if not names_object(name):
        if Path(name).suffix.lower() in PICKLES:
            msg = (
                f"{name}: robustq opens no pickles, because they run code: write a module that "
                "loads it, as in model = joblib.load(…), and name it as module:model"
            )
            raise InputError(msg)
        return load(name)
    estimator = import_object(name, "module:object, a fitted classifier in a module of yours")
    if isinstance(estimator, type) or not hasattr(estimator, "predict"):
        msg = f"{name} is {_say(estimator)}: name a fitted classifier, with predict_proba"
        raise InputError(msg)
    return estimator if isinstance(estimator, GenerativeClassifier) else Guest(estimator)


def names_object(name: str) -> bool:
    """Tell whether a name is that of an object in a module, not of a file."""
    return re.fullmatch(OBJECT, name) is not None and not Path(name).exists()


def _say(thing: Any) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"a {type(thing).__name__}"


@dataclass(eq=False)
class Guest:
    """A fitted classifier that takes frames, and here Arrow tables, of text where they are files.

    Columns of text become numbers if all of the first rows are, and then must stay so.

    Attributes
    ----------
    estimator : estimator
    """

    estimator: Any
    cautions: ClassVar[tuple[str, ...]] = ()  # nothing is known of how it was made
    _numeric: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.subject, self._transform = find_subject(self.estimator)
        self.kind = type(self.estimator).__name__
        self.training_: dict[str, Any] = {}

    @property
    def is_ours(self) -> bool:
        """Whether a model of ours is inside, and more is known of it than its probabilities."""
        return isinstance(self.subject, GenerativeClassifier)

    @property
    def classes_(self) -> np.ndarray[Any, Any]:
        """The labels."""
        return self.subject.classes_

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that can be perturbed."""
        return self.subject.parts

    @property
    def default_parts(self) -> tuple[str, ...]:
        """Those that are, where nobody says otherwise."""
        if isinstance(self.subject, GenerativeClassifier):
            return tuple(self.subject.model_.default_parts)
        return self.parts[:1]

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """The columns it was fitted on, if it knows."""
        for attribute in ("feature_names_in_", "feature_names_", "feature_name_"):
            names = getattr(self.estimator, attribute, None)
            if names is not None and len(names):
                return tuple(map(str, names))
        return None

    def check(self, neighbourhood: Neighbourhood) -> None:
        """Raise if the classifier cannot be perturbed so; the message says why."""
        if isinstance(self.subject, GenerativeClassifier):
            neighbourhood.bind(self.subject.model_, self.subject.encoding_.names)
        else:
            self.subject.check(neighbourhood)

    def list_needed(self, names: Sequence[str], where: str) -> tuple[str, ...]:
        """Return the columns of a table that it needs; all of them where it knows no names."""
        if self.names is not None:
            require_columns(self.names, names, where, f"which {self.kind} was fitted with")
            return self.names
        width = getattr(self.estimator, "n_features_in_", len(names))
        if width != len(names):
            msg = (
                f"{where} has {len(names)} columns, and {self.kind} was fitted with {width}, "
                "without names: fit it on a frame, so that columns can be found, or give these only"
            )
            raise InputError(msg)
        return tuple(names)

    # Tables

    def adapt(self, table: pa.Table) -> Any:
        """Return what the estimator takes: a frame, or an array if it was fitted on one."""
        names = self.names or tuple(table.column_names)
        columns = {name: _as_array(self._read(table[name], name)) for name in names}
        if self.names is None:
            return np.column_stack(list(columns.values()))
        return as_pandas(columns)

    def quantify(
        self, X: Any, neighbourhoods: Sequence[Neighbourhood]
    ) -> tuple[Quantified, dict[str, int], int]:
        """Return predictions and their robustness, and how many values were never seen.

        And in how many rows `predict` says another class than the most probable one.
        """
        if isinstance(self.subject, GenerativeClassifier):
            return *self.subject.count_and_quantify(self._transform(X), neighbourhoods), 0
        found, others = self.subject.quantify_and_count(X, neighbourhoods)
        return found, {}, others

    def _read(self, column: pa.ChunkedArray, name: str) -> Any:
        if not is_text(column.type):
            return column
        if name in self._numeric:
            return adapt_numbers(column, name) if self._numeric[name] else mark_gaps(column)
        found = infer_types(pa.table({name: column}))[0][name]
        if found.null_count < len(found):
            self._numeric[name] = not is_text(found.type)
            return found
        # Nothing but gaps: those of numbers and of text are the same, and later rows tell.
        return pa.nulls(len(found), pa.float64())


def _as_array(column: Any) -> np.ndarray[Any, Any]:
    """Return a column as pandas would read it: missing values are NaN, of text too."""
    column = join_chunks(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    array = column.to_numpy(zero_copy_only=False)
    if array.dtype == object:
        array = np.where(np.asarray(column.is_null()), np.nan, array)
    return array
