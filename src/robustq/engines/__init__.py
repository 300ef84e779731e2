"""The same scorer where tables live: Dask, Spark, polars, DuckDB."""
