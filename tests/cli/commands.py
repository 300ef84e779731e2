"""Running the command as a user does; or here, where a process of its own would tell no more."""

import os
import subprocess
import sys
import traceback
from contextlib import chdir
from typing import NamedTuple

from typer.testing import CliRunner

from robustq.cli.main import app

ENVIRONMENT = os.environ | {"COLUMNS": "100", "PYTHONWARNINGS": "default"}


def run(*arguments, env=None, **options):
    """Return the finished process; its output is text."""
    command = [sys.executable, "-m", "robustq", *map(str, arguments)]
    options.setdefault("timeout", 300)
    return subprocess.run(  # noqa: PLW1510, S603
        command, capture_output=True, text=True, env=ENVIRONMENT | (env or {}), **options
    )


class Done(NamedTuple):
    """What a command said, and how it left."""

    returncode: int
    stdout: str
    stderr: str
    output: str


def call(*arguments, env=None, cwd=".") -> Done:
    """Return the same of a command that runs in this process."""
    with chdir(cwd):
        done = CliRunner(env={"COLUMNS": "100"} | (env or {})).invoke(
            app, [str(argument) for argument in arguments]
        )
    crashed = not isinstance(done.exception, (SystemExit, type(None)))
    crash = "".join(traceback.format_exception(done.exception)) if crashed else ""
    return Done(done.exit_code, done.stdout, done.stderr, done.output + crash)
