"""Filling the templates."""

from __future__ import annotations

import base64
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from robustq.explaining.words import say_value
from robustq.texts import make_visible, shorten

__all__ = ["as_image", "begin_sentence", "fill"]

SYMBOLS = {"epsilon": "ε", "tv": "TV", "chi2": "χ²", "kl": "KL"}
IMAGE = "data:image/svg+xml;base64,"
LONGEST = 5000  # characters of a paragraph
# What some values of parameters mean, in any family.
MEANINGS = {
    ("smoothing", "cv"): "by 5-fold cross-validation; the bootstrap models take the value chosen "
    "on the training set",
    ("smoothing", 0.0): "by maximum likelihood",
    ("max_depth", None): "unlimited",
}


def fill(template: str, **values: Any) -> str:
    """Return a page; everything in it is escaped."""
    environment = Environment(
        loader=PackageLoader("robustq.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_show,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "symbol": _symbol,
        "parameter": _say_parameter,
        "percent": lambda share, digits=1: f"{100 * share:.{digits}f}",
        "sentence": begin_sentence,
        "count": lambda number: f"{number:,}",
        "value": say_value,
    }
    return environment.get_template(template).render(**values)


def _show(value: Any) -> Any:
    """Return what a page shows of a value: names may hold what turns or hides what follows."""
    if not isinstance(value, str) or value.startswith(IMAGE):
        return value
    shown = shorten(make_visible(value), LONGEST)
    # What is markup already stays so: nothing that is put in means anything to a browser.
    return type(value)(shown)


def as_image(svg: bytes) -> str:
    """Return a picture as an address that holds it."""
    return f"{IMAGE}{base64.b64encode(svg).decode()}"


def begin_sentence(text: str) -> str:
    """Return text that begins with a capital; the rest is left as it is."""
    return text[:1].upper() + text[1:]


def _symbol(name: str) -> Markup:
    """Return an indicator's name as the paper writes it: r_tv is r with a small TV."""
    letter, line, rest = name.partition("_")
    if letter not in {"r", "u"} or not line:
        return Markup(escape(name))  # noqa: S704 (escaped)
    for ball, symbol in SYMBOLS.items():
        # What is perturbed comes after the ball: r_tv_all.
        if rest == ball or rest.startswith(f"{ball}_"):
            rest = symbol + rest.removeprefix(ball)
            break
    return Markup("<i>{}</i><sub>{}</sub>").format(letter, rest.replace("_", " "))


def _say_parameter(name: str, value: Any) -> str:
    """Return a parameter and its value in words."""
    if name == "smoothing" and isinstance(value, (list, tuple)):
        return f"{name} from {', '.join(f'{item:g}' for item in value)} ({MEANINGS[name, 'cv']})"
    told = f"{name} {'none' if value is None else value}"
    said = [words for (key, known), words in MEANINGS.items() if (key, known) == (name, value)]
    return f"{told} ({said[0]})" if said else told
