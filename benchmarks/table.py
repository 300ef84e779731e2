"""A table of what was measured, and whether it keeps what was promised."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

__all__ = ["Limits"]


@dataclass
class Limits:
    """Rows of (what, measured, limit), printed as a table.

    Parameters
    ----------
    title : str
    columns : tuple of str
        The headers of the columns that `add` is given besides the limit.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    failures: int = 0

    def add(self, *cells: str, measured: float, limit: float) -> None:
        """Add a row; it fails if `measured` is above `limit`."""
        kept = measured <= limit
        self.failures += not kept
        self.rows.append((*cells, f"{limit:g}", "yes" if kept else "NO"))

    def show(self) -> None:
        """Print the table."""
        table = Table(title=self.title, title_justify="left")
        for column, header in enumerate((*self.columns, "limit", "kept")):
            table.add_column(header, justify="left" if column == 0 else "right")
        for row in self.rows:
            table.add_row(*row)
        # Tables are for reading, in a log too: rather a long line than a broken one.
        Console(width=max(Console().width, 110)).print(table)
