"""The paper's eleven data sets, from UCI's own files.

Examples
--------
>>> from robustq import datasets
>>> datasets.load("breast-cancer-wisconsin").X.num_rows
683
"""

from .loading import DataSet, load
from .places import find, locate
from .sources import Source, get, names

__all__ = ["DataSet", "Source", "find", "get", "load", "locate", "names"]
