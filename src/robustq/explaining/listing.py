"""Lines about a whole table, as columns: what every such listing can be turned into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from robustq.tables.display import as_html, as_text
from robustq.tables.frames import as_arrow, as_pandas

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

__all__ = ["Listing"]


class Listing(ABC):
    """Lines with a title; who derives from it gives the columns, as values and as text."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the table is about."""

    @abstractmethod
    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name."""

    @abstractmethod
    def cells(self) -> dict[str, list[str]]:
        """Return the lines as columns of text."""

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain data, an entry for each line."""
        columns = {name: column.tolist() for name, column in self.columns().items()}
        return [
            dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)
        ]

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame."""
        return as_pandas(self.columns())

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table."""
        return as_arrow(self.columns())

    def __repr__(self) -> str:
        return f"{self.title}\n{as_text(self.cells())}"

    def _repr_html_(self) -> str:
        return as_html(self.title, self.cells())
