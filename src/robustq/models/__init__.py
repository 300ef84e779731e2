"""Joint distributions learned from codes, as flat arrays."""
