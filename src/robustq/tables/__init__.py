"""Tables of any make as columns, and columns as codes: the one place that knows how."""

from .codes import MISSING, UNKNOWN
from .columns import Binned, Categorical, Numeric, as_numbers, is_missing
from .distinct import Kinds, find_distinct
from .encoding import Encoding, Rows
from .table import Table
from .understanding import Verdict, is_continuous, remark_on_classes, remark_on_labels

__all__ = [
    "MISSING",
    "UNKNOWN",
    "Binned",
    "Categorical",
    "Encoding",
    "Kinds",
    "Numeric",
    "Rows",
    "Table",
    "Verdict",
    "as_numbers",
    "find_distinct",
    "is_continuous",
    "is_missing",
    "remark_on_classes",
    "remark_on_labels",
]
