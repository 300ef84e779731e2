"""Which indicators to show of a model where nobody chose, and what to say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import table

if TYPE_CHECKING:
    from robustq.families.base import GenerativeClassifier

__all__ = ["PAPER", "REMARK", "list_single", "list_wider"]

PAPER = ("r_epsilon", "r_tv", "r_chi2")
WIDER = ("r_epsilon_all", "r_tv_all")
REMARK = (
    "r_…_all perturbs everything in a model; the paper perturbs all of naive Bayes, and of forests "
    "the weights alone. With everything perturbed a forest's robustness mostly ranks better than "
    "with weights alone; against a plain margin (u_marg) it wins where leaves are barely smoothed, "
    "and not where the model is well estimated. Your own data decides."
)


def list_wider(classifier: GenerativeClassifier) -> tuple[str, ...]:
    """Return the robustness with everything perturbed, where the paper perturbs less than that."""
    everything = set(classifier.parts) <= set(classifier.model_.default_parts)
    return () if everything else WIDER


def list_single(classifier: GenerativeClassifier) -> tuple[str, ...]:
    """Return what can be told of a classifier without others beside it, the robustness first."""
    single = [name for name in table.names() if table.get(name).needs != "ensemble"]
    ours = [name for name in single if table.get(name).needs == "robustness"]
    return (*ours, *list_wider(classifier), *(name for name in single if name not in ours))
