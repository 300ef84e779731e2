"""Tables in and out: files of any size, as people have them."""

from .adapting import adapt_labels, adapt_table, list_needed
from .columns import infer_types, require_columns
from .gathering import gather
from .reading import ReadTable, read, read_table
from .sniffing import CsvOptions
from .sources import Source, open_sources, read_ahead, unify_types
from .targets import (
    Labelled,
    cut_target,
    find_edges,
    name_bins,
    name_classes,
    separate_known,
    separate_target,
)
from .understanding import Understanding, describe_columns
from .writing import check_ending, open_writer

__all__ = [
    "CsvOptions",
    "Labelled",
    "ReadTable",
    "Source",
    "Understanding",
    "adapt_labels",
    "adapt_table",
    "check_ending",
    "cut_target",
    "describe_columns",
    "find_edges",
    "gather",
    "infer_types",
    "list_needed",
    "name_bins",
    "name_classes",
    "open_sources",
    "open_writer",
    "read",
    "read_ahead",
    "read_table",
    "require_columns",
    "separate_known",
    "separate_target",
    "unify_types",
]
