"""The classifiers: a file (a forest a folder) for each family, and the table that lists them."""
