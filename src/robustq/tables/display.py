"""Columns as people look at them: as text in a terminal, as HTML in a notebook."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Cells = Mapping[str, Sequence[str]]

__all__ = ["as_html", "as_text", "shorten", "show_value"]

LONGEST = 60  # letters in a cell


def show_value(value: object) -> str:
    """Return a value as a cell shows it: numbers with four digits, long texts cut."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return "–" if value is None else shorten(str(value), LONGEST)


def shorten(text: str, most: int) -> str:
    """Return a text of at most so many letters; an ellipsis says that there were more."""
    return text if len(text) <= most else text[: max(most - 1, 0)].rstrip(" ,") + "…"


def as_text(columns: Cells, width: int | None = None) -> str:
    """Return a table of aligned text.

    Columns that do not fit stand below the others; the first one is repeated there.

    Parameters
    ----------
    columns : mapping of str to sequence of str
    width : int, optional
        By default that of the terminal; where there is none, as wide as need be.
    """
    if width is None:
        width = shutil.get_terminal_size().columns if _is_terminal() else sys.maxsize
    first, *others = [_align(name, cells) for name, cells in columns.items()]
    groups = [[first]]
    for lines in others:
        wide = sum(len(group[0]) + 2 for group in groups[-1]) + len(lines[0])
        if wide > width and len(groups[-1]) > 1:
            groups.append([first])
        groups[-1].append(lines)
    return "\n\n".join("\n".join(map("  ".join, zip(*group, strict=True))) for group in groups)


def as_html(title: str, columns: Mapping[str, Iterable[Any]], note: str = "") -> str:
    """Return a table for a notebook; all text is escaped, what is `Markup` stays.

    Parameters
    ----------
    title : str
    columns : mapping of str to sequence
    note : str
        What is said below the table.
    """
    from markupsafe import Markup, escape  # noqa: PLC0415 (only where it is shown)

    def line(cells: Iterable[Any], tag: str) -> Markup:
        each = (Markup("<{0}>{1}</{0}>").format(Markup(tag), escape(cell)) for cell in cells)  # noqa: S704
        return Markup("<tr>{}</tr>").format(Markup().join(each))

    rows = [line(row, "td") for row in zip(*columns.values(), strict=True)]
    return str(
        Markup(
            '<div><p>{}</p><table border="1" class="dataframe"><thead>{}</thead>'
            "<tbody>{}</tbody></table>{}</div>"
        ).format(
            title,
            line(columns, "th"),
            Markup("\n").join(rows),
            Markup("<p>{}</p>").format(note) if note else "",
        )
    )


def _align(name: str, cells: Sequence[str]) -> list[str]:
    width = max(map(len, [name, *cells]))
    return [cell.rjust(width) for cell in (name, *cells)]


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()
