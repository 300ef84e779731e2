"""Relations of DuckDB, scored batch by batch."""
