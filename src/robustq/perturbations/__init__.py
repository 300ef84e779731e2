"""Balls around one mass function: bounds, lower expectations and their minimisers.

A ball of size delta holds every mass function that a perturbation of that size
can make of the mass function at its centre; see ``docs/perturbations.md``.
"""

from .base import Perturbation
from .chi_squared import ChiSquared
from .domain import Domain
from .epsilon import Epsilon
from .forms import Form as Form  # not in __all__ yet, whose names a test outside holds
from .kullback_leibler import KullbackLeibler
from .odds_ratio import OddsRatio
from .pari_mutuel import PariMutuel
from .registry import get, names, register
from .total_variation import TotalVariation

__all__ = [
    "ChiSquared",
    "Domain",
    "Epsilon",
    "KullbackLeibler",
    "OddsRatio",
    "PariMutuel",
    "Perturbation",
    "TotalVariation",
    "get",
    "names",
    "register",
]
