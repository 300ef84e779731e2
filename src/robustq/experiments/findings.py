"""The paper's findings in words, each beside what our numbers say."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from robustq.rejection import Comparison

__all__ = ["Finding", "judge"]

Verdict = Literal["agrees", "agrees in part", "differs"]
HIGH = 0.5  # rates from here on are high
TIE = 1e-9
CLOSE = 0.005  # areas this near are similar: half a point of accuracy


class Finding(NamedTuple):
    """One sentence of the paper, and ours.

    Attributes
    ----------
    model : str
    claim : str
        What the paper says.
    ours : str
        What is seen here, with the numbers.
    verdict : str
    rule : str
        When we call it agreement.
    """

    model: str
    claim: str
    ours: str
    verdict: Verdict
    rule: str


def judge(tables: Mapping[str, Comparison]) -> list[Finding]:
    """Return what can be said about the paper's findings; nothing about what was not run."""
    found: list[Finding] = []
    for model, table in tables.items():
        view = _View(table)
        for claim in CLAIMS.get(model, ()):
            found += claim(view, model)
    return found


class _View:
    """A comparison, asked for means and wins by name."""

    def __init__(self, table: Comparison) -> None:
        self.table = table
        self.names = table.names
        self.rows = range(len(table.labels) - 1)
        self.rates = [float(table.labels[row].rstrip("%")) / 100 for row in self.rows]
        self.area = dict(zip(table.names, table.mean[-1].tolist(), strict=True))
        self.wins = dict(zip(table.names, table.wins[:-1].sum(axis=0).tolist(), strict=True))
        self.ranking = sorted(self.area, key=lambda name: -self.area[name])

    def best_at(self, name: str) -> list[float]:
        """Return the rates at which a name has the best mean; where all tie, nobody has."""
        column = self.names.index(name)
        best = self.table.is_best
        return [self.rates[r] for r in self.rows if best[r, column] and not best[r].all()]

    def rank(self, name: str) -> int:
        return 1 + sum(area > self.area[name] + TIE for area in self.area.values())

    def has(self, *names: str) -> bool:
        return set(names) <= set(self.names) and len(self.names) > 1

    def lead(self) -> str:
        return ", ".join(f"{name} {self.area[name]:.4f}" for name in self.ranking[:3])


def _grade(holds: object, *, in_part: object) -> Verdict:
    return "agrees" if holds else "agrees in part" if in_part else "differs"


def _judge_best(view: _View, model: str, *, name: str, high: bool) -> list[Finding]:
    if not view.has(name):
        return []
    where = "high" if high else "low"
    best = view.best_at(name)
    there = [rate for rate in best if (rate >= HIGH) == high]
    first = view.rank(name) == 1
    verdict = _grade(
        first and len(there) * 2 >= max(1, len(best)) and there, in_part=first or there
    )
    return [
        Finding(
            model,
            f"{name} seems to be the best, especially at {where} rejection rates.",
            f"By AU-ARC {name} is number {view.rank(name)} of {len(view.names)} (best: "
            f"{view.lead()}; {name} {view.area[name]:.4f}). It has the best mean accuracy at "
            f"{_list_rates(best)}.",
            verdict,
            f"first by AU-ARC, and at least half of the rates where it is best are {where} ones "
            f"({'from' if high else 'below'} {HIGH:.0%})",
        )
    ]


def _judge_wins(view: _View, model: str, *, name: str) -> list[Finding]:
    if not view.has(name):
        return []
    rank = 1 + sum(wins > view.wins[name] for wins in view.wins.values())
    most = max(view.wins, key=lambda other: view.wins[other])
    gap = view.area[view.ranking[0]] - view.area[name]
    verdict = _grade(rank <= 3 and gap <= CLOSE, in_part=rank <= 3 or gap <= CLOSE)
    return [
        Finding(
            model,
            f"{name} has a similar AU-ARC and does very well in the number of wins.",
            f"{name} has {view.wins[name]} wins over all rates, number {rank} of "
            f"{len(view.names)} (most: {most} with {view.wins[most]}); its AU-ARC is {gap:.4f} "
            "below the best.",
            verdict,
            f"among the three with the most wins, and within {CLOSE} of the best AU-ARC",
        )
    ]


def _judge_behind(view: _View, model: str) -> list[Finding]:
    if not view.has("r_epsilon", "r_tv", "r_chi2"):
        return []
    epsilon, others = view.area["r_epsilon"], [view.area["r_tv"], view.area["r_chi2"]]
    behind = max(others) - epsilon
    verdict = _grade(epsilon <= min(others) and behind <= CLOSE, in_part=behind <= CLOSE)
    return [
        Finding(
            model,
            "r_epsilon is just behind the other two robustness values.",
            f"AU-ARC: r_epsilon {epsilon:.4f}, r_tv {others[0]:.4f}, r_chi2 {others[1]:.4f}.",
            verdict,
            f"below both, by at most {CLOSE}",
        )
    ]


def _judge_strong(view: _View, model: str) -> list[Finding]:
    rivals = [name for name in view.names if name.startswith("u_")]
    if not view.has("u_e", "u_t") or len(rivals) < 3:
        return []
    by_area, by_wins = _best_two(rivals, view.area), _best_two(rivals, view.wins)
    seen = {"u_e", "u_t"} & {*by_area, *by_wins}
    verdict = _grade(len(seen) == 2, in_part=seen)
    return [
        Finding(
            model,
            "Of the uncertainty measures, u_e and u_t perform very well.",
            f"The two best, with those that tie, are {', '.join(by_area)} by AU-ARC and "
            f"{', '.join(by_wins)} by wins "
            f"(u_e: {view.area['u_e']:.4f}, {view.wins['u_e']} wins; u_t: {view.area['u_t']:.4f}, "
            f"{view.wins['u_t']} wins).",
            verdict,
            "each is among the two best of the uncertainty measures, by AU-ARC or by wins",
        )
    ]


def _best_two(names: list[str], value: Mapping[str, float]) -> list[str]:
    """Return the two best, and those that tie with the second."""
    second = sorted((value[name] for name in names), reverse=True)[1]
    return [name for name in names if value[name] >= second - TIE]


def _judge_competitive(view: _View, model: str) -> list[Finding]:
    ours = [name for name in ("r_epsilon", "r_tv", "r_chi2") if name in view.names]
    rivals = [name for name in view.names if name.startswith("u_")]
    if not ours or not rivals:
        return []
    best = max(rivals, key=lambda name: view.area[name])
    near = [name for name in ours if view.area[name] >= view.area[best] - CLOSE]
    verdict = _grade(near == ours, in_part=near)
    areas = ", ".join(f"{name} {view.area[name]:.4f}" for name in ours)
    return [
        Finding(
            model,
            "All robustness values are competitive, and need no retraining.",
            f"The best uncertainty measure is {best} with {view.area[best]:.4f}; {areas}.",
            verdict,
            f"each within {CLOSE} of the best uncertainty measure, or above it",
        )
    ]


def _list_rates(rates: list[float]) -> str:
    return ", ".join(f"{rate:.0%}" for rate in rates) if rates else "no rate"


# What the paper says of each of its models; of others it says nothing.
CLAIMS: Mapping[str, Sequence[Callable[[_View, str], list[Finding]]]] = {
    "nbc": (
        partial(_judge_best, name="r_chi2", high=True),
        partial(_judge_wins, name="r_epsilon"),
        _judge_strong,
        _judge_competitive,
    ),
    "gef": (
        partial(_judge_best, name="r_tv", high=False),
        _judge_behind,
        _judge_strong,
        _judge_competitive,
    ),
}
