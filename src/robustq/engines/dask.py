"""Dask frames, scored where their partitions are."""
