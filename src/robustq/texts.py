"""Text that somebody else wrote, made fit to be shown: nothing in it acts, nothing is too long."""

from __future__ import annotations

import re

__all__ = ["LONGEST", "make_visible", "shorten"]

LONGEST = 1200  # characters of a message
# What terminals and browsers obey rather than show: control characters, marks that turn the
# direction of writing or hide, halves of characters.
COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
BREAKS = re.compile("[\t\n]")


def make_visible(text: str, *, lines: bool = True, json: bool = False) -> str:
    r"""Return text with what would act on a terminal or a page written out, as in \\x1b.

    Parameters
    ----------
    text : str
    lines : bool, default True
        Whether it may have several lines; a name may not.
    json : bool, default False
        Whether it is JSON, and stays the same JSON.

    Examples
    --------
    >>> print(make_visible("red \x1b[31m, turned \u202e, two\nlines", lines=False))
    red \x1b[31m, turned \u202e, two\nlines
    """
    shown = COMMANDS.sub(_write_out_in_json if json else _write_out, text)
    return shown if lines else BREAKS.sub(_write_out, shown)


def _write_out(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


def _write_out_in_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def shorten(text: str, longest: int = LONGEST) -> str:
    """Return text that can be read: what is too long loses its middle, and says how much.

    Examples
    --------
    >>> shorten("a" * 30 + "b" * 30, 26)
    'aaaaaa … (49 more) … bbbbb'
    """
    if len(text) <= longest:
        return text
    kept = max(2, longest - 15)
    head, tail = text[: (kept + 1) // 2], text[len(text) - kept // 2 :]
    return f"{head} … ({len(text) - kept:,} more) … {tail}"
