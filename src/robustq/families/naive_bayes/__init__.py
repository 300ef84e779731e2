"""Naive Bayes: a prior, and a mass function for each feature and class."""
