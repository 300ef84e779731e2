"""`make fuzz`: attacks with ever new seeds; guided by coverage where atheris is installed.

python -m tests.hostile [--seconds N] [--seed N] [--attack NAME] [--guided]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--attack", action="append")
    parser.add_argument("--guided", action="store_true", help="by atheris: pip install atheris")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # damaged models know other values
    if options.guided:
        _run_guided(options)
    return _run_seeded(options)


def _run_seeded(options: argparse.Namespace) -> int:
    from .attacks import ATTACKS, prepare  # noqa: PLC0415 (after atheris, if it is there)

    names = options.attack or sorted(ATTACKS)
    told: dict[str, Counter[str]] = {name: Counter() for name in names}
    seed, end = options.seed, time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place))
        while time.monotonic() < end:
            name = names[seed % len(names)]
            try:
                told[name][ATTACKS[name](random.Random(seed), Path(place))] += 1
            except Exception:
                told[name]["wrong"] += 1
                sys.stderr.write(f"--attack {name} --seed {seed}\n{traceback.format_exc()}\n")
            seed += 1
    for name, counts in told.items():
        sys.stdout.write(f"{name:10} " + ", ".join(f"{n:,} {w}" for w, n in counts.items()) + "\n")
    return int(any(counts["wrong"] for counts in told.values()))


class _Guided(random.Random):
    """Random numbers that are what the fuzzer wants them to be."""

    def __init__(self, content: bytes) -> None:
        super().__init__(len(content))
        self.content = iter(range(0, len(content) - 7, 8)), content

    def getrandbits(self, k: int) -> int:
        places, content = self.content
        at = next(places, None)
        if at is None:
            return super().getrandbits(k)
        return int.from_bytes(content[at : at + 8], "little") % (1 << k) if k else 0

    def random(self) -> float:
        return self.getrandbits(53) / (1 << 53)


def _run_guided(options: argparse.Namespace) -> None:
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415

    # What numba compiles must stay as it is written.
    source = Path(__file__).parents[2] / "src"
    compiled = [
        ".".join(path.relative_to(source).with_suffix("").parts)
        for path in source.rglob("*kernels.py")
    ]
    with atheris.instrument_imports(include=["robustq"], exclude=compiled):
        from .attacks import ATTACKS, prepare  # noqa: PLC0415

    place = Path(tempfile.mkdtemp())
    prepare(place)
    attack = ATTACKS[(options.attack or ["documents"])[0]]
    arguments = [sys.argv[0], f"-max_total_time={int(options.seconds)}", "-max_len=4096"]
    atheris.Setup(arguments, lambda content: attack(_Guided(content), place) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
