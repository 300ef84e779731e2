"""The same scorer where tables live: Dask, Spark, polars, DuckDB.

Importing this imports none of them; what is missing is said where it is needed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
