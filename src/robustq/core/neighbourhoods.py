"""What is perturbed, and by how much: a ball, the parts of a model, and how the size is shared out.

A name says all three: ``tv`` (the paper's parts of each model), ``tv_all`` (every local mass
function), ``tv_joint`` (the joint mass function as a whole), ``tv_rows`` and ``tv_all_rows`` (sizes
by the rows behind each local mass function). ``idm`` is no ball: see `coupled`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

import numpy as np

from robustq.exceptions import InputError, UnknownNameError, UnsupportedError
from robustq.perturbations import Domain, Perturbation, get, names
from robustq.perturbations.forms import check_form

from .coupled import Coupled
from .evidence import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats

    from .evidence import Evidence, Model

__all__ = [
    "DEFAULT_PERTURBATIONS",
    "Bound",
    "Neighbourhood",
    "OnAtoms",
    "PerturbationLike",
    "Perturbed",
    "check_sizes",
    "read",
    "read_all",
]

DEFAULT_PERTURBATIONS: tuple[str, ...] = ("epsilon", "tv", "chi2")

ALL, JOINT, POSTERIOR, ROWS = "all", "joint", "posterior", "rows"
WHOLES = (JOINT, POSTERIOR)
FEATURE = "feature:"
IDM = "idm"

PerturbationLike: TypeAlias = "str | Perturbation | Neighbourhood"
PartsLike: TypeAlias = "str | Iterable[str] | None"


@dataclass(frozen=True)
class Neighbourhood:
    """A ball × the parts perturbed × how the size is shared out.

    Attributes
    ----------
    ball : Perturbation
    parts : None, "all", "joint", "posterior" or tuple of str
        None are the paper's; a tuple names parts, sorted, or features ("feature:age").
    sizes : {"equal", "rows"}
    coupled : bool
        Whether one and the same records change all local mass functions: the imprecise Dirichlet
        model, which is ε-contamination by rows where each has records of its own.
    """

    ball: Perturbation
    parts: str | tuple[str, ...] | None = None
    sizes: Literal["equal", "rows"] = "equal"
    coupled: bool = False

    @cached_property
    def name(self) -> str:
        """What it is called in tables."""
        if self.coupled:
            return IDM
        parts = ""
        if isinstance(self.parts, str):
            parts = f"_{self.parts}"
        elif self.parts is not None:
            parts = f"[{','.join(self.parts)}]"
        return f"{self.ball.name}{parts}{'_rows' if self.sizes == ROWS else ''}"

    @property
    def domain(self) -> Domain:
        """The sizes there are: any, where they count rows."""
        return self.ball.domain if self.sizes == "equal" else Domain()

    def bind(self, model: Model, features: Sequence[str]) -> Bound:
        """Return what this means for a model.

        Raises
        ------
        InputError
            If the model has no such part.
        UnsupportedError
            If it cannot be perturbed so; the message says why.
        """
        if self.coupled:
            return Coupled.of(model)
        if isinstance(self.parts, str) and self.parts in WHOLES:
            return self._bind_whole(model)
        every = model.locals.parts
        parts, columns = self._find_parts(model, tuple(features))
        chosen = np.isin(every, parts)
        counted = model.locals.counted
        if self.sizes == ROWS and not columns and not (chosen & counted).any():
            known = [part for part, has in zip(every, counted, strict=True) if has]
            msg = (
                f"{self.name}: sizes by rows need rows, and none were counted for "
                f"{', '.join(np.array(every)[chosen])}; "
                + (
                    f"this model has counts for {', '.join(known)}"
                    if known
                    else "this model has no counts at all (read from a file without them?): fit it "
                    'anew, or take sizes="equal"'
                )
            )
            raise UnsupportedError(msg)
        if self.sizes == ROWS and not counted.any():
            msg = f"{self.name}: sizes by rows need rows, and this model has no counts at all"
            raise UnsupportedError(msg)
        return Perturbed(self.ball, tuple(np.flatnonzero(chosen).tolist()), columns, self.sizes)

    def _find_parts(
        self, model: Model, features: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the parts that are perturbed, and the positions of features that are."""
        if self.parts is None:
            return model.default_parts, ()
        if self.parts == ALL:
            return model.locals.parts, ()
        return _read_parts(self.parts, model.locals.parts, features)

    def _bind_whole(self, model: Model) -> OnAtoms:
        if self.sizes == ROWS:
            msg = (
                f"{self.name}: one mass function as a whole has one size; sizes by rows are for "
                "parts: leave sizes out"
            )
            raise UnsupportedError(msg)
        if self.parts == JOINT and model.has_numbers:
            msg = (
                f"{self.name}: a column is a number, so p(c, f) is a density and no mass, and a "
                'ball around it means nothing: take parts="all", or make the column categorical'
            )
            raise UnsupportedError(msg)
        return OnAtoms(self.ball, joint=self.parts == JOINT)


def _read_parts(
    given: str | tuple[str, ...], every: tuple[str, ...], features: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return parts and the positions of features."""
    asked = (given,) if isinstance(given, str) else given
    parts = tuple(part for part in asked if not part.startswith(FEATURE))
    for part in parts:
        if part not in every:
            _refuse_part(part, (*every, ALL, *WHOLES))
    columns = []
    for part in asked:
        if part.startswith(FEATURE):
            name = part.removeprefix(FEATURE)
            if name not in features:
                _refuse_part(part, tuple(FEATURE + feature for feature in features))
            columns.append(features.index(name))
    return parts, tuple(sorted(columns))


def _refuse_part(part: str, known: tuple[str, ...]) -> None:
    near = difflib.get_close_matches(part, known, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    msg = f"this model has no part {part!r}; it has {shown}{hint}"
    raise UnknownNameError(msg)


@dataclass(frozen=True)
class Perturbed:
    """Some local mass functions of a model, each perturbed on its own.

    Attributes
    ----------
    ball : Perturbation
    parts : tuple of int
        Positions among the model's parts.
    features : tuple of int
        Features all of whose local mass functions are perturbed too.
    sizes : {"equal", "rows"}
    """

    ball: Perturbation
    parts: tuple[int, ...]
    features: tuple[int, ...]
    sizes: Literal["equal", "rows"]

    @cached_property
    def domain(self) -> Domain:
        """The sizes there are: any, where they count rows."""
        return self.ball.domain if self.sizes == "equal" else Domain()

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What tables made for it are kept under."""
        return (self.ball.key, self.parts, self.features, self.sizes)

    @cached_property
    def has_form(self) -> bool:
        """Whether kernels can take the ball's bounds; a form that is wrong is refused here."""
        if self.ball.form(np.array([0.5])) is None:
            return False
        check_form(self.ball)
        return True

    def mask(self, evidence: Evidence) -> Bools:
        """Tell which nodes have a probability that moves."""
        free = np.isin(evidence.part, self.parts)
        if self.features:
            free |= np.isin(evidence.feature, self.features) & (evidence.part != NONE)
        if self.sizes == ROWS:
            # Where nothing was counted, the local model stays as it is.
            free &= ~np.isnan(evidence.rows)
        return free

    def touches(self, parts: tuple[int, ...]) -> bool:
        """Tell whether one of some parts is perturbed as a whole."""
        return not set(parts).isdisjoint(self.parts)


@dataclass(frozen=True)
class OnAtoms:
    """One mass function, of the joint or of the class given the features, perturbed as a whole.

    Attributes
    ----------
    ball : Perturbation
    joint : bool
        Whether it is the joint one.
    """

    ball: Perturbation
    joint: bool

    @property
    def domain(self) -> Domain:
        """The sizes there are."""
        return self.ball.domain


Bound: TypeAlias = "Perturbed | OnAtoms | Coupled"


def check_sizes(bound: Bound, delta: ArrayLike, rows: int) -> Floats:
    """Return sizes, one for each row, or raise."""
    sizes = bound.domain.check(delta)
    if sizes.shape not in ((), (rows,)):
        msg = f"delta must be one size or one for each of {rows} rows, got {sizes.shape}"
        raise InputError(msg)
    return np.broadcast_to(sizes, rows)


def read(
    perturbation: PerturbationLike, parts: PartsLike = None, sizes: str | None = None
) -> Neighbourhood:
    """Return the neighbourhood of a name, a ball, or either with parts and sizes.

    Parameters
    ----------
    perturbation : str, Perturbation or Neighbourhood
        A ball's name may end in ``_all``, ``_joint`` or ``_posterior``, and in ``_rows``.
    parts : str or sequence of str, optional
    sizes : {"equal", "rows"}, optional

    Examples
    --------
    >>> read("tv_all_rows").name
    'tv_all_rows'
    >>> read("tv", parts=["prior"], sizes="rows").name
    'tv[prior]_rows'
    """
    named = _read_name(perturbation)
    if named.coupled and (parts, sizes) != (None, None):
        msg = "idm adds records to all of a model: leave parts and sizes out"
        raise InputError(msg)
    if parts is not None and named.parts is not None:
        msg = f"{named.name!r} says already what is perturbed: leave parts={parts!r} out"
        raise InputError(msg)
    if not (sizes is None or (isinstance(sizes, str) and sizes in ("equal", ROWS))):
        msg = f'sizes must be "equal" or "rows", got {sizes!r}'
        raise InputError(msg)
    if sizes == "equal" and named.sizes == ROWS:
        msg = f'{named.name!r} says already how sizes are shared out: leave sizes="equal" out'
        raise InputError(msg)
    return replace(
        named,
        parts=named.parts if parts is None else _read_given(parts),
        sizes="rows" if ROWS in (sizes, named.sizes) else "equal",
    )


def _read_given(parts: object) -> str | tuple[str, ...]:
    if isinstance(parts, str):
        return parts if parts in (ALL, *WHOLES) else (parts,)
    parts = list(parts) if _is_iterable(parts) else [parts]
    if not all(isinstance(part, str) for part in parts):
        msg = f'parts must be "all", "joint" or names of parts, got {parts!r}'
        raise InputError(msg)
    if not parts:
        msg = "parts must name at least one part"
        raise InputError(msg)
    if len(parts) > 1 and (wholes := {ALL, *WHOLES} & set(parts)):
        msg = f"parts={sorted(wholes)[0]!r} stands for itself: give it alone"
        raise InputError(msg)
    if parts[0] in (ALL, *WHOLES):
        return parts[0]
    return tuple(sorted(set(parts)))


def _is_iterable(given: object) -> TypeGuard[Iterable[Any]]:
    # An array without axes only looks like it.
    return isinstance(given, Iterable) and getattr(given, "ndim", 1) != 0


def _read_name(perturbation: PerturbationLike) -> Neighbourhood:
    if isinstance(perturbation, Neighbourhood):
        return perturbation
    if isinstance(perturbation, str) and perturbation == IDM:
        return Neighbourhood(get("epsilon"), sizes="rows", coupled=True)
    if not isinstance(perturbation, str) or perturbation in names():
        return Neighbourhood(get(perturbation))
    name, sizes, parts = perturbation, "equal", None
    if name.endswith("_rows"):
        name, sizes = name.removesuffix("_rows"), ROWS
    for ending in (ALL, *WHOLES):
        if name.endswith(f"_{ending}"):
            name, parts = name.removesuffix(f"_{ending}"), ending
    if name not in names():
        get(perturbation)  # raises, and tells what is known
    return Neighbourhood(get(name), parts, "rows" if sizes == ROWS else "equal")


def read_all(
    perturbations: PerturbationLike | Iterable[PerturbationLike],
    parts: PartsLike = None,
    sizes: str | None = None,
) -> list[Neighbourhood]:
    """Return several neighbourhoods, each named once."""
    if isinstance(perturbations, (str, Perturbation, Neighbourhood)):
        perturbations = [perturbations]
    if not _is_iterable(perturbations):
        msg = f"perturbations must be names or balls, got {perturbations!r}"
        raise InputError(msg)
    found = [read(perturbation, parts, sizes) for perturbation in perturbations]
    given = [neighbourhood.name for neighbourhood in found]
    if len(set(given)) < len(given):
        msg = f"each perturbation can be named once, got {', '.join(given)}"
        raise InputError(msg)
    return found
