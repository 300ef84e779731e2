"""Which indicators to show of a model where nobody chose, and what to say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PAPER", "REMARK", "list_single", "list_wider", "remark_on"]

PAPER = ("r_epsilon", "r_tv", "r_chi2")
WIDER = ("r_epsilon_all", "r_tv_all")
REMARK = (
    "r_…_all perturbs everything in a model; the paper perturbs all of naive Bayes, and of forests "
    "the weights alone. With everything perturbed a forest's robustness mostly ranks better than "
    "with weights alone; against a plain margin (u_marg) it wins where leaves are barely smoothed, "
    "and not where the model is well estimated. Your own data decides."
)

POSTERIOR_REMARK = (
    "r_… perturbs the posterior of a classifier that is none of robustq's: what it may be wrong "
    "about inside is not asked. With two classes all of them order predictions as the margin does."
)
VOTES_REMARK = "r_…_all perturbs the leaves and the weights of the trees of a forest as it is."


def remark_on(classifier: Any, names: Iterable[str]) -> list[str]:
    """Return what is to be said of indicators of a classifier."""
    wider = bool(set(list_wider(classifier)) & set(names))
    if "posterior" in classifier.parts:
        return [POSTERIOR_REMARK, *([VOTES_REMARK] if wider else [])]
    return [REMARK] if wider else []


def list_wider(classifier: Any) -> tuple[str, ...]:
    """Return the robustness with everything perturbed, where the paper perturbs less than that."""
    usual = getattr(classifier, "default_parts", None) or classifier.model_.default_parts
    everything = set(classifier.parts) <= set(usual)
    return () if everything else WIDER


def list_single(classifier: Any) -> tuple[str, ...]:
    """Return what can be told of a classifier without others beside it, the robustness first."""
    single = [name for name in table.names() if table.get(name).needs != "ensemble"]
    ours = [name for name in single if table.get(name).needs == "robustness"]
    return (*ours, *list_wider(classifier), *(name for name in single if name not in ours))
