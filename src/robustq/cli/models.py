"""From `--model` and `--option` to an estimator: what its recipe and its parameters allow."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from robustq.exceptions import InputError
from robustq.families.table import recipe_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robustq.families.base import GenerativeClassifier
    from robustq.families.kinds import Recipe

__all__ = ["make_estimator", "name_options", "read_options", "read_value"]

# What has an option of its own in every command that trains.
OWN = {"categorical": "--categorical", "numeric": "--numeric"}
# Texts that stand for a value of Python's, beside those of JSON.
WORDS = {"none": None, "true": True, "false": False}
# As people write them: JSON knows neither .5 nor +1.
WHOLE = "[+-]?[0-9]{1,18}"
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def make_estimator(
    recipe: Recipe,
    shorthands: Mapping[str, str | None],
    options: Sequence[str],
    seed: int,
) -> GenerativeClassifier:
    """Return the estimator that options ask for, not fitted.

    Parameters
    ----------
    recipe : Recipe
    shorthands : dict of str to str
        What options with a name of their own say, such as `trees`; None where they were not used.
    options : sequence of str
        As in `name=value`, each about a parameter of the estimator.
    seed : int
        For those that take one.
    """
    named = read_options(options)
    used = {name: text for name, text in shorthands.items() if text is not None}
    for name in used:
        _require_understood(recipe, name)
    for name, option in recipe.options.items():
        if name in used and option.parameter in named:
            what = f"{_flag(name)} and --option {option.parameter}"
            msg = f"{what} say the same thing: give one of them"
            raise InputError(msg)
        if name in used:
            named[option.parameter] = read_value(used[name])
        elif option.default is not None:
            named.setdefault(option.parameter, option.default)
    return recipe.make(named, seed)


def name_options(estimator: GenerativeClassifier) -> dict[str, str]:
    """Return the options that set parameters of an estimator, by the names of the parameters."""
    recipe = recipe_of(estimator)
    options = {} if recipe is None else recipe.options
    return {option.parameter: _flag(name) for name, option in options.items()}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _require_understood(recipe: Recipe, name: str) -> None:
    if name not in recipe.options:
        have = ", ".join(map(_flag, recipe.options))
        what = f"; it has {have}" if have else ""
        msg = f"{_flag(name)} is not for {recipe.title}{what}; --option sets any parameter"
        raise InputError(msg)


def read_options(options: Sequence[str]) -> dict[str, Any]:
    """Return the parameters that options such as `name=value` set."""
    found: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            msg = f"--option takes name=value, as in max_depth=4, got {option!r}"
            raise InputError(msg)
        if name in OWN:
            msg = f"--option {name}: columns are named by {OWN[name]}"
            raise InputError(msg)
        if name in found:
            msg = f"--option {name} is given twice"
            raise InputError(msg)
        found[name] = read_value(text)
    return found


def read_value(text: str) -> Any:
    """Return what a text means: a number, a truth value, nothing, a list; or the text itself.

    Examples
    --------
    >>> read_value("4"), read_value("1e-3"), read_value("none"), read_value("[0.5, 0.5]")
    (4, 0.001, None, [0.5, 0.5])
    >>> read_value("cv"), read_value('"4"')
    ('cv', '4')
    """
    text = text.strip()
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if re.fullmatch(WHOLE, text):
        return int(text)
    if re.fullmatch(NUMBER, text):
        return float(text)
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text
