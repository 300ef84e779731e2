"""Tables of any make as columns, and columns as codes: the one place that knows how."""

from .codes import MISSING, UNKNOWN
from .columns import Binned, Categorical, Numeric, as_numbers, is_missing
from .distinct import find_distinct
from .encoding import Encoding, Rows
from .table import Table

__all__ = [
    "MISSING",
    "UNKNOWN",
    "Binned",
    "Categorical",
    "Encoding",
    "Numeric",
    "Rows",
    "Table",
    "as_numbers",
    "find_distinct",
    "is_missing",
]
