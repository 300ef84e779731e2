"""Generative forests and trees."""
