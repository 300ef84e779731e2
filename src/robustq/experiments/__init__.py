"""The paper's experiments as data, and the runner that carries them out.

Examples
--------
>>> from robustq.experiments import Plan
>>> plan = Plan(data_sets=("german",), runs=3)
>>> len(plan.pieces()), plan.indicators[:3]
(6, ('r_epsilon', 'r_tv', 'r_chi2'))
"""

from .plan import Piece, Plan
from .readings import READINGS, Reading
from .reproduction import Reproduction, reproduce

__all__ = ["READINGS", "Piece", "Plan", "Reading", "Reproduction", "reproduce"]
