"""Running the command as a user does."""

import os
import subprocess
import sys

ENVIRONMENT = os.environ | {"COLUMNS": "100", "PYTHONWARNINGS": "default"}


def run(*arguments, env=None, **options):
    """Return the finished process; its output is text."""
    command = [sys.executable, "-m", "robustq", *map(str, arguments)]
    options.setdefault("timeout", 300)
    return subprocess.run(  # noqa: PLW1510, S603
        command, capture_output=True, text=True, env=ENVIRONMENT | (env or {}), **options
    )
