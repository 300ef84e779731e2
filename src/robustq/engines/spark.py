"""Spark frames, scored where their partitions are."""
