"""Explanations of predictions: what a prediction hangs on, and the nearest model that disagrees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from robustq.exceptions import PositionError
from robustq.tables.display import as_html, as_text, show_value
from robustq.texts import make_visible

from .words import clean, say_number, say_share, say_shares, say_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats
    from robustq.core.evidence import About
    from robustq.core.witness import Move

    from .explainer import Findings
    from .posteriors import Outcome, PosteriorFindings, Turns
    from .summary import Summary
    from .words import Told

__all__ = ["Change", "Explanation", "Explanations", "Feature", "Without"]

SHOWN = 10


class Without(NamedTuple):
    """What becomes of a prediction when a cell is missing."""

    prediction: Any
    robustness: float


class Feature(NamedTuple):
    """What one feature does to a prediction.

    Attributes
    ----------
    name : str
    value : Any
        As it stands in the table; None where it is missing.
    support : float
        By how much it raises the log-odds of the prediction against the tipping class: with the
        cell present, minus with it summed out. Negative if it speaks for the other one.
    alone : float or None
        The size at which its own local models, and no others, flip the prediction; infinite
        if they never do. The prediction hangs on the feature where that is smallest. None where
        the structure of the model gives no exact answer.
    without : Without or None
        Prediction and robustness with the cell missing; None where the structure of the model
        cannot do without it.
    """

    name: str
    value: Any
    support: float
    alone: float | None
    without: Without | None


@dataclass(frozen=True, eq=False, repr=False)
class Change:
    """A local mass function of the witness, beside the model's own.

    Attributes
    ----------
    before, after : ndarray
        The probabilities of its outcomes.
    part : str
        Of the model.
    outcome : int
        The position of the outcome to look at: what was observed, or what moves most.
    size : float
        How much probability moves.
    """

    before: Floats
    after: Floats
    part: str
    outcome: int
    size: float
    _tell: Callable[[], Told]

    @property
    def about(self) -> About:
        """What it is about, as the model tells."""
        return self._tell().about

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The outcomes, in words."""
        return self._tell().outcomes

    @property
    def what(self) -> str:
        """What it is the probability of, and given what."""
        told = self._tell()
        return f"{told.outcomes[self.outcome]}{told.given and f' {told.given}'}"

    @property
    def shares(self) -> str:
        """The probability of the outcome before and after, in percent."""
        return say_shares(float(self.before[self.outcome]), float(self.after[self.outcome]))

    def __repr__(self) -> str:
        return f"{self.what}: {self.shares}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "text": repr(self),
            "part": self.part,
            "outcomes": list(self.outcomes),
            "outcome": self.outcome,
            "before": self.before.tolist(),
            "after": self.after.tolist(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why one prediction is as robust as it is, and no more.

    Attributes
    ----------
    prediction, tipping_class : Any
        Labels; the tipping class is None where nothing flips the prediction.
    probability, robustness : float
    perturbation : str
        What the robustness is measured by.
    features : tuple of Feature
        In the order of the table; none where only a posterior is known.
    """

    prediction: Any
    probability: float
    tipping_class: Any
    robustness: float
    perturbation: str
    features: tuple[Feature, ...]
    _findings: Findings | PosteriorFindings
    _row: int

    @property
    def changes(self) -> tuple[Change, ...]:
        """The nearest model that disagrees: what is different in it, the largest change first.

        Empty where nothing flips the prediction, where nothing needs to (a tie), and where there
        is no such model: `note` says why.
        """
        moves, _ = self._findings.moves(self._row)
        return tuple(map(self._describe, moves))

    @cached_property
    def records(self) -> float | None:
        """How many training records, added to the data, can flip it; None where nobody knows.

        A whole number, or infinite.
        """
        return self._findings.count_records(self._row)

    @property
    def note(self) -> str:
        """Why there are no changes, where there are none."""
        if self.tipping_class is None:
            return "nothing in this neighbourhood flips the prediction"
        return self._findings.moves(self._row)[1]

    def _describe(self, move: Move) -> Change:
        outcome = move.outcome
        if outcome < 0:
            outcome = int(np.abs(move.after - move.before).argmax())
        return Change(
            *(move.before, move.after, self._findings.part_of(move), outcome, move.distance),
            lambda: self._findings.tell(move),
        )

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The classes, the most probable first, where only a posterior is known; none elsewhere."""
        return self._findings.list_outcomes(self._row)

    @property
    def hangs_on(self) -> str | None:
        """The feature whose local models flip the prediction first; None if none does."""
        feature = self._findings.hangs_on[self._row]
        return None if feature < 0 else self.features[feature].name

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        outcomes = [{**one._asdict(), "label": _plain(one.label)} for one in self.outcomes]
        return {
            "prediction": _plain(self.prediction),
            "probability": self.probability,
            "tipping_class": _plain(self.tipping_class),
            "robustness": self.robustness,
            "perturbation": self.perturbation,
            "hangs_on": self.hangs_on,
            "features": [_describe_feature(feature) for feature in self.features],
            "changes": [change.to_dict() for change in self.changes],
            "records": self.records,
            "note": self.note,
            "outcomes": outcomes,
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw what speaks for and against the prediction, and what it hangs on.

        Of a posterior: the classes, and the nearest posterior that disagrees.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default new ones of pyplot.

        Returns
        -------
        matplotlib Axes
        """
        from .plots import plot_explanation, plot_posterior  # noqa: PLC0415 (matplotlib is slow)

        return plot_posterior(self, ax) if self.outcomes else plot_explanation(self, ax)

    # To be looked at

    @property
    def title(self) -> str:
        """The prediction and what flips it, in a sentence."""
        target = clean(self._findings.target)
        told = f"{target} = {clean(self.prediction)} ({say_share(self.probability, 1)})"
        if self.tipping_class is None:
            return f"{told}: no perturbation ({self.perturbation}) flips it"
        rival, size = clean(self.tipping_class), say_number(self.robustness)
        if self.robustness == 0.0:
            return f"{told}: a tie with {rival}"
        return f"{told}: flips to {rival} at {self.perturbation} {size}"

    @property
    def story(self) -> list[str]:
        """What else is to be said, in sentences."""
        told = []
        if self.hangs_on is not None:
            alone = min(f.alone for f in self.features if f.alone is not None)
            told.append(
                f"It hangs on {clean(self.hangs_on)}: alone it flips at {say_number(alone)}."
            )
        if self.records is not None and math.isfinite(self.records):
            told.append(f"{_say_records(int(self.records))} could flip it.")
        return told

    def cells(self) -> dict[str, list[str]]:
        """Return the features as columns of text, or the classes of a posterior."""
        if self.outcomes:
            return self._outcome_cells()
        lost = [
            "–" if f.without is None else f"{clean(f.without.prediction)}" for f in self.features
        ]
        left = [
            "–" if f.without is None else say_number(f.without.robustness) for f in self.features
        ]
        return {
            "feature": [clean(f.name) for f in self.features],
            "value": [say_value(f.value) for f in self.features],
            "support": [f"{round(f.support, 2) + 0.0:+.2f}" for f in self.features],
            "alone": ["–" if f.alone is None else say_number(f.alone) for f in self.features],
            "without it": lost,
            "robustness": left,
        }

    def _outcome_cells(self) -> dict[str, list[str]]:
        shown, target = self.outcomes[:SHOWN], clean(self._findings.target)
        alone = ["" if one.alone is None else say_number(one.alone) for one in shown]
        nearest = ["" if one.nearest is None else say_share(one.nearest, 1) for one in shown]
        return {
            target: [clean(one.label) for one in shown],
            "probability": [say_share(one.probability, 1) for one in shown],
            **({"catches up at": alone} if any(alone) else {}),
            **({"nearest that disagrees": nearest} if any(nearest) else {}),
        }

    def __repr__(self) -> str:
        changes, more = self._shown_changes()
        lines = [self.title, *self.story, "", as_text(self.cells())]
        if changes:
            lines += ["", "The nearest model that disagrees:", *(f"  {c!r}" for c in changes)]
            lines += [f"  … {more:,} more"] if more else []
        elif self.note:
            lines += ["", self.note[0].upper() + self.note[1:]]
        return "\n".join(lines)

    def _shown_changes(self) -> tuple[tuple[Change, ...], int]:
        """Return those to be shown, and how many more there are."""
        # What becomes of a posterior stands in its table already.
        changes = () if self.outcomes else self.changes
        return changes[:SHOWN], max(len(changes) - SHOWN, 0)

    def _repr_html_(self) -> str:
        changes, more = self._shown_changes()
        page = as_html(". ".join([self.title, *self.story]), self.cells())
        if changes:
            table = {
                "the nearest model that disagrees": [change.what for change in changes],
                "probability": [change.shares for change in changes],
            }
            page += as_html("", table, f"… {more:,} more" if more else "")
        return page


def _say_records(count: int) -> str:
    words = ("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
    number = words[count - 1] if count <= len(words) else f"{count:,}"
    return f"{number} more training record{'' if count == 1 else 's'}"


def _describe_feature(feature: Feature) -> dict[str, Any]:
    lost = feature.without
    return {
        "name": feature.name,
        "value": _plain(feature.value),
        "support": feature.support,
        "alone": feature.alone,
        "without": None
        if lost is None
        else {"prediction": _plain(lost.prediction), "robustness": lost.robustness},
    }


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


class Explanations(Sequence[Explanation]):
    """One explanation for each row; a slice gives those of some rows.

    Parameters
    ----------
    findings : Findings
        What was computed, for all rows at once.
    rows : sequence of int, optional
        Which rows these are.
    """

    def __init__(
        self, findings: Findings | PosteriorFindings, rows: Sequence[int] | None = None
    ) -> None:
        self._findings = findings
        self._rows = range(len(findings.prediction)) if rows is None else rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, row: int) -> Explanation: ...
    @overload
    def __getitem__(self, row: slice) -> Explanations: ...
    def __getitem__(self, row: int | slice) -> Explanation | Explanations:
        if isinstance(row, slice):
            return Explanations(self._findings, self._rows[row])
        try:
            return self._findings.explain(self._rows[row])
        except IndexError:
            msg = f"there is no row {row}: {len(self):,} rows were explained"
            raise PositionError(msg) from None

    @property
    def hangs_on(self) -> np.ndarray[Any, Any]:
        """For each row the feature whose local models flip it first, None where none does."""
        names = np.array([*self._findings.names, None], dtype=object)
        return names[self._findings.hangs_on[list(self._rows)]]

    def summary(self) -> Summary | Turns:
        """Return which features the predictions hang on, over all rows.

        Where only posteriors are known: which classes they would turn into.
        """
        return self._findings.summarise(np.array(self._rows, dtype=np.int64))

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain data, an entry for each row."""
        return [explanation.to_dict() for explanation in self]

    def plot(self, ax: Any = None) -> Any:
        """Draw the one prediction there is, or which features many hang on."""
        return self[0].plot(ax) if len(self) == 1 else self.summary().plot(ax)

    def _cells(self) -> dict[str, list[str]]:
        shown = self[:SHOWN]
        return {
            "prediction": [clean(e.prediction) for e in shown],
            "probability": [say_number(e.probability) for e in shown],
            f"robustness_{self._findings.name}": [say_number(e.robustness) for e in shown],
            "flips to": [clean(show_value(e.tipping_class)) for e in shown],
            "hangs on": [clean(show_value(e.hangs_on)) for e in shown],
        }

    @property
    def _title(self) -> str:
        return f"Explanations of {len(self):,} predictions"

    @property
    def _more(self) -> str:
        return f"… {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""

    def __repr__(self) -> str:
        if len(self) == 1:
            return repr(self[0])
        return "\n".join(filter(None, [self._title, as_text(self._cells()), self._more]))

    def _repr_html_(self) -> str:
        if len(self) == 1:
            return self[0]._repr_html_()
        return make_visible(as_html(self._title, self._cells(), self._more))
