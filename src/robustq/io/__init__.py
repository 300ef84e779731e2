"""Tables in and out: files of any size, as people have them."""

from .adapting import adapt_labels, adapt_table, list_needed
from .columns import infer_types, require_columns
from .sniffing import CsvOptions
from .sources import Source, open_sources, read_ahead, read_table, unify_types
from .targets import Labelled, separate_known, separate_target
from .understanding import Understanding, describe_columns, find_numbers
from .writing import check_ending, open_writer

__all__ = [
    "CsvOptions",
    "Labelled",
    "Source",
    "Understanding",
    "adapt_labels",
    "adapt_table",
    "check_ending",
    "describe_columns",
    "find_numbers",
    "infer_types",
    "list_needed",
    "open_sources",
    "open_writer",
    "read_ahead",
    "read_table",
    "require_columns",
    "separate_known",
    "separate_target",
    "unify_types",
]
