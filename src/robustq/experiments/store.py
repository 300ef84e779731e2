"""Where finished pieces are kept: one Parquet file each, whole or not there."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from robustq.exceptions import FileError
from robustq.files import explain_os_error, make_folder, sweep, write_atomically

from .pieces import list_columns

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .plan import Piece, Plan

__all__ = ["Store"]


class Store:
    """The pieces of a plan in a folder; pieces of other plans beside them are left alone.

    Parameters
    ----------
    plan : Plan
    folder : Path
        It is made.
    contents : mapping of str to str
        A digest of each data set.
    """

    def __init__(self, plan: Plan, folder: Path, contents: Mapping[str, str]) -> None:
        self.plan = plan
        self.folder = folder / "pieces"
        self.contents = contents
        make_folder(self.folder)
        sweep(self.folder)

    def path(self, piece: Piece) -> Path:
        """Return where a piece is, or will be; the name tells all that decides its content."""
        mark = self.plan.fingerprint(piece, self.contents[piece.data_set])
        name = f"{piece.data_set}-{piece.model}-{piece.run + 1:02d}-{mark}.parquet"
        return self.folder / name

    def find(self) -> dict[Piece, pa.Table]:
        """Return the pieces that are there; damaged ones are not."""
        tried = {piece: self._try(piece) for piece in self.plan.pieces()}
        return {piece: table for piece, table in tried.items() if table is not None}

    def write(self, piece: Piece, table: pa.Table) -> None:
        """Keep a piece."""
        content = io.BytesIO()
        pq.write_table(table, content, compression="zstd", write_page_checksum=True)
        write_atomically(self.path(piece), content.getvalue())

    def read(self, piece: Piece) -> pa.Table:
        """Return a piece that was kept."""
        table = self._try(piece)
        if table is None:
            msg = f"{self.path(piece)} cannot be read: start again"
            raise FileError(msg)
        return table

    def _try(self, piece: Piece) -> pa.Table | None:
        """Return a piece that was kept, None if it is not there or damaged."""
        try:
            table = pq.read_table(self.path(piece), page_checksum_verification=True)
        except (OSError, pa.ArrowException):
            return None
        return table if table.column_names == list_columns(self.plan) else None

    def note_time(self, piece: Piece, seconds: float) -> None:
        """Keep how long a piece took; apart, because it is never the same twice."""
        line = json.dumps({"piece": self.path(piece).stem, "seconds": round(seconds, 3)})
        try:
            with self._times.open("a") as file:
                file.write(line + "\n")
        except OSError as error:
            msg = f"{self._times} cannot be written ({explain_os_error(error)})"
            raise FileError(msg) from error

    def read_times(self) -> dict[Piece, float]:
        """Return how long each piece took, where that is known."""
        if not self._times.is_file():
            return {}
        known: dict[str, float] = {}
        for line in self._times.read_text(errors="replace").splitlines():
            try:
                noted = json.loads(line)
                seconds = float(noted["seconds"])
                if math.isfinite(seconds):
                    known[noted["piece"]] = seconds
            except (ValueError, KeyError, TypeError):
                continue  # cut off when the process was killed
        stems = {piece: self.path(piece).stem for piece in self.plan.pieces()}
        return {piece: known[stem] for piece, stem in stems.items() if stem in known}

    @property
    def _times(self) -> Path:
        return self.folder / "seconds.jsonl"
