"""Lazy frames of polars, scored batch by batch."""
