"""What a family tells: what files know of its models, the command of its estimator."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from robustq.exceptions import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from robustq.tables import Encoding

    from .base import GenerativeClassifier

__all__ = ["Kind", "Option", "Recipe"]


@dataclass(frozen=True)
class Kind:
    """What files and documents know of a model.

    Attributes
    ----------
    name : str
    arrays : dict of str to dtype
        The arrays of a model file.
    unpack : callable
        Takes a model; returns its arrays by name.
    pack : callable
        Takes arrays (perhaps of an older version), the encoding and how many classes there are;
        returns the model, checked: nothing in a file is believed.
    write : callable
        Takes a model; returns what a document holds beside its header.
    read : callable
        Takes a document, the encoding and how many classes there are; returns the model, checked.
    estimators : tuple of types
        Whose instances may hold such a model, the usual one first.
    optional : tuple of str
        Arrays that older files lack.
    renamed : dict of str to str
        What arrays were called in older files.
    model : type
        Of which class such models are, where an estimator may hold several kinds.
    """

    name: str
    arrays: Mapping[str, Any]
    unpack: Callable[[Any], dict[str, np.ndarray[Any, Any]]]
    pack: Callable[[dict[str, np.ndarray[Any, Any]], Encoding, int], Any]
    write: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any], Encoding, int], Any]
    estimators: tuple[type[GenerativeClassifier], ...]
    optional: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    model: type = object


@dataclass(frozen=True)
class Option:
    """A parameter that has an option of its own in the command.

    Attributes
    ----------
    parameter : str
        Of the estimator.
    default : Any
        What the command takes where nothing is said; None leaves it to the estimator.
    """

    parameter: str
    default: Any = None


@dataclass(frozen=True)
class Recipe:
    """What the command and experiments know of an estimator.

    Attributes
    ----------
    name : str
        What it is called in plans, files and tables.
    aliases : tuple of str
        Other names for it.
    title : str
        In words.
    estimator : type
    options : dict of str to Option
        Options of the command that it understands: smoothing, bins, trees, max_depth.
    paper : callable, optional
        Takes a plan; returns the parameters of the paper's experiments. None if the paper does not
        have it: then it is run with its defaults, and only where it is asked for.
    describe : callable
        Takes a fitted estimator; returns facts for `inspect`, as pairs of words and values.
    refit : callable
        Takes a fitted estimator; returns parameters that its bootstrap copies share.
    cost : float
        How long an experiment takes, relative to others.
    fixed : dict of str to Any
        Parameters that make it this recipe, where several have one estimator.
    """

    name: str
    aliases: tuple[str, ...]
    title: str
    estimator: type[GenerativeClassifier]
    options: Mapping[str, Option] = field(default_factory=dict)
    paper: Callable[[Any], dict[str, Any]] | None = None
    describe: Callable[[Any], list[tuple[str, str]]] = lambda _: []
    refit: Callable[[Any], dict[str, Any]] = lambda _: {}
    cost: float = 1.0
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def preset(self, plan: Any) -> dict[str, Any]:
        """Return the parameters that an experiment gives the estimator."""
        return {} if self.paper is None else self.paper(plan)

    def make(self, parameters: Mapping[str, Any], seed: int | None = None) -> GenerativeClassifier:
        """Return an estimator with these parameters; the seed goes to those that take one.

        Raises
        ------
        UnknownNameError
            If it has no such parameter.
        """
        known = self.estimator().get_params(deep=False)
        for name in parameters:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                msg = f"{self.title} has no parameter {name!r}; it has {', '.join(known)}{hint}"
                raise UnknownNameError(msg)
            if name in self.fixed:
                msg = f"{self.title} is {name}={self.fixed[name]!r} already: leave {name} out"
                raise InputError(msg)
        seeded = seed is not None and "random_state" in known
        given = {"random_state": seed} if seeded else {}
        return self.estimator(**{**given, **self.fixed, **parameters})

    def makes(self, classifier: GenerativeClassifier) -> bool:
        """Tell whether a classifier is one of these."""
        if not isinstance(classifier, self.estimator):
            return False
        have = classifier.get_params(deep=False)
        return all(_equal(have.get(name), value) for name, value in self.fixed.items())


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
