"""Bring your own ball, and let it run as fast as the built-in ones.

The ball of size δ around q tells two stories at once. Of the records, a share of (1−w)δ was made
up (ε-contamination), and wδ of the mass sits on the wrong outcome (total variation). With w = 0 it
is the one, with w = 1 the other; in between it is known as a vertical barrier model
(Corsato, Pelessoni and Vicig 2019):

    lower q(A) = max(0, (1 − (1−w)δ) q(A) − wδ)    for every event A but the certain one .

Run it: python examples/fast_ball.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.perturbations import Domain, Form, Perturbation, get, register
from robustq.perturbations.forms import check_form

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MADE_UP, MISPLACED = get("epsilon"), get("tv")


@register
class Barrier(Perturbation):
    """A share (1−w)δ of the records is made up, and wδ of the mass is misplaced.

    Parameters
    ----------
    misplaced : float
        The weight w, from 0 to 1.
    """

    domain = Domain(1.0, closed=True)
    # The lower probability is a convex function of the probability, so it is 2-monotone.
    together = True

    def __init__(self, misplaced: float = 0.5) -> None:
        self.misplaced = misplaced

    # What it is: all that a ball needs.

    def lower_expectation(
        self, q: ArrayLike, f: ArrayLike, delta: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the smallest expectation of f over the ball of size delta around q."""
        q, f, delta = self.check(q, f, delta)
        worst = MADE_UP.minimising(q, f, (1.0 - self.misplaced) * delta)
        return MISPLACED.lower_expectation(worst, f, self.misplaced * delta)

    def minimising(self, q: ArrayLike, f: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
        """Return a mass function in the ball that attains the lower expectation."""
        q, f, delta = self.check(q, f, delta)
        worst = MADE_UP.minimising(q, f, (1.0 - self.misplaced) * delta)
        return MISPLACED.minimising(worst, f, self.misplaced * delta)

    # How to compute it fast. With x = δ/(1 − (1−w)δ) the bounds are
    #
    #     lower p = (p − wx)/(1 + (1−w)x) ,    upper p = (p + x)/(1 + (1−w)x) ,
    #
    # and by rows, with n of them behind p, x/n takes the place of x.

    def form(self, p: ArrayLike, rows: ArrayLike | None = None) -> Form:
        """Return the bounds as functions of one number x."""
        p = np.asarray(p, dtype=float)
        share = np.broadcast_to(1.0 / np.maximum(1.0 if rows is None else rows, 1e-150), p.shape)
        scale = (1.0 - self.misplaced) * share
        return Form(fall=self.misplaced * share, fall_scale=scale, rise=share, rise_scale=scale)

    def x_of(self, delta: ArrayLike, by_rows: bool = False) -> NDArray[np.float64]:
        """Return the x that belongs to a size."""
        delta = np.asarray(delta, dtype=float)
        if by_rows:
            return delta
        with np.errstate(divide="ignore"):  # with w = 0 and δ = 1 it is infinite
            return delta / (1.0 - (1.0 - self.misplaced) * delta)

    def delta_of(self, x: ArrayLike, by_rows: bool = False) -> NDArray[np.float64]:
        """Return the size that belongs to an x, infinite where x is: no size is so large."""
        x = np.asarray(x, dtype=float)
        finite = np.where(np.isinf(x), 0.0, x)
        return x if by_rows else x / (1.0 + (1.0 - self.misplaced) * finite)

    def local_size(self, delta: ArrayLike, rows: ArrayLike) -> NDArray[np.float64]:
        """Return δ/(n + (1−w)δ), the size that x = δ/n belongs to, or the end of the domain."""
        delta, rows = np.asarray(delta, dtype=float), np.asarray(rows, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):  # where there are no rows
            local = delta / (rows + (1.0 - self.misplaced) * delta)
        return np.where(delta > 0.0, np.minimum(local, 1.0), 0.0)


def main() -> None:
    """Show that the form says what the ball says, and what happens if it does not."""
    p = np.array([0.5, 0.3, 0.2])
    for weight in (0.0, 0.5, 1.0):
        ball = Barrier(weight)
        check_form(ball)  # raises if the form, or `together`, contradicts the lower expectation
        x = ball.x_of(0.1)
        lower, upper = ball.form(p).lower(p, x), ball.form(p).upper(p, x)
        print(f"w = {weight:.1f}: {p} becomes at least {lower.round(4)}, at most {upper.round(4)}")

    class Careless(Barrier):
        def form(self, p: ArrayLike, rows: ArrayLike | None = None) -> Form:
            form = super().form(p, rows)
            return form._replace(rise=form.fall)  # no: mass that is made up can go there too

    try:
        check_form(Careless())
    except ValueError as error:
        print(f"\nA wrong form does not get far:\n{error}")


if __name__ == "__main__":
    main()
