"""Pages that people read: each is one file that needs nothing else, made from one dictionary."""

from .evaluation import as_json, draw_evaluation, write_evaluation
from .explanation import write_explanation
from .exploration import Exploration, make_exploration
from .reproduction import write_reproduction

__all__ = [
    "Exploration",
    "as_json",
    "draw_evaluation",
    "make_exploration",
    "write_evaluation",
    "write_explanation",
    "write_reproduction",
]
