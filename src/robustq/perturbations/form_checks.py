"""Whether what a ball tells kernels about itself agrees with its lower expectation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robustq.exceptions import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Floats

    from .base import Perturbation
    from .domain import Domain

__all__ = ["find_fault"]

TOLERANCE = 1e-7
SAMPLES = 8
SHARES = np.array([0.0, 1e-3, 0.05, 0.2, 0.45, 0.7, 0.95])  # of a domain that ends
SIZES = np.array([0.0, 1e-3, 0.05, 0.3, 1.0, 4.0, 30.0, 1e3])  # of one that does not
RECORDS = np.array([0.0, 0.2, 1.0, 7.0, 300.0])
ROWS = np.array([0.0, 0.5, 1.0, 12.0, 1e4])

SIGNATURES = {
    "form": "(p, rows=None)",
    "local_size": "(delta, rows)",
    "x_of": "(delta, by_rows=False)",
    "delta_of": "(x, by_rows=False)",
}
NO_FORM = "or let form return None: slower, but right"


class _Sample(NamedTuple):
    """Mass functions, a value function for each, the rows behind each, and sizes."""

    q: Floats
    f: Floats
    rows: Floats
    sizes: Floats


class _Bounds(NamedTuple):
    """What a ball says of single outcomes: arrays of shape (mass functions, sizes, outcomes)."""

    lower: Floats
    upper: Floats


def find_fault(ball: Perturbation) -> str | None:
    """Return what is wrong with what a ball says of itself, or None."""
    with np.errstate(all="ignore"):
        try:
            for sample in _samples(ball.domain):
                _check_form(ball, sample, by_rows=False)
                _check_form(ball, sample, by_rows=True)
                _check_claims(ball, sample)
        except UnsupportedError as fault:
            return str(fault)
    return None


def _samples(domain: Domain) -> Iterator[_Sample]:
    """Draw random mass functions of two to five outcomes, one with a zero, and one certain."""
    for outcomes in range(2, 6):
        rng = np.random.default_rng(outcomes)
        q = np.concatenate(
            [
                rng.dirichlet(np.full(outcomes, concentration), size=SAMPLES // 2)
                for concentration in (0.7, 4.0)
            ]
        )
        q[0] = np.eye(outcomes)[0]
        q[1, 0] = 0.0
        q /= q.sum(axis=1, keepdims=True)
        yield _Sample(q, rng.normal(size=q.shape), rng.choice(ROWS, size=len(q)), _sizes(domain))


def _sizes(domain: Domain) -> Floats:
    return np.append(SHARES * domain.end, domain.largest) if np.isfinite(domain.end) else SIZES


def _check_form(ball: Perturbation, sample: _Sample, *, by_rows: bool) -> None:
    rows = np.broadcast_to(sample.rows[:, None], sample.q.shape) if by_rows else None
    form = _ask(ball, "form", sample.q, rows)
    if form is None:
        return
    for field in ("fall", "fall_scale", "rise", "rise_scale"):
        _shaped(ball, f"form(p, rows).{field}", getattr(form, field, None), sample.q.shape)
    sizes = RECORDS if by_rows else sample.sizes
    x = _check_inverse(ball, sizes, by_rows=by_rows)[:, None]
    delta = _local_sizes(ball, sample.rows) if by_rows else _spread_out(sample)
    bounds = _indicator_bounds(ball, sample.q, delta)
    p, form = sample.q[:, None, :], form._make(array[:, None, :] for array in form)
    mend = f"mend form, x_of{' or local_size' if by_rows else ''}, {NO_FORM}"
    for which, bound in (("lower", form.lower(p, x)), ("upper", form.upper(p, x))):
        whose = f"{which} bound of form(p, rows)" if by_rows else f"{which} bound of form(p)"
        texts = f"the {whose}", f"the {which} expectation of its indicator", mend
        expected = getattr(bounds, which)
        # An infinite x stands for the end of the domain, where no form is evaluated.
        got = np.where(np.isinf(x), expected, bound)
        _require_equal(ball, sample.q, delta, got, expected, texts)


def _check_inverse(ball: Perturbation, sizes: Floats, *, by_rows: bool) -> Floats:
    """Return what x_of makes of the sizes, if it grows from 0 and delta_of undoes it."""
    x = _shaped(ball, "x_of", _ask(ball, "x_of", sizes, by_rows), sizes.shape)
    if not (x[0] == 0.0 and np.all(np.diff(x) > 0.0)):
        msg = (
            f"{_name(ball)}.x_of must grow from 0: with by_rows={by_rows} it is {_list(x)} "
            f"at the sizes {_list(sizes)}"
        )
        raise UnsupportedError(msg)
    back = _shaped(ball, "delta_of", _ask(ball, "delta_of", x, by_rows), sizes.shape)
    wrong = np.isfinite(x) & ~(np.abs(back - sizes) <= TOLERANCE * sizes)
    if np.any(wrong):
        at = int(wrong.argmax())
        msg = (
            f"{_name(ball)}.delta_of is not the inverse of x_of: with by_rows={by_rows}, "
            f"x_of({sizes[at]:.6g}) is {x[at]:.6g} and delta_of({x[at]:.6g}) is {back[at]:.6g}; "
            "give both, or neither"
        )
        raise UnsupportedError(msg)
    return x


def _local_sizes(ball: Perturbation, rows: Floats) -> Floats:
    shape = (len(rows), len(RECORDS))
    local = _shaped(ball, "local_size", _ask(ball, "local_size", RECORDS, rows[:, None]), shape)
    outside = ~ball.domain.contains(local)
    if np.any(outside):
        i, j = np.argwhere(outside)[0]
        msg = (
            f"{_name(ball)}.local_size({RECORDS[j]:g}, rows={rows[i]:g}) is {local[i, j]:.6g}, "
            f"outside the domain {ball.domain}: cut it at the domain's end"
        )
        raise UnsupportedError(msg)
    return local


def _spread_out(sample: _Sample) -> Floats:
    return np.broadcast_to(sample.sizes, (len(sample.q), len(sample.sizes)))


def _indicator_bounds(ball: Perturbation, q: Floats, delta: Floats) -> _Bounds:
    at = q[:, None, None, :], np.eye(q.shape[1]), delta[:, :, None]
    shape = (*delta.shape, q.shape[1])
    lower = _shaped(ball, "lower_expectation", ball.lower_expectation(*at), shape)
    upper = _shaped(ball, "upper_expectation", ball.upper_expectation(*at), shape)
    return _Bounds(lower, upper)


def _check_claims(ball: Perturbation, sample: _Sample) -> None:
    if not (ball.together or ball.keeps_zero):
        return
    delta = _spread_out(sample)
    bounds = _indicator_bounds(ball, sample.q, delta)
    if ball.together:
        _check_pairs(ball, sample, bounds, delta)
        _check_choquet(ball, sample, delta)
    if ball.keeps_zero:
        _check_zeros(ball, sample, bounds, delta)


def _check_pairs(ball: Perturbation, sample: _Sample, bounds: _Bounds, delta: Floats) -> None:
    outcomes = sample.q.shape[1]
    for other in range(1, outcomes):
        # Each outcome against the one `other` places further on.
        f = np.eye(outcomes) - np.roll(np.eye(outcomes), other, axis=1)
        at = sample.q[:, None, None, :], f, delta[:, :, None]
        got = _shaped(ball, "lower_expectation", ball.lower_expectation(*at), bounds.lower.shape)
        expected = bounds.lower - np.roll(bounds.upper, -other, axis=2)
        texts = (
            f"the lower expectation of its indicator minus that of outcome +{other}",
            "its lower bound minus the upper bound of the other",
            "together = True says they are the same: give together = False",
        )
        _require_equal(ball, sample.q, delta, got, expected, texts)


def _check_choquet(ball: Perturbation, sample: _Sample, delta: Floats) -> None:
    order = np.argsort(sample.f, axis=1)
    q, f = (np.take_along_axis(array, order, axis=1) for array in (sample.q, sample.f))
    events = np.minimum(np.cumsum(q[:, ::-1], axis=1)[:, ::-1][:, 1:], 1.0)
    lower = ball.lower_probability(events[:, None, :], delta[:, :, None])
    shape = (*delta.shape, events.shape[1])
    lower = _shaped(ball, "lower_probability", lower, shape)
    integral = f[:, :1] + (np.diff(f, axis=1)[:, None, :] * lower).sum(axis=2)
    got = ball.lower_expectation(sample.q[:, None, :], sample.f[:, None, :], delta)
    got = _shaped(ball, "lower_expectation", got, delta.shape)
    texts = (
        "the lower expectation of some f",
        "the Choquet integral of its lower_probability",
        "together = True says they are the same: give together = False",
    )
    _require_equal(ball, sample.q, delta, got[..., None], integral[..., None], texts)


def _check_zeros(ball: Perturbation, sample: _Sample, bounds: _Bounds, delta: Floats) -> None:
    q = sample.q[:, None, :]
    mend = "keeps_zero = True says they are the same: give keeps_zero = False"
    for which, bound, at in (("upper", bounds.upper, 0.0), ("lower", bounds.lower, 1.0)):
        texts = f"the {which} expectation of its indicator", "its probability", mend
        expected = np.where(q == at, q, bound)
        _require_equal(ball, sample.q, delta, bound, expected, texts)


def _require_equal(
    ball: Perturbation,
    q: Floats,
    delta: Floats,
    got: Floats,
    expected: Floats,
    texts: tuple[str, str, str],
) -> None:
    """Raise if two numbers for the outcomes of q at the sizes delta differ (or are none)."""
    wrong = ~(np.abs(got - expected) <= TOLERANCE)
    if np.any(wrong):
        i, j, k = np.argwhere(wrong)[0]
        one, another, remedy = texts
        msg = (
            f"{_name(ball)} contradicts itself: for outcome {k} of q = {_list(q[i])} and "
            f"delta = {delta[i, j]:.6g}, {one} is {got[i, j, k]:.9g}, and {another} is "
            f"{expected[i, j, k]:.9g}; {remedy}"
        )
        raise UnsupportedError(msg)


def _ask(ball: Perturbation, method: str, *given: Any) -> Any:
    try:
        return getattr(ball, method)(*given)
    except TypeError as error:
        msg = f"{_name(ball)}.{method} must take {SIGNATURES[method]}: {error}"
        raise UnsupportedError(msg) from error


def _shaped(ball: Perturbation, what: str, given: object, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(given)
    if array.dtype.kind not in "fiu" or array.shape != shape:
        got = f"shape {array.shape}" if array.dtype.kind in "fiu" else repr(given)
        msg = f"{_name(ball)}.{what} must give floats of shape {shape}, got {got}"
        raise UnsupportedError(msg)
    return array.astype(np.float64, copy=False)


def _name(ball: Perturbation) -> str:
    return type(ball).__name__


def _list(array: Floats) -> str:
    return "[" + ", ".join(f"{number:.6g}" for number in array.tolist()) + "]"
