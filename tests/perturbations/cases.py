"""Random mass functions, values and sizes, and what the balls are by definition."""

from collections.abc import Callable

import numpy as np

from robustq.perturbations import Perturbation, get, names

BALLS = [get(name) for name in names()]
IDS = [ball.name for ball in BALLS]

Case = tuple[np.ndarray, np.ndarray, float]


def random_cases(ball: Perturbation, count: int, seed: int = 0) -> list[Case]:
    """Cases of 2 to 8 outcomes with zeros in q, tied f, tiny and extreme sizes."""
    rng = np.random.default_rng(seed)
    return [(*random_pair(rng), random_size(ball, rng)) for _ in range(count)]


def random_pair(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    outcomes = int(rng.integers(2, 9))
    q = rng.dirichlet(np.full(outcomes, rng.choice([0.3, 1.0, 5.0])))
    if rng.random() < 0.3:
        q[rng.integers(outcomes)] = 0.0
        q = q / q.sum()
    f = rng.normal(size=outcomes)
    if rng.random() < 0.4:
        f = np.round(f)  # ties
    return q, f


def random_size(ball: Perturbation, rng: np.random.Generator) -> float:
    end = min(ball.domain.end, 3.0)
    kind = rng.integers(5)
    if kind == 0:
        return 0.0
    if kind == 1:
        return float(10.0 ** -rng.uniform(2, 6))
    if kind == 2:
        return end if ball.domain.closed else end * (1 - 1e-6)
    return float(rng.uniform(0, end))


def divergence(name: str, q: np.ndarray, p: np.ndarray) -> float:
    """Return the size of the smallest ball around q that holds p, from the definition."""
    return float(_DIVERGENCES[name](q, p))


def _epsilon(q: np.ndarray, p: np.ndarray) -> float:
    on = q > 0
    return max(0.0, 1 - np.min(p[on] / q[on]))


def _chi2(q: np.ndarray, p: np.ndarray) -> float:
    on = q > 0
    return np.inf if np.any(p[~on] > 0) else np.sum((p[on] - q[on]) ** 2 / q[on])


def _pari_mutuel(q: np.ndarray, p: np.ndarray) -> float:
    on = q > 0
    return np.inf if np.any(p[~on] > 0) else max(0.0, np.max(p[on] / q[on]) - 1)


def _odds_ratio(q: np.ndarray, p: np.ndarray) -> float:
    on = q > 0
    if np.any(p[~on] > 0):
        return np.inf
    ratio = p[on] / q[on]
    return 1 - ratio.min() / ratio.max()


def _kl(q: np.ndarray, p: np.ndarray) -> float:
    on = p > 0
    return np.inf if np.any(q[on] == 0) else np.sum(p[on] * np.log(p[on] / q[on]))


_DIVERGENCES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "epsilon": _epsilon,
    "tv": lambda q, p: 0.5 * np.abs(p - q).sum(),
    "chi2": _chi2,
    "pari_mutuel": _pari_mutuel,
    "odds_ratio": _odds_ratio,
    "kl": _kl,
}
