"""Names of files elsewhere: what of them may be shown, and what is kept to oneself."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

__all__ = ["find_protocol", "hide_secrets", "name_file", "scrub"]

PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
WEB = ("http", "https")
# In any text that somebody else wrote.
URLS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://[^\s'\"<>]+")


def find_protocol(path: str) -> str | None:
    """Return the protocol of a URL, nothing for a file of this machine."""
    found = PROTOCOL.match(path)
    return found[1].lower() if found else None


def hide_secrets(path: str) -> str:
    """Return a path as it may be shown: of a URL, neither a password nor what a query holds.

    Examples
    --------
    >>> hide_secrets("https://me:secret@host/a.csv?signature=4f2a")
    'https://host/a.csv?…'
    >>> hide_secrets("s3://bucket/what?.csv")
    's3://bucket/what?.csv'
    """
    protocol = find_protocol(path)
    if protocol is None:
        return path
    host, slash, rest = path[len(protocol) + 3 :].partition("/")
    if protocol in WEB:
        # Elsewhere, ? is a letter like others.
        host, rest = _cut_query(host), _cut_query(rest)
    return f"{protocol}://{host.rpartition('@')[2]}{slash}{rest}"


def _cut_query(text: str) -> str:
    return re.sub(r"[?#].*", "?…", text, flags=re.DOTALL)


def name_file(path: str) -> str:
    """Return the last part of a path: what a file is called.

    Examples
    --------
    >>> name_file("https://host/some%20where/a%20b.csv?signature=4f2a")
    'a b.csv'
    """
    protocol = find_protocol(path)
    if protocol is None:
        return Path(path).name
    last = hide_secrets(path).removesuffix("?…").rstrip("/").rpartition("/")[2]
    return unquote(last) if protocol in WEB else last


def scrub(text: str) -> str:
    """Return a message with the secrets of all its URLs left out."""
    return URLS.sub(lambda found: hide_secrets(found[0]), text)
