"""Running the command as a user does."""

import os
import subprocess
import sys


def run(*arguments, env=None, **options):
    """Return the finished process; its output is text."""
    command = [sys.executable, "-m", "robustq", *map(str, arguments)]
    options.setdefault("timeout", 300)
    options.setdefault("text", True)
    environment = os.environ | {"COLUMNS": "100", "PYTHONWARNINGS": "default"} | (env or {})
    return subprocess.run(command, capture_output=True, env=environment, **options)  # noqa: PLW1510, S603
