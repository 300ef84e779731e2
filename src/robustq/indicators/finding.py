"""What users name on the command line and in plans: also balls of their own, `module:Class`.

A name here may import a module. What a model file says must never come this way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from robustq.core.neighbourhoods import Neighbourhood, read, read_all
from robustq.exceptions import InputError, UnknownNameError
from robustq.perturbations.importing import find_ball

from .table import ROBUSTNESS, Indicator, get

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["find_indicator", "find_neighbourhood", "find_neighbourhoods", "is_imported"]


def is_imported(name: str) -> bool:
    """Tell whether a name is that of a class in a module."""
    return ":" in name


def find_neighbourhood(name: str) -> Neighbourhood:
    """Return the neighbourhood of a name, or of `module:Class`; both may have endings.

    Raises
    ------
    InputError
        If there is no such name, module or class.

    Examples
    --------
    >>> find_neighbourhood("tv_all").name
    'tv_all'
    >>> find_neighbourhood("robustq.perturbations:ChiSquared_all_rows").name
    'chi2_all_rows'
    """
    if not is_imported(name):
        return read(name)
    try:
        return read(find_ball(name))
    except InputError as error:
        for shorter, plain in _cut_endings(name):
            try:
                return replace(plain, ball=find_ball(shorter))
            except InputError:
                continue
        raise error  # noqa: TRY201 (the first one, about the class as it is written)


def _cut_endings(name: str) -> Iterator[tuple[str, Neighbourhood]]:
    """Yield shorter names, and the neighbourhood that their ending would make of a plain ball."""
    module, _, written = name.partition(":")
    for place in range(len(written) - 1, 0, -1):
        if written[place] != "_":
            continue
        try:
            plain = read("tv" + written[place:])
        except UnknownNameError:
            return
        yield f"{module}:{written[:place]}", plain


def find_neighbourhoods(names: Sequence[str]) -> list[Neighbourhood]:
    """Return the neighbourhoods of names, each named once."""
    return read_all([find_neighbourhood(name) for name in names])


def find_indicator(name: str) -> Indicator:
    """Return the indicator of a name; of `module:Class`, the robustness in that ball."""
    if isinstance(name, str) and is_imported(name):
        return get(find_neighbourhood(name.removeprefix(ROBUSTNESS)))
    return get(name)
