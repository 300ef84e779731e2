"""How often a gate breaks its promise, and how much it accepts of what could be accepted.

    python -m benchmarks.gates

Scores are drawn from [0, 1], with an error that depends on the score; so the true error above
every threshold is known. *Before* is the rule of the first version: twenty thresholds, each at a
twentieth of the risk. All is seeded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

from robustq.selection.thresholds import calibrate

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Bools, Floats

RUNS = 1000
FINE = (np.arange(20_000) + 0.5) / 20_000
SHAPES: dict[str, tuple[float, Callable[[Floats], Floats]]] = {
    "falling to 0": (0.08, lambda s: 0.25 * (1 - s)),
    "never below 2 %": (0.06, lambda s: 0.02 + 0.28 * (1 - s) ** 1.5),
    "good half, bad half": (0.05, lambda s: np.where(s > 0.5, 0.01, 0.3)),
    "worst at the top": (0.08, lambda s: np.where(s > 0.95, 0.12, 0.25 * (1 - s))),
    "six levels": (0.08, lambda s: 0.25 * (1 - np.floor(6 * s) / 6)),
}


def accept_before(correct: Bools, score: Floats, max_error: float, risk: float) -> float:
    """Return the threshold that twenty bounds at once allowed; ∞ if none."""
    ranked, rows = np.sort(score), len(score)
    thresholds = np.append(-np.inf, ranked[np.arange(1, 20) * rows // 20 - 1])
    above = score > thresholds[:, None]
    wrong, accepted = (above & ~correct).sum(axis=1), above.sum(axis=1)
    good = bdtr(wrong, np.maximum(accepted, 1), max_error) <= risk / 20
    good &= accepted > 0
    return float(thresholds[good][0]) if good.any() else np.inf


def accept_now(correct: Bools, score: Floats, max_error: float, risk: float) -> float:
    """Return the threshold of the walk; ∞ if none."""
    found = calibrate(correct, score, max_error, 1.0 - risk)
    picked = found.pick()
    return np.inf if picked is None else float(found.thresholds[picked])


def simulate(shape: str, rows: int, risk: float = 0.05) -> dict[str, float]:
    """Return the best coverage, and coverage and broken promises before and now."""
    max_error, error = SHAPES[shape]
    levels = np.floor(6 * FINE) / 6 if shape == "six levels" else FINE
    falling = error(FINE)[::-1]
    running = np.cumsum(falling) / np.arange(1, len(FINE) + 1)
    last = np.append(np.diff(levels[::-1]) != 0, True)
    found = {"best": float((np.flatnonzero((running <= max_error) & last).max() + 1) / len(FINE))}
    rng = np.random.default_rng(0)
    draws = [(rng.random(rows), rng.random(rows)) for _ in range(RUNS)]
    for name, rule in (("before", accept_before), ("now", accept_now)):
        covered, broken = 0.0, 0
        for drawn, luck in draws:
            score = np.floor(6 * drawn) / 6 if shape == "six levels" else drawn
            threshold = rule(luck >= error(drawn), score, max_error, risk)
            share = float((levels > threshold).mean())
            covered += share
            broken += bool(share and running[round(share * len(FINE)) - 1] > max_error)
        found |= {name: covered / RUNS, f"{name} broken": broken / RUNS}
    return found


def main() -> None:
    """Print a table."""
    print("| error | promise | rows | best possible | before | now | broken before | broken now |")
    print("|---|---|---|---|---|---|---|---|")
    for shape, (max_error, _) in SHAPES.items():
        for rows in (300, 1000, 3000):
            found = simulate(shape, rows)
            print(
                f"| {shape} | {max_error:.0%} | {rows:,} | {found['best']:.2f} | "
                f"{found['before']:.2f} | {found['now']:.2f} | {found['before broken']:.1%} | "
                f"{found['now broken']:.1%} |"
            )


if __name__ == "__main__":
    main()
