"""Circuits: any tree of sums, products and leaves over the class and the features."""
