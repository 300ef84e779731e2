"""Files, wherever they are; what is written appears under its name only when it is complete."""

from .local import explain_os_error, make_folder, sweep
from .places import Place, check_output, find_place, write_atomically
from .urls import hide_secrets, name_file

__all__ = [
    "Place",
    "check_output",
    "explain_os_error",
    "find_place",
    "hide_secrets",
    "make_folder",
    "name_file",
    "sweep",
    "write_atomically",
]
