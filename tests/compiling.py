"""Compile all kernels, in as many processes as there are cores: `python -m tests.compiling`.

Tests that run side by side would each compile what they need, much of it twice, and slowly while
what they cover is traced. What is on disk already is left as it is.
"""

from __future__ import annotations

import importlib
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import robustq
from robustq.blocks import count_cores

# These take longest: what comes last should be short.
LONGEST = ("_circuit_kernels", "_product_kernels", "_growing_kernels", "_mixture_kernels")


def load() -> list[str]:
    """Return the names of all kernels."""
    from robustq.kernels import KERNELS  # noqa: PLC0415 (numba, which `import robustq` does without)

    folder = Path(robustq.__file__).parent
    for path in sorted(folder.rglob("_*kernels.py")):
        importlib.import_module(
            ".".join(("robustq", *path.relative_to(folder).with_suffix("").parts))
        )
    return sorted(KERNELS, key=_place)


def _place(name: str) -> int:
    places = [place for place, part in enumerate(LONGEST) if part in name]
    return places[0] if places else len(LONGEST)


def prepare(name: str) -> None:
    """Compile a kernel, or find it on disk."""
    from robustq.kernels import KERNELS  # noqa: PLC0415

    KERNELS[name]()


def main() -> None:
    """Compile."""
    began = time.perf_counter()
    names = load()
    with ProcessPoolExecutor(count_cores(), get_context("spawn"), initializer=load) as pool:
        list(pool.map(prepare, names))
    sys.stdout.write(f"{len(names)} kernels are ready after {time.perf_counter() - began:.0f} s\n")


if __name__ == "__main__":
    main()
