"""Bad tables, by every reader: text and Parquet, damaged, foreign, absurd."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.commands import call

if TYPE_CHECKING:
    import random
    from pathlib import Path

__all__ = ["read_bad_table"]

HEADERS = (
    "a,b,y",
    "a;b;y",
    "a\tb\ty",
    "a,a,y",
    ",,y",
    '"a,b,y',
    "\ufeffa,b,y",
    "y",
    "a,b,y,\x1b[7m",
)
CELLS = (
    "x",
    "z",
    "1",
    "1.5",
    "inf",
    "-inf",
    "nan",
    "",
    "?",
    '"',
    '"q,q"',
    "\u202e",
    "\x00",
    "é",
    "9" * 400,
)
ENDS = ("\n", "\r\n", "\r", "")
ENCODINGS = ("utf-8", "utf-8", "utf-16", "cp1252", "utf-8-sig")
PAGES = (b"", b"\n", b"a,b,y", b"<!doctype html><p>a,b", b"PK\x03\x04", b"\x1f\x8b", b"PAR1", b"{}")
ENDINGS = (".csv", ".csv", ".parquet", ".tsv", ".csv.gz", ".txt", ".json")


def read_bad_table(rng: random.Random, folder: Path) -> str:
    """Let a command read a bad table: it works, or says why not, names the file, leaves nothing."""
    table = folder / f"bad{rng.choice(ENDINGS)}"
    table.write_bytes(_make(rng))
    before = sorted(folder.iterdir())
    command = rng.choice(("fit", "score", "evaluate"))
    out = folder / {"fit": "out.robustq", "score": "out.csv", "evaluate": "out.html"}[command]
    model = folder / "good.robustq"
    arguments = {
        "fit": ("fit", table, "--target", "y", "--model", "nbc", "-o", out),
        "score": ("score", model, table, "-o", out),
        "evaluate": ("evaluate", model, table, "--target", "y", "-o", out),
    }[command]
    try:
        done = call(*arguments)
        assert done.returncode in {0, 2}, (command, done.output)
        assert "\x1b" not in done.output
        assert "Traceback" not in done.output
        if done.returncode == 2:
            assert "bad" in done.output, done.output
            assert sorted(folder.iterdir()) == before
    finally:
        out.unlink(missing_ok=True)
        table.unlink()
    return "fine" if done.returncode == 0 else "refused"


def _make(rng: random.Random) -> bytes:
    if rng.random() < 0.1:
        return rng.choice(PAGES)
    content = _make_parquet(rng) if rng.random() < 0.3 else _make_text(rng)
    if rng.random() < 0.5:
        at = rng.randrange(len(content) + 1)
        way = rng.randrange(3)
        content = (content[:at], content[:at] + rng.randbytes(3) + content[at:], content[at:])[way]
    return content


def _make_text(rng: random.Random) -> bytes:
    end, cells = rng.choice(ENDS), rng.sample(CELLS, 4)
    rows = [rng.choice(HEADERS)]
    for _ in range(rng.choice((0, 1, 2, 30))):
        row = [rng.choice(cells), rng.choice(cells), rng.choice(("yes", "no"))]
        rows.append(",".join(row if rng.random() < 0.95 else row * 2))
    return end.join(rows).encode(rng.choice(ENCODINGS), "replace")


def _make_parquet(rng: random.Random) -> bytes:
    kinds = (
        pa.array([[1], None, [2, 3]]),
        pa.array([{"a": 1}, None, {"a": 2}]),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array([0.5, None, float("inf")], pa.float32()).cast(pa.float16()),
        pa.array([b"\xff", None, b""]),
        pa.nulls(3),
        pa.array([2**64 - 1, 0, None], pa.uint64()),
        pa.array(["x", "z", None]).dictionary_encode(),
        pa.array([1, 2, None], pa.timestamp("ns", "UTC")),
        pa.array(["1.5", "2.5", None]).cast(pa.decimal128(5, 2)),
    )
    labels = rng.choice((pa.array(["yes", "no", None]), *kinds))
    columns = {"a": rng.choice(kinds), "b": rng.choice(kinds), "y": labels}
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()
