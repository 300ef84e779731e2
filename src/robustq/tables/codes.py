"""The codes that stand for no category."""

__all__ = ["MISSING", "UNKNOWN"]

MISSING = -1
UNKNOWN = -2  # a value never seen in training
