"""Columns as frames of the library one prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw

from robustq.exceptions import UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["Columns", "as_arrow", "as_pandas", "as_polars", "index_of"]

Columns: TypeAlias = "dict[str, np.ndarray[Any, Any]]"


def as_arrow(columns: Columns) -> pa.Table:
    """Return a pyarrow table."""
    import pyarrow as pa  # noqa: PLC0415 (slow to import)

    # Through lists where a value may be None: numpy has no missing values.
    return pa.table(
        {
            name: pa.array(column.tolist() if column.dtype == object else column)
            for name, column in columns.items()
        }
    )


def as_pandas(columns: Columns, index: Any = None) -> pd.DataFrame:
    """Return a pandas frame, with an index if one is given."""
    try:
        import pandas  # noqa: ICN001, PLC0415 (optional)
    except ImportError as error:
        raise UnsupportedError(_install("pandas")) from error
    return pandas.DataFrame(columns, index=index)


def as_polars(columns: Columns) -> pl.DataFrame:
    """Return a polars frame."""
    try:
        import polars  # noqa: ICN001, PLC0415 (optional)
    except ImportError as error:
        raise UnsupportedError(_install("polars")) from error
    frame = polars.from_arrow(as_arrow(columns))
    assert isinstance(frame, polars.DataFrame)  # noqa: S101 (a table, not a column)
    return frame


def index_of(given: Any) -> Any:
    """Return the index of a frame that has one, or None."""
    return given.index if nw.dependencies.is_pandas_like_dataframe(given) else None


def _install(package: str) -> str:
    return f"{package} is not installed: pip install {package}, or use to_arrow()"
