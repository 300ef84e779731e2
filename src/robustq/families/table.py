"""The families there are: what files know of each, and what the command knows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from robustq.exceptions import UnknownNameError

from . import naive_bayes
from .circuit import classifier as circuit
from .forest import classifier as forest

if TYPE_CHECKING:
    from .base import GenerativeClassifier
    from .kinds import Kind, Recipe

__all__ = ["KINDS", "RECIPES", "find_kind", "find_recipe", "recipe_of"]

FAMILIES: tuple[Any, ...] = (naive_bayes, forest, circuit)
KINDS: dict[str, Kind] = {family.KIND.name: family.KIND for family in FAMILIES}
# A family that does not learn has no recipe.
RECIPES: dict[str, Recipe] = {
    family.RECIPE.name: family.RECIPE for family in FAMILIES if hasattr(family, "RECIPE")
}


def find_recipe(name: str) -> Recipe:
    """Return the recipe of a name, or of one of its aliases.

    Raises
    ------
    UnknownNameError
    """
    for recipe in RECIPES.values():
        if name in (recipe.name, *recipe.aliases):
            return recipe
    known = [alias for recipe in RECIPES.values() for alias in (recipe.name, *recipe.aliases)]
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    msg = f"unknown model {name!r}; known are {', '.join(known)}{hint}"
    raise UnknownNameError(msg)


def recipe_of(classifier: GenerativeClassifier) -> Recipe | None:
    """Return the recipe that makes such a classifier, if there is one."""
    for recipe in RECIPES.values():
        if isinstance(classifier, recipe.estimator):
            return recipe
    return None


def find_kind(estimator: type[GenerativeClassifier]) -> Kind | None:
    """Return the kind of model that an estimator, or a class it derives from, holds."""
    for kind in KINDS.values():
        if issubclass(estimator, kind.estimators):
            return kind
    return None
