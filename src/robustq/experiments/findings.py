"""The paper's findings in words, each beside what our numbers say, and whether they can tell."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from .outcomes import CONFIDENCE, TIE, Interval, paired_band

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .outcomes import Outcome

__all__ = ["VERDICTS", "Finding", "judge"]

Verdict = Literal["holds", "differs", "cannot be told"]
VERDICTS: tuple[Verdict, ...] = ("holds", "differs", "cannot be told")
HIGH = 0.5  # rates from here on are high
SLIGHT = 0.001  # who is behind by less is not beaten: a tenth of a point of accuracy
CLOSE = 0.005  # areas this near are similar: half a point of accuracy
OURS = ("r_epsilon", "r_tv", "r_chi2")
WHERE = {"all": "", "high": " at high rejection rates", "low": " at low rejection rates"}


class Finding(NamedTuple):
    """One sentence of the paper, and ours.

    Attributes
    ----------
    model : str
    claim : str
        What the paper says.
    ours : str
        What is seen here, with the numbers and their bands.
    verdict : str
    seen : bool
        Whether our means say the same, surely or not.
    short : str
        What is seen here in a few words.
    rule : str
        When we say that it holds, and when that it differs.
    """

    model: str
    claim: str
    ours: str
    verdict: Verdict
    seen: bool
    short: str
    rule: str


def judge(outcomes: Mapping[str, Outcome]) -> list[Finding]:
    """Return what can be said about the paper's findings; nothing about what was not run.

    Every verdict is by paired bands over runs and data sets. A claim holds where all of its bands
    say so, and differs where one of them says the contrary: that one must be right among all, so
    it is widened. Otherwise it cannot be told.
    """
    found: list[Finding] = []
    for model, outcome in outcomes.items():
        for claim in CLAIMS.get(model, ()):
            found += claim(outcome, model)
    return found


class _Bands(NamedTuple):
    """How far one is ahead of another: alone, and as one of several comparisons."""

    rival: str
    alone: Interval
    among: Interval


def _compare(
    outcome: Outcome, name: str, rivals: Sequence[str], rows: Sequence[int] = (-1,)
) -> list[_Bands]:
    """Return the bands against each rival, the best of them first."""
    ordered = sorted(rivals, key=lambda rival: -outcome.mean(rival, rows))
    return [
        _Bands(
            rival,
            outcome.lead(name, [rival], rows),
            outcome.lead(name, [rival], rows, len(rivals)),
        )
        for rival in ordered
    ]


def _has(outcome: Outcome, *names: str) -> bool:
    return set(names) <= set(outcome.names) and len(outcome.names) > 1


def _decide(
    bands: Sequence[_Bands],
    holds: Callable[[Interval], bool],
    differs: Callable[[Interval], bool],
) -> tuple[Verdict, bool]:
    """Return the verdict, and whether the means alone say what the paper says."""
    means = [band.alone.mean for band in bands]
    seen = all(holds(Interval(mean, mean, mean)) for mean in means)
    if any(differs(band.among) for band in bands):
        return "differs", seen
    return ("holds" if all(holds(band.alone) for band in bands) else "cannot be told"), seen


def _is_ahead(lead: Interval) -> bool:
    return lead.low > TIE


def _is_beaten(lead: Interval) -> bool:
    return lead.high < 0.0 and lead.mean < -SLIGHT


def _judge_best(outcome: Outcome, model: str, *, name: str, where: str) -> list[Finding]:
    rows = _choose_rows(outcome, where)
    if not _has(outcome, name) or not rows:
        return []
    bands = _compare(outcome, name, [other for other in outcome.names if other != name], rows)
    verdict, seen = _decide(bands, _is_ahead, _is_beaten)
    beaten = [band.rival for band in bands if _is_beaten(band.among)]
    first, place = bands[0], 1 + sum(band.alone.mean < -TIE for band in bands)
    measure = "AU-ARC" if where == "all" else f"mean accuracy{WHERE[where]}"
    ours = (
        f"By {measure} {name} ({outcome.mean(name, rows):.4f}) is number {place} of "
        f"{len(outcome.names)}. Against {first.rival}, the best of the others "
        f"({outcome.mean(first.rival, rows):.4f}), it is {_say(first.alone)}."
    )
    if where == "all":
        ours += (
            f" Its mean rank is {outcome.ranks[name]:.1f}; to tell from {outcome.data_sets} "
            f"data sets, mean ranks must differ by {outcome.critical_difference:.1f}."
        )
    if beaten:
        ours += f" Surely ahead of it: {', '.join(beaten)}."
    return [
        Finding(
            model,
            f"{name} seems to be the best{WHERE[where]}.",
            ours,
            verdict,
            seen,
            f"number {place} of {len(outcome.names)}",
            f"it holds if {name} is surely ahead of every other, and differs if one is surely "
            f"ahead of it, by more than {SLIGHT} on average",
        )
    ]


def _choose_rows(outcome: Outcome, where: str) -> list[int]:
    """Return rows of the values; where nothing is rejected yet, all are equal."""
    if where == "all":
        return [-1]
    rates = enumerate(outcome.rates)
    return [row for row, rate in rates if rate > 0.0 and (rate >= HIGH) == (where == "high")]


def _judge_wins(outcome: Outcome, model: str, *, name: str) -> list[Finding]:
    if not _has(outcome, name):
        return []
    column = outcome.names.index(name)
    more = [_count_more_wins(outcome, column, margin) for margin in (TIE, SLIGHT)]
    # Who is always a little behind the best has no wins at all, and is not beaten for that.
    band = _Bands("the others", more[0], max(more, key=lambda lead: lead.high))
    verdict, seen = _decide([band], _is_ahead, lambda lead: lead.high < 0.0)
    total = outcome.wins().sum(axis=0)
    most = outcome.names[int(total.argmax())]
    place = 1 + int((total > total[column]).sum())
    return [
        Finding(
            model,
            f"{name} does very well in the number of wins.",
            f"{name} has {total[column]:.0f} wins over all rates, number {place} of "
            f"{len(outcome.names)} (most: {most} with {total.max():.0f}). On a data set it has "
            f"{_say(band.alone, '+.1f')} compared with the mean of the others.",
            verdict,
            seen,
            f"number {place} of {len(outcome.names)}",
            "it holds if it surely has more wins on a data set than the others have on average, "
            f"and differs if surely fewer, also where {SLIGHT} below the best counts as a win",
        )
    ]


def _count_more_wins(outcome: Outcome, column: int, margin: float) -> Interval:
    """Return how many more wins one has on a data set than the others have on average."""
    wins = outcome.wins(margin)
    others = (wins.sum(axis=1) - wins[:, column]) / (len(outcome.names) - 1)
    return paired_band((wins[:, column] - others)[:, None])


def _judge_similar(outcome: Outcome, model: str) -> list[Finding]:
    if not _has(outcome, *OURS):
        return []
    bands = _compare(outcome, OURS[0], OURS[1:])
    verdict, seen = _decide(
        bands,
        holds=lambda lead: lead.low >= -CLOSE and lead.high <= CLOSE,
        differs=lambda lead: lead.low > CLOSE or lead.high < -CLOSE,
    )
    return [
        Finding(
            model,
            "r_epsilon has a similar AU-ARC as r_tv and r_chi2.",
            f"AU-ARC of r_epsilon: {outcome.mean(OURS[0]):.4f}; {_say_all(bands)}.",
            verdict,
            seen,
            _say_short(bands),
            f"it holds if it is surely within {CLOSE} of both, and differs if surely not",
        )
    ]


def _judge_behind(outcome: Outcome, model: str) -> list[Finding]:
    if not _has(outcome, *OURS):
        return []
    bands = _compare(outcome, OURS[0], OURS[1:])
    verdict, seen = _decide(
        bands,
        holds=lambda lead: lead.low >= -CLOSE and lead.high < 0.0,
        differs=lambda lead: (lead.low > 0.0 and lead.mean > SLIGHT) or lead.high < -CLOSE,
    )
    return [
        Finding(
            model,
            "r_epsilon is just behind the other two robustness values.",
            f"AU-ARC of r_epsilon: {outcome.mean(OURS[0]):.4f}; {_say_all(bands)}.",
            verdict,
            seen,
            _say_short(bands),
            f"it holds if it is surely behind both, by at most {CLOSE}, and differs if it is "
            f"surely ahead of one, by more than {SLIGHT} on average, or further behind",
        )
    ]


def _judge_strong(outcome: Outcome, model: str) -> list[Finding]:
    strong = ("u_e", "u_t")
    others = [name for name in outcome.names if name.startswith("u_") and name not in strong]
    if not _has(outcome, *strong) or not others:
        return []
    bands = [
        _Bands(
            name, outcome.lead(name, others), outcome.lead(name, others, comparisons=len(strong))
        )
        for name in strong
    ]
    verdict, seen = _decide(bands, _is_ahead, _is_beaten)
    told = "; ".join(f"{b.rival} ({outcome.mean(b.rival):.4f}) is {_say(b.alone)}" for b in bands)
    return [
        Finding(
            model,
            "Of the uncertainty measures, u_e and u_t perform very well.",
            f"By AU-ARC, against the mean of the other uncertainty measures: {told}.",
            verdict,
            seen,
            ", ".join(f"{b.rival} {b.alone.mean:+.4f}" for b in bands),
            "it holds if both are surely ahead of the mean of the other uncertainty measures, and "
            f"differs if one is surely behind, by more than {SLIGHT} on average",
        )
    ]


def _judge_competitive(outcome: Outcome, model: str) -> list[Finding]:
    ours = [name for name in OURS if name in outcome.names]
    rivals = [name for name in outcome.names if name.startswith("u_")]
    if not ours or not rivals:
        return []
    bands = {name: _compare(outcome, name, rivals) for name in ours}
    verdict, seen = _decide(
        [band for found in bands.values() for band in found],
        holds=lambda lead: lead.low >= -CLOSE,
        differs=lambda lead: lead.high < -CLOSE,
    )
    best = bands[ours[0]][0].rival
    told = "; ".join(f"{name} is {_say(found[0].alone)}" for name, found in bands.items())
    return [
        Finding(
            model,
            "All robustness values are competitive, without retraining.",
            f"Against {best}, the best uncertainty measure by AU-ARC ({outcome.mean(best):.4f}): "
            f"{told}.",
            verdict,
            seen,
            ", ".join(f"{name} {found[0].alone.mean:+.4f}" for name, found in bands.items()),
            f"it holds if none of them is behind any uncertainty measure by more than {CLOSE}, "
            "surely, and differs if one surely is",
        )
    ]


def _say(band: Interval, form: str = "+.4f") -> str:
    if band.low == float("-inf"):
        return f"{band.mean:{form}} (one data set gives no band)"
    return f"{band.mean:{form}} ({CONFIDENCE:.0%} band {band.low:{form}} to {band.high:{form}})"


def _say_all(bands: list[_Bands]) -> str:
    return "; ".join(f"against {band.rival} {_say(band.alone)}" for band in bands)


def _say_short(bands: list[_Bands]) -> str:
    return ", ".join(f"{band.alone.mean:+.4f} to {band.rival}" for band in bands)


# What the paper says of each of its models; of others it says nothing.
CLAIMS: Mapping[str, Sequence[Callable[[Outcome, str], list[Finding]]]] = {
    "nbc": (
        partial(_judge_best, name="r_chi2", where="all"),
        partial(_judge_best, name="r_chi2", where="high"),
        _judge_similar,
        partial(_judge_wins, name="r_epsilon"),
        _judge_strong,
        _judge_competitive,
    ),
    "gef": (
        partial(_judge_best, name="r_tv", where="all"),
        partial(_judge_best, name="r_tv", where="low"),
        _judge_behind,
        _judge_strong,
        _judge_competitive,
    ),
}
