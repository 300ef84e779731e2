"""Why a prediction is fragile, and what would change it: what all classifiers can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from robustq.core.neighbourhoods import read
from robustq.exceptions import InputError

from .fitted import FittedModel
from .parameters import is_count, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robustq.arrays import Indices
    from robustq.core.neighbourhoods import Bound, Neighbourhood, PerturbationLike
    from robustq.explaining.counterfactuals import Counterfactuals
    from robustq.explaining.explainer import Findings
    from robustq.explaining.explanation import Explanations
    from robustq.explaining.summary import Summary
    from robustq.explaining.words import Words
    from robustq.tables import Rows

__all__ = ["ExplainedModel"]


class ExplainedModel(FittedModel):
    """Explanations, witnesses and counterfactuals."""

    def explain(
        self,
        X: Any,
        perturbation: PerturbationLike = "tv",
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Explanations:
        """Return for each row what its prediction hangs on, and the nearest model that disagrees.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation
        parts, sizes : optional
            As in `robustness`.

        Returns
        -------
        Explanations
            A sequence, with a `summary` of all rows; see `Explanation` for what is in each.
        """
        from robustq.explaining.explanation import Explanations  # noqa: PLC0415 (only where asked)

        return Explanations(self._look_into(X, read(perturbation, parts, sizes)))

    def _summarise(self, X: Any, neighbourhood: Neighbourhood) -> Summary:
        """Return the summary of `explain`, without the rest."""
        found = self._look_into(X, neighbourhood, brief=True)
        return found.summarise(np.arange(found.table.rows))

    def _look_into(self, X: Any, neighbourhood: Neighbourhood, *, brief: bool = False) -> Findings:
        from robustq.explaining.explainer import Findings  # noqa: PLC0415 (only where asked for)

        table = self._arrange(X)
        self._bind([neighbourhood])
        found = Findings.empty(self.model_, self._words(), table, neighbourhood, brief=brief)
        self._report_unknown(table, self._for_each_block(table, found.fill))
        return found

    def find_hanging(self, X: Any, perturbation: PerturbationLike = "tv") -> Indices:
        """Return the position of the feature that each prediction hangs on, −1 if there is none.

        It is what `explain` tells, without the rest; says nothing of values never seen.
        """
        from robustq.explaining.explainer import find_hanging  # noqa: PLC0415 (only where asked for)

        table, neighbourhood = self._arrange(X), read(perturbation)
        out = np.empty(table.rows, dtype=np.int64)

        def work(block: slice, rows: Rows) -> None:
            out[block] = find_hanging(self.model_, rows, neighbourhood, self.encoding_)

        self._for_each_block(table, work)
        return out

    def witness(
        self,
        X: Any,
        perturbation: PerturbationLike = "tv",
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Self:
        """Return the nearest model of the same kind that no longer prefers the prediction of a row.

        Each of its local mass functions lies in the ball around the model's own, of the size that
        `robustness` gives; the tipping class is at least as probable as the prediction, up to
        rounding: it ties, or flips.

        Parameters
        ----------
        X : frame or array of shape (1, features)
        perturbation : str or Perturbation
        parts, sizes : optional
            As in `robustness`.

        Returns
        -------
        GenerativeClassifier
            Fitted; it can be saved, scored and explained.

        Raises
        ------
        UnsupportedError
            If nothing flips the prediction, or no model of the same kind does.
        """
        from .witnesses import make_witness  # noqa: PLC0415 (it knows all classifiers)

        neighbourhood = read(perturbation, parts, sizes)
        (bound,) = self._bind_fitted([neighbourhood])
        return make_witness(self, self._encode_one(X), bound, neighbourhood.name)

    def counterfactuals(
        self,
        X: Any,
        perturbation: PerturbationLike = "tv",
        *,
        max_changes: int = 2,
        limit: int | None = 20,
        change: Sequence[str | int] | None = None,
        keep: Sequence[str | int] | None = None,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Counterfactuals:
        """Return the smallest changes of values that flip the prediction of a row.

        Parameters
        ----------
        X : frame or array of shape (1, features)
        perturbation : str or Perturbation
            What the robustness of the new predictions is measured by.
        max_changes : int, default 2
            How many cells may change. All changes of one and two cells are tried; of more, some:
            `note` and `exhaustive` of the result say so.
        limit : int, optional
            How many to return at most; None for all.
        change, keep : sequence of str or int, optional
            Columns that may change, by default all; and columns that may not.
        parts, sizes : optional
            As in `robustness`.

        Returns
        -------
        Counterfactuals
            The fewest changes first, then those whose result is most robust. Numbers change among
            the bins and thresholds that the model knows.
        """
        from robustq.explaining.counterfactuals import Search, choose_columns  # noqa: PLC0415

        require("max_changes", max_changes, is_count(max_changes, 1), "at least 1")
        require("limit", limit, limit is None or is_count(limit, 1), "at least 1, or None")
        (bound,) = self._bind_fitted([read(perturbation, parts, sizes)])
        columns = choose_columns(self.encoding_, change, keep)
        row = self._encode_one(X)
        search = Search(self.model_, self.encoding_, self.classes_, row, bound, columns)
        return search.find(int(max_changes), None if limit is None else int(limit))

    def _words(self) -> Words:
        from robustq.explaining.words import Words  # noqa: PLC0415 (only where asked for)

        target = getattr(self, "training_", {}).get("target", "class")
        return Words(self.encoding_, self.classes_, str(target))

    def _bind_fitted(self, neighbourhoods: Sequence[Neighbourhood]) -> list[Bound]:
        self._require_fitted()
        return self._bind(neighbourhoods)

    def _encode_one(self, X: Any) -> Rows:
        """Return the one row of a table."""
        table = self._arrange(X)
        if table.rows != 1:
            msg = f"X must be a table of one row, got {table.rows:,}: as in X.iloc[[0]] or X[:1]"
            raise InputError(msg)
        rows: list[Rows] = []
        unknown = self._for_each_block(table, lambda _, block: rows.append(block))
        self._report_unknown(table, unknown)
        return rows[0]
