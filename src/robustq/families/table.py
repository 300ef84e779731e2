"""The families there are: what files know of each, and what the command knows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from robustq.exceptions import UnknownNameError

from .circuit import classifier as circuit
from .forest import classifier as forest
from .naive_bayes import classifier as naive_bayes
from .network import classifier as network

if TYPE_CHECKING:
    from .base import GenerativeClassifier
    from .fitted import FittedModel
    from .kinds import Kind, Recipe

__all__ = ["KINDS", "RECIPES", "find_kinds", "find_recipe", "kind_of", "recipe_of"]

FAMILIES: tuple[Any, ...] = (naive_bayes, forest, circuit)
NETWORKS: Any = network  # one estimator, two kinds of model, and a recipe for each structure
KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (*(family.KIND for family in FAMILIES), *NETWORKS.KINDS)
}
# A family that does not learn has no recipe.
LEARNING = [family.RECIPE for family in FAMILIES if hasattr(family, "RECIPE")]
RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (*LEARNING, *NETWORKS.RECIPES)}


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
    return next((recipe for recipe in RECIPES.values() if recipe.makes(classifier)), None)


def find_kinds(estimator: type[FittedModel]) -> list[Kind]:
    """Return the kinds of model that an estimator, or a class it derives from, holds."""
    return [kind for kind in KINDS.values() if issubclass(estimator, kind.estimators)]


def kind_of(classifier: FittedModel) -> Kind | None:
    """Return the kind of model that a fitted classifier holds, if it is known."""
    kinds = find_kinds(type(classifier))
    return next((kind for kind in kinds if isinstance(classifier.model_, kind.model)), None)
