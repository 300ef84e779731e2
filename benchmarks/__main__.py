"""Run every benchmark, print its table, and fail if a limit is not kept."""

from __future__ import annotations

import sys

from . import balls, curves, forest, naive_bayes, streaming

MEASURES = (
    balls.measure,
    naive_bayes.measure_start,
    naive_bayes.measure_ratios,
    forest.measure_start,
    forest.measure_ratios,
    forest.measure_growth,
    curves.measure,
    streaming.measure_start,
    streaming.measure,
)


def main() -> int:
    """Run the benchmarks one after the other."""
    failures = 0
    for measure in MEASURES:
        table = measure()
        table.show()
        failures += table.failures
    if failures:
        print(f"{failures} limits not kept", file=sys.stderr)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
