"""What models learn from rows, whatever they make of it."""
