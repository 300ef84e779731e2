"""Models as files and as plain documents: one reader, one writer, one place that checks."""
