"""Tables of any make as columns, and columns as codes: the one place that knows how."""

from .codes import MISSING, UNKNOWN
from .encoding import Binned, Categorical, Encoding, is_missing
from .table import Table

__all__ = ["MISSING", "UNKNOWN", "Binned", "Categorical", "Encoding", "Table", "is_missing"]
