"""Races: ours and theirs in turn, round after round, so that a slow minute hits both alike."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from robustq.blocks import count_cores
from robustq.exceptions import RobustqError

from .figures import Figure, summarise

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Race", "run", "timed"]

SHORTEST = 0.05  # seconds; what is shorter is called several times
BUDGET = 30.0  # seconds after which a race has no further round


@dataclass(frozen=True)
class Race:
    """Something to measure.

    Parameters
    ----------
    table, name : str
        What it is; together they tell it from all others.
    ours, theirs : callable
        Return seconds; see `timed`. Without `theirs`, ours counts by itself.
    prepare : callable, optional
        Called once before: compiles; then ours runs once, unmeasured. If it raises a
        `RobustqError`, there is nothing to measure.
    limit : float, optional
        What was promised: the most that the ratio, or ours by itself, may be.
    scale : float
        What a ratio is multiplied by where ours does more work than theirs.
    unit : str
        Of what is returned.
    rounds : int, optional
        The most rounds, where each is long.
    """

    table: str
    name: str
    ours: Callable[[], float]
    theirs: Callable[[], float] | None = None
    prepare: Callable[[], object] | None = None
    limit: float | None = None
    scale: float = 1.0
    unit: str = "s"
    rounds: int | None = None


@dataclass
class _Times:
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def add_round(self, race: Race) -> None:
        first, second = (race.ours, self.ours), (race.theirs, self.theirs)
        # Who comes second finds a warmer or a fuller cache: take turns.
        order = (first, second) if len(self.ours) % 2 == 0 else (second, first)
        for measure, times in order:
            if measure is not None:
                times.append(measure())


def timed(
    call: Callable[[], object], clock: Callable[[], float] | None = None
) -> Callable[[], float]:
    """Return what measures the seconds of a call.

    On one core they are seconds of the processor, so that what others do there meanwhile does not
    count; on several they are those of the wall.
    """
    clock = clock or (time.process_time if count_cores() == 1 else time.perf_counter)

    def measure() -> float:
        calls, start = 0, clock()
        while True:
            call()
            calls += 1
            seconds = clock() - start
            if seconds >= SHORTEST:
                return seconds / calls

    return measure


def run(race: Race, rounds: int, doubtful: Callable[[Figure], bool] = lambda _: False) -> Figure:
    """Run a race, and sum it up.

    Parameters
    ----------
    race : Race
    rounds : int
        How many rounds; fewer, but at least one, if they take long.
    doubtful : callable
        Told a figure, says whether to run twice as many rounds more before it is believed.
    """
    rounds = min(rounds, race.rounds or rounds)
    times = _Times()
    try:
        if race.prepare is not None:
            race.prepare()
            race.ours()  # a few rows may be left to Python; and rare ones have kernels of their own
        figure = _extend(race, times, rounds)
        if doubtful(figure):
            figure = _extend(race, times, 2 * rounds)
    except RobustqError as error:
        return Figure(race.table, race.name, race.unit, limit=race.limit, note=str(error))
    return figure


def _extend(race: Race, times: _Times, rounds: int) -> Figure:
    start = time.perf_counter()
    for _ in range(rounds):
        times.add_round(race)
        if time.perf_counter() - start > BUDGET:
            break
    figure = Figure(race.table, race.name, race.unit, limit=race.limit)
    return summarise(figure, times.ours, times.theirs, race.scale)
