"""scikit-learn's naive Bayes for categories and truth values, as a document of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.naive_bayes import BernoulliNB, CategoricalNB

from robustq.documents.documents import FORMAT, VERSION
from robustq.exceptions import InputError
from robustq.families.fitted import NotFittedError

__all__ = ["describe"]


def describe(estimator: Any) -> dict[str, Any]:
    """Return what a fitted CategoricalNB or BernoulliNB has learned, as `from_dict` reads it."""
    if not isinstance(estimator, (CategoricalNB, BernoulliNB)):
        msg = f"expected a CategoricalNB or BernoulliNB of scikit-learn, got {_say(estimator)}"
        raise InputError(msg)
    if not hasattr(estimator, "feature_log_prob_"):
        msg = f"this {type(estimator).__name__} is not fitted yet: call its fit first"
        raise NotFittedError(msg)
    tell = _tell_categories if isinstance(estimator, CategoricalNB) else _tell_truth
    kinds, probs, rows = tell(estimator)
    names = getattr(estimator, "feature_names_in_", range(len(kinds)))
    given = estimator.class_prior is not None or not estimator.fit_prior
    prior = np.exp(estimator.class_log_prior_)
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": "naive_bayes",
        "classes": estimator.classes_.tolist(),
        "named": hasattr(estimator, "feature_names_in_"),
        "features": [{"name": str(name), **kind} for name, kind in zip(names, kinds, strict=True)],
        "class_probs": (prior / prior.sum()).tolist(),
        "feature_probs": [(table / table.sum(axis=1)[:, None]).tolist() for table in probs],
        "rows": {
            "prior": None if given else float(estimator.class_count_.sum()),
            "features": [counts.tolist() for counts in rows],
        },
    }


def _tell_categories(estimator: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return categories, p(category | class) and how many rows of each class, for each feature."""
    kinds = [{"categories": list(range(size))} for size in map(int, estimator.n_categories_)]
    probs = [np.exp(table) for table in estimator.feature_log_prob_]
    return kinds, probs, [counts.sum(axis=1) for counts in estimator.category_count_]


def _tell_truth(estimator: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the same of features that are true or not: above a threshold, if there is one."""
    edge = estimator.binarize
    kind = {"categories": [0, 1]} if edge is None else {"edges": [float(edge)]}
    logs = estimator.feature_log_prob_.T
    probs = [np.stack([-np.expm1(log), np.exp(log)], axis=1) for log in logs]
    return [kind] * len(logs), probs, [estimator.class_count_] * len(logs)


def _say(given: Any) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
