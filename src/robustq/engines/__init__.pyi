from . import dask, duckdb, polars, spark

__all__ = ["dask", "duckdb", "polars", "spark"]
