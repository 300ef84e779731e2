"""Classifiers that abstain."""
