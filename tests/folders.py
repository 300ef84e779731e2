"""Where UCI's files are, for tests that need them all."""

import os
from pathlib import Path

import pytest

UCI = Path(os.environ.get("ROBUSTQ_DATA") or "nowhere")

needs_uci = pytest.mark.skipif(not UCI.is_dir(), reason="needs UCI's files: set ROBUSTQ_DATA")
