"""Pages that people read: each is one file that needs nothing else, made from one dictionary."""

from .reproduction import write_reproduction

__all__ = ["write_reproduction"]
