"""Lower expectations and bounds by their formulas, in whatever arithmetic the numbers bring."""

from tests.arithmetic import exp, log, log10, mpf, precision, sqrt


def exact_epsilon(q, f, delta):
    return (1 - delta) * expectation(q, f) + delta * min(f)


def exact_tv(q, f, delta):
    taken, value = delta, expectation(q, f)
    for v, p in sorted(zip(f, q, strict=True), reverse=True):
        share = min(taken, p)
        taken -= share
        value -= share * (v - min(f))
    return value


def exact_pari_mutuel(q, f, delta):
    left, value = 1, 0
    for v, p in sorted(zip(f, q, strict=True)):
        share = min(left, (1 + delta) * p)
        left -= share
        value += share * v
    return value


def exact_odds_ratio(q, f, delta):
    """Solve (1−δ)E(f−m)₊ = E(f−m)₋ on the piece of m between two values that holds its root."""

    def balance(m):
        above = sum(p * (v - m) for v, p in zip(f, q, strict=True) if v > m)
        below = sum(p * (m - v) for v, p in zip(f, q, strict=True) if v < m)
        return (1 - delta) * above - below

    ends = sorted({v for v, p in zip(f, q, strict=True) if p > 0})
    low = max(v for v in ends if balance(v) >= 0)
    later = [v for v in ends if v > low]
    if not later:
        return low
    start, end = balance(low), balance(later[0])
    return low + (later[0] - low) * start / (start - end)


def exact_chi2(q, f, delta):
    """Go down the level sets of f on the support, as in the docstring of ChiSquared."""
    support = [(mpf(v), mpf(p)) for v, p in zip(f, q, strict=True) if p > 0]
    for v in sorted({v for v, _ in support}, reverse=True):
        level = [(w, p) for w, p in support if w <= v]
        mass = sum(p for _, p in level)
        mean = sum(w * p for w, p in level) / mass
        variance = sum((w - mean) ** 2 * p for w, p in level) / mass
        excess = mass * (1 + delta) - 1
        if excess * (v - mean) ** 2 < variance:
            return mean - sqrt(variance * max(excess, 0))
    return min(v for v, _ in support)


def exact_kl(q, f, delta):
    """Solve KL(q_t‖q) = δ for the tilt t, with digits for what cancels, and take its mean."""
    low = min(v for v, p in zip(f, q, strict=True) if p > 0)
    span = max(v for v, p in zip(f, q, strict=True) if p > 0) - low
    if delta == 0 or span == 0:
        return expectation(q, f)
    digits = 60 + int(2 * max(0, -log10(delta)))
    with precision(digits):
        support = [((v - low) / span, p, v) for v, p in zip(f, q, strict=True) if p > 0]
        if delta >= -log(sum(p for u, p, _ in support if u == 0)):
            return low
        t = _exact_tilt(support, delta)
        weights = [p * exp(-t * u) for u, p, _ in support]
        return sum(w * v for w, (_, _, v) in zip(weights, support, strict=True)) / sum(weights)


def _exact_tilt(support, delta):
    """Bisect log t until Newton's method in log t can take over."""

    def measure(t):
        weights = [p * exp(-t * u) for u, p, _ in support]
        total = sum(weights)
        mean = sum(w * u for w, (u, _, _) in zip(weights, support, strict=True)) / total
        square = sum(w * u * u for w, (u, _, _) in zip(weights, support, strict=True)) / total
        return -t * mean - log(total), t * t * (square - mean * mean)

    left = log(8 * delta) / 2 - 1  # the divergence is at most t²/8
    right = log(3000 / min(u for u, _, _ in support if u > 0))
    for _ in range(45):
        middle = (left + right) / 2
        left, right = (middle, right) if measure(exp(middle))[0] < delta else (left, middle)
    for _ in range(4):
        divergence, slope = measure(exp(left))
        left += log(delta / divergence) * divergence / slope
    return exp(left)


def expectation(q, f):
    return sum(p * v for p, v in zip(q, f, strict=True))


EXACT = {
    "epsilon": exact_epsilon,
    "tv": exact_tv,
    "chi2": exact_chi2,
    "pari_mutuel": exact_pari_mutuel,
    "odds_ratio": exact_odds_ratio,
    "kl": exact_kl,
}

# The bounds as the tables of textbooks have them, for numbers of many digits; kl has none.
BOUNDS = {
    "epsilon": lambda q, d: ((1 - d) * q, (1 - d) * q + d),
    "tv": lambda q, d: (max(0, q - d), min(1, q + d)),
    "chi2": lambda q, d: (
        max(0, q - sqrt(d * q * (1 - q))),
        min(1, q + sqrt(d * q * (1 - q))),
    ),
    "pari_mutuel": lambda q, d: (max(0, (1 + d) * q - d), min(1, (1 + d) * q)),
    "odds_ratio": lambda q, d: ((1 - d) * q / (1 - d * q), q / (1 - d * (1 - q))),
}


def binary_divergence(x, q):
    """Return KL((x, 1−x)‖(q, 1−q))."""
    terms = ((x, q), (1 - x, 1 - q))
    return sum(a * log(a / b) for a, b in terms if a > 0)
