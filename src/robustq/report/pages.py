"""Filling the templates."""

from __future__ import annotations

import base64
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

__all__ = ["as_image", "begin_sentence", "fill"]

SYMBOLS = {"epsilon": "ε", "tv": "TV", "chi2": "χ²", "marg": "marg", "kl": "KL"}


def fill(template: str, **values: Any) -> str:
    """Return a page; everything in it is escaped."""
    environment = Environment(
        loader=PackageLoader("robustq.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "symbol": _symbol,
        "percent": lambda share, digits=1: f"{100 * share:.{digits}f}",
        "sentence": begin_sentence,
        "count": lambda number: f"{number:,}",
    }
    return environment.get_template(template).render(**values)


def as_image(svg: bytes) -> str:
    """Return a picture as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def begin_sentence(text: str) -> str:
    """Return text that begins with a capital; the rest is left as it is."""
    return text[:1].upper() + text[1:]


def _symbol(name: str) -> Markup:
    """Return an indicator's name as the paper writes it: r_tv is r with a small TV."""
    letter, line, rest = name.partition("_")
    if letter not in {"r", "u"} or not line:
        return Markup(escape(name))  # noqa: S704 (escaped)
    return Markup("<i>{}</i><sub>{}</sub>").format(letter, SYMBOLS.get(rest, rest))
