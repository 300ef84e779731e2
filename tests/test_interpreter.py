"""What is small is interpreted: to the last digit as it is compiled, and not for long."""

import math
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from numba import types
from numba.core.caching import NullCache
from sklearn.ensemble import RandomForestClassifier

import robustq
from robustq import BayesianNetworkClassifier, GenerativeForestClassifier, NaiveBayesClassifier
from robustq.interpreter import MOST_NUMBERS, PATIENCE, Interpreted, _flatten
from robustq.kernels import (
    KERNELS,
    MEANINGS,
    _declare,
    count_bits,
    float_vector,
    float_vector_out,
    fused,
    inner,
    kernel,
    lowest_bit,
)

from .compiling import load

words = types.Array(types.uint64, 1, "C")
signature = types.void(float_vector, float_vector_out)


@inner
def invert(x):
    return 1.0 / x


def write_inverse(xs, out):
    for i in range(len(xs)):
        out[i] += invert(xs[i])


def write_bits(given, out):
    for i in range(len(given)):
        out[0] += count_bits(given[i])
        out[1] += lowest_bit(given[i])


def write_logarithms(xs, out):
    for i in range(len(xs)):
        out[i] += 1.0
        out[i] += math.log(xs[i])


@fused
def add_product(x, y):
    return x * x + y


def write_fused(xs, out):
    for i in range(len(xs)):
        out[i] = add_product(xs[i], out[i])


class Compared:
    """A compiled kernel of which every call that may be interpreted is, too."""

    def __init__(self, tiers, compiled, calls):
        function, signature, _ = tiers._made
        self.name, self.compiled, self.calls = function.__qualname__, compiled, calls
        self.interpreted = Interpreted(function, signature, MEANINGS)

    def __call__(self, *arguments):
        other = _copy(arguments)
        found = self.compiled(*arguments)
        try:
            result = self.interpreted(other)
        except LookupError:
            return found  # and it would have been compiled
        assert np.asarray(result).tobytes() == np.asarray(found).tobytes(), self.name
        for one, two in zip(_flatten(other), _flatten(arguments), strict=True):
            if isinstance(one, np.ndarray):
                same = one.tobytes() == two.tobytes() or _differ_in_nan_alone(one, two)
                assert same, self.name
        self.calls[self.name] = self.calls.get(self.name, 0) + 1
        return found


def _copy(given):
    if isinstance(given, tuple):
        return tuple(map(_copy, given))
    return given.copy() if isinstance(given, np.ndarray) else given


def _differ_in_nan_alone(one, two):
    """NaN has no digits, whatever its bits."""
    if one.dtype.kind != "f":
        return False
    gaps = np.isnan(one)
    return np.array_equal(gaps, np.isnan(two)) and one[~gaps].tobytes() == two[~gaps].tobytes()


@pytest.fixture
def calls(monkeypatch):
    """Let all kernels compare; how many calls of each could be interpreted."""
    counted: dict[str, int] = {}
    load()
    for prepare in KERNELS.values():
        tiers = cast("Any", prepare).__self__
        prepare()
        try:
            monkeypatch.setattr(tiers, "compiled", Compared(tiers, tiers.compiled, counted))
        except LookupError:
            continue
    return counted


def make_table(seed, rows=40):
    """Return rows of few and many categories, numbers and gaps, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2 + seed % 3, rows)
    X = {
        "few": (y + rng.integers(0, 3, rows)) % 4,
        "words": rng.choice(["a", "b", "c"], rows).astype(object),
        "many": np.array([f"v{number}" for number in rng.integers(0, 90, rows)], dtype=object),
        "number": y + rng.normal(size=rows),
    }
    X["words"][rng.random(rows) < 0.2] = None
    return X, y


FOREST = GenerativeForestClassifier
MODELS = {
    "naive Bayes": NaiveBayesClassifier,
    "forest": lambda: FOREST(4, random_state=0),
    "additive": lambda: FOREST(3, smoothing=1, criterion="entropy", random_state=1),
    "likelihood": lambda: FOREST(3, leaves="likelihood", max_depth=3, random_state=2),
    "numbers": lambda: FOREST(3, leaves="additive", min_samples_leaf=3, random_state=3),
    "tan": lambda: BayesianNetworkClassifier("tan"),
    "aode": lambda: BayesianNetworkClassifier("aode"),
}

GROWN = ("grow", "share", "find_entries", "count_values", "estimate", "find_ends")
# Some of what each calls.
SOME = dict.fromkeys(MODELS, GROWN) | {"naive Bayes": ("count", "solve"), "tan": (), "aode": ()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_kernels_are_interpreted_to_the_last_digit(name, seed, calls):
    X, y = make_table(seed)
    narrow = {column: X[column] for column in ("few", "words")}
    weights = np.random.default_rng(seed).integers(1, 4, len(y)) / 2.0
    for columns in map(pa.table, (X, narrow)):
        model = MODELS[name]().fit(columns, y, sample_weight=weights)
        model.predict_proba(columns)
        model.assess(columns, ["epsilon", "tv"])
        model.robustness(columns, "idm" if name == "naive Bayes" else "tv_all")
        model.robustness(columns.slice(0, 2), "kl")
        model.credal_predict(columns.slice(0, 2), "chi2", 0.01)
    assert set(SOME[name]) <= set(calls), calls


def test_votes_are_interpreted_to_the_last_digit(calls):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 3
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    robustq.robustness(forest, X, "tv", parts="all")
    assert calls


def declare(function, kind=signature):
    """Return a kernel that is nowhere on disk, and what knows how it is run."""
    called = kernel(kind)(function)
    prepare: Any = KERNELS.pop(f"{function.__module__}.{function.__qualname__}")
    tiers = prepare.__self__
    tiers._find = lambda: None
    tiers._dispatcher = _declare(function, kind, allocates=False)
    tiers._dispatcher._cache = NullCache()
    tiers._interpreted = Interpreted(function, kind, MEANINGS)
    return called, tiers


def test_what_is_small_is_not_compiled_until_it_takes_long():
    call, tiers = declare(write_inverse)
    out = np.zeros(3)
    call(np.array([1.0, 4.0, 0.0]), out)
    assert out.tolist() == [1.0, 0.25, np.inf]
    assert tiers.compiled is None
    assert 0.0 < tiers._patience < PATIENCE
    tiers._patience = 0.0
    call(np.array([1.0, 4.0, 0.0]), out)
    assert out.tolist() == [2.0, 0.5, np.inf]
    assert tiers.compiled is not None


def test_what_is_large_is_compiled_at_once():
    call, tiers = declare(write_inverse)
    call(np.ones(MOST_NUMBERS), np.zeros(MOST_NUMBERS))
    assert tiers.compiled is not None


def test_what_python_refuses_to_compute_is_compiled_and_written_once():
    call, tiers = declare(write_logarithms)
    out = np.zeros(2)
    call(np.array([1.0, -1.0]), out)
    assert out[0] == 1.0
    assert np.isnan(out[1])
    assert tiers.compiled is not None


def test_bits_are_counted_as_by_the_instructions():
    rng = np.random.default_rng(0)
    given = rng.integers(1, 2**63, 50, dtype=np.uint64) >> rng.integers(0, 62, 50, dtype=np.uint64)
    given[given == 0] = 1
    kind = types.void(words, words)
    one, two = np.zeros(3, dtype=np.uint64), np.zeros(3, dtype=np.uint64)
    call, tiers = declare(write_bits, kind)
    call(given, one)
    tiers.compile()
    call(given, two)
    assert one.tolist() == two.tolist()


def test_what_may_have_other_digits_is_not_interpreted():
    with pytest.raises(LookupError):
        Interpreted(write_fused, signature, MEANINGS)
    with pytest.raises(LookupError):
        Interpreted(write_inverse, types.void(types.Array(types.float32, 1, "C")), MEANINGS)
