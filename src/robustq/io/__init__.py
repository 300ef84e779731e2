"""Tables in and out: files of any size, as people have them."""

from .columns import adapt_labels, adapt_table, infer_types
from .scoring import Scorer
from .sniffing import CsvOptions
from .sources import Source, open_sources, read_table
from .writing import open_writer

__all__ = [
    "CsvOptions",
    "Scorer",
    "Source",
    "adapt_labels",
    "adapt_table",
    "infer_types",
    "open_sources",
    "open_writer",
    "read_table",
]
