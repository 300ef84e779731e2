"""Which features the predictions of a whole table hang on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .listing import Listing
from .words import clean, say_number, say_share

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

    from .explainer import Findings

__all__ = ["Summary"]


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Listing):
    """A line for each feature, the one that most predictions hang on first.

    Attributes
    ----------
    rows : int
        How many predictions there are.
    perturbation : str
    name : ndarray of str
    hanging : ndarray of int
        How many predictions hang on the feature: its local models flip them first.
    alone : ndarray
        The median size at which they do so, over all predictions.
    support : ndarray
        The mean of the support's magnitude, where it is finite.
    decided : ndarray of int
        How many predictions are others without it.
    """

    rows: int
    perturbation: str
    name: np.ndarray[Any, Any]
    hanging: Indices
    alone: Floats
    support: Floats
    decided: Indices

    @classmethod
    def of(cls, findings: Findings, rows: Indices) -> Summary:
        """Summarise what was found for some rows."""
        names, some = findings.names, findings.hangs_on[rows]
        hanging = np.bincount(some[some >= 0], minlength=len(names))
        support = np.abs(findings.support[:, rows])
        finite = np.isfinite(support)
        other = findings.without_prediction[:, rows] != findings.prediction[rows]
        sizes = np.nan_to_num(findings.alone[:, rows], nan=np.inf, posinf=np.inf)
        alone = np.sort(sizes, axis=1)[:, max(len(rows) - 1, 0) // 2]
        means = np.where(finite, support, 0.0).sum(axis=1) / np.maximum(finite.sum(axis=1), 1)
        order = np.lexsort((alone, -hanging))
        return cls(
            *(len(rows), findings.name, np.array(names, dtype=object)[order], hanging[order]),
            *(alone[order], means[order]),
            (other & findings.possible[:, rows]).sum(axis=1)[order],
        )

    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name."""
        return {
            "feature": self.name,
            "hanging": self.hanging,
            "alone": self.alone,
            "support": self.support,
            "decided": self.decided,
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw how many predictions hang on each feature.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default new ones of pyplot.

        Returns
        -------
        matplotlib Axes
        """
        from .plots import plot_summary  # noqa: PLC0415 (matplotlib is slow to import)

        return plot_summary(self, ax)

    @property
    def title(self) -> str:
        """What the table is about."""
        return f"What {self.rows:,} predictions hang on ({self.perturbation})"

    def cells(self) -> dict[str, list[str]]:
        """Return the features as columns of text."""
        rows = max(self.rows, 1)
        return {
            "feature": [clean(name) for name in self.name],
            "hang on it": [say_share(count / rows, 1) for count in self.hanging],
            "median alone": [say_number(size) for size in self.alone],
            "mean support": [say_number(size) for size in self.support],
            "others without it": [say_share(count / rows, 1) for count in self.decided],
        }
