"""The logarithm and the inverse of kernels, beside those of the C library."""

import numpy as np
import pytest

from robustq.core._inverse_kernels import about_inverse
from robustq.core._log_kernels import about_log, log1p_of, log_of
from robustq.kernels import float_vector, float_vector_out, kernel


@kernel((float_vector, float_vector_out))
def _take_logs(numbers, logs):
    for i in range(len(numbers)):
        logs[i] = log_of(numbers[i])


@pytest.mark.parametrize(
    ("low", "high"), [(-690.0, 690.0), (-1.0, 1.0), (-1e-8, 1e-8)], ids=["all", "near", "at 1"]
)
def test_logarithms_are_off_by_two_units_at_most(low, high):
    numbers = np.exp(np.random.default_rng(5).uniform(low, high, 20_000))
    numbers[:3] = 1.0, 2.0, 0.5
    logs = np.empty_like(numbers)
    _take_logs(numbers, logs)
    assert logs[0] == 0.0
    np.testing.assert_allclose(logs, np.log(numbers), rtol=4.5e-16, atol=0.0)


@kernel((float_vector, float_vector_out))
def _take_logs_of_more(numbers, logs):
    for i in range(len(numbers)):
        logs[i] = log1p_of(numbers[i])


@pytest.mark.parametrize(
    ("sign", "low", "high"),
    [(1.0, -40.0, 0.0), (1.0, -1.0, 1.0), (1.0, 0.0, 600.0), (-1.0, -40.0, 0.0), (-1.0, -1.0, 0.0)],
)
def test_logarithms_of_one_and_a_little_keep_their_digits(sign, low, high):
    numbers = sign * np.exp(np.random.default_rng(6).uniform(low, high, 20_000))
    numbers = np.append(numbers[numbers > -1.0 + 1e-9], 0.0)
    logs = np.empty_like(numbers)
    _take_logs_of_more(numbers, logs)
    assert logs[-1] == 0.0
    np.testing.assert_allclose(logs, np.log1p(numbers), rtol=7e-16, atol=0.0)


@kernel((float_vector, float_vector_out, float_vector_out))
def _take_few_digits(numbers, inverses, logs):
    for i in range(len(numbers)):
        inverses[i] = about_inverse(numbers[i])
        logs[i] = about_log(numbers[i])


@pytest.mark.parametrize(("low", "high"), [(-690.0, 690.0), (-1.0, 1.0), (-1e-8, 1e-8)])
def test_a_few_digits_are_what_is_said(low, high):
    numbers = np.exp(np.random.default_rng(7).uniform(low, high, 20_000))
    inverses, logs = np.empty_like(numbers), np.empty_like(numbers)
    _take_few_digits(numbers, inverses, logs)
    np.testing.assert_allclose(inverses, 1.0 / numbers, rtol=2e-8, atol=0.0)
    np.testing.assert_allclose(logs, np.log(numbers), rtol=0.0, atol=1e-5)
