"""Bayesian networks: the class and the features, each with a table given its parents."""
