"""Robustness quantification: how wrong a classifier can be before its prediction changes.

The public names are listed in ``__init__.pyi``; each is imported when it is
first used, so that ``import robustq`` costs next to nothing.
"""

import lazy_loader

__version__ = "0.1.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
