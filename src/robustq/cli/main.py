"""The command and its errors: one or two plain sentences, and an exit code that scripts can use."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import traceback
import warnings
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from robustq import __version__
from robustq.exceptions import RobustqError
from robustq.files import explain_os_error
from robustq.memory import explain_shortage
from robustq.texts import make_visible, shorten

from .consoles import complain
from .datasets import list_datasets
from .demo import demo
from .evaluate import evaluate
from .explain import explain
from .explore import explore
from .fit import fit
from .inspect import inspect
from .limits import divide_if_limited
from .reproduce import reproduce
from .score import score

__all__ = ["app", "main"]

WRONG, INTERRUPTED, CRASHED = 2, 130, 1
DEBUG = "--debug"
MANY_OBJECTS = 50_000


class _Group(TyperGroup):
    """Commands whose errors are explained, not traced."""

    def invoke(self, context: Any) -> Any:
        try:
            return super().invoke(context)
        except RobustqError as error:
            _explain(context, error, explain_shortage(error) or str(error))
            raise typer.Exit(WRONG) from error
        except KeyboardInterrupt as error:
            complain("Interrupted.")
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError:
            _leave(0)  # whoever read our output has seen enough
        except Exception as error:
            shortage = explain_shortage(error)
            if shortage is None:
                if not isinstance(error, OSError):
                    raise
                shortage = f"the output cannot be written ({explain_os_error(error)})"
            _explain(context, error, shortage)
            raise typer.Exit(WRONG) from error


def _unwrap(text: str) -> str:
    """Return a text whose paragraphs are one line each: terminals are of any width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, command in (
    ("demo", demo),
    ("fit", fit),
    ("score", score),
    ("evaluate", evaluate),
    ("explain", explain),
    ("explore", explore),
    ("inspect", inspect),
    ("reproduce", reproduce),
    ("datasets", list_datasets),
):
    app.command(name, help=_unwrap(command.__doc__ or ""))(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"robustq {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
    debug: bool = typer.Option(False, DEBUG, help="Show the whole traceback of an error."),
) -> None:
    """Tell how far a classifier can be wrong before its prediction changes."""


def main() -> None:
    """Run the command.

    It leaves with 0 if all went well, 2 if something given was wrong, 130 if interrupted.
    """
    divide_if_limited(sys.argv[1:])
    # Imports make many small objects and hardly any garbage: looking for it took a tenth of a demo.
    gc.set_threshold(MANY_OBJECTS)
    # Ended from outside: clean up on the way out, as for Ctrl-C.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    for stream in (sys.stdout, sys.stderr):
        # Not every terminal can show every letter.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    warnings.showwarning = _show_warning
    _run(sys.argv[1:])


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show what a warning says; where in the code it was raised is nothing for users."""
    complain(f"Warning: {message}")


def _run(arguments: list[str]) -> None:
    # Each branch leaves at once, while the error still holds on to what was being read: letting go
    # of a pipe that somebody reads from in a thread would wait for its next rows.
    try:
        app(args=_debug_first(arguments))
    except SystemExit as ended:
        _leave(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
    except KeyboardInterrupt:
        _leave(INTERRUPTED)
    except Exception as error:
        if DEBUG in arguments:
            typer.echo(make_visible(traceback.format_exc()), err=True)
            _leave(WRONG if isinstance(error, RobustqError) else CRASHED)
        if isinstance(error, OSError):
            # Help goes to standard output before any command is asked.
            complain(f"Error: the output cannot be written ({explain_os_error(error)})")
            _leave(WRONG)
        complain(
            f"Error: something went wrong within robustq ({type(error).__name__}: "
            f"{shorten(str(error))}). Please report it, with what {DEBUG} shows."
        )
        _leave(CRASHED)


def _leave(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            pass
        except OSError:
            code = code or WRONG  # what was said did not arrive
    os._exit(code)


def _debug_first(arguments: list[str]) -> list[str]:
    """Let --debug stand anywhere."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if DEBUG not in ours:
        return arguments
    rest = list(arguments)
    rest.remove(DEBUG)
    return [DEBUG, *rest]


def _explain(context: Any, error: Exception, text: str) -> None:
    if context.params.get("debug"):
        raise error
    complain(f"Error: {text}")
