"""Running the command as a user does; or here, where a process of its own would tell no more."""

import os
import subprocess
import sys

from typer.testing import CliRunner, Result

from robustq.cli.main import app

ENVIRONMENT = os.environ | {"COLUMNS": "100", "PYTHONWARNINGS": "default"}


def run(*arguments, env=None, **options):
    """Return the finished process; its output is text."""
    command = [sys.executable, "-m", "robustq", *map(str, arguments)]
    options.setdefault("timeout", 300)
    return subprocess.run(  # noqa: PLW1510, S603
        command, capture_output=True, text=True, env=ENVIRONMENT | (env or {}), **options
    )


def call(*arguments, env=None) -> Result:
    """Return what the command says in this process, in the folder one is in."""
    given = {"COLUMNS": "100"} | (env or {})
    return CliRunner(env=given).invoke(app, [str(argument) for argument in arguments])
