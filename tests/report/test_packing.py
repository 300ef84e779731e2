"""Numbers and lists of a page, written shortly and read again."""

import base64
import json

import numpy as np
import pytest

from robustq import GenerativeForestClassifier, datasets
from robustq.report import make_exploration
from robustq.report.packing import as_json, fold, pack


def unpack(packed):
    """Return what page.js reads."""
    if isinstance(packed, list):
        return np.array(packed)
    if "values" in packed:
        return unpack(packed["values"])[unpack(packed["at"])]
    return np.frombuffer(base64.b64decode(packed["data"]), dtype=packed["type"])


def unfold(told):
    """Return what page.js does."""
    if "plain" in told:
        return told["plain"]
    if "numbers" in told:
        return unpack(told["numbers"]).tolist()
    if "lengths" in told:
        items = iter(unfold(told["of"]))
        return [[next(items) for _ in range(length)] for length in unpack(told["lengths"])]
    columns = [[iter(unfold(column)) for column in one["of"]] for one in told["records"]]
    return [
        dict(zip(told["records"][k]["names"], map(next, columns[k]), strict=True))
        for k in unpack(told["which"])
    ]


@pytest.mark.parametrize(
    "numbers",
    [
        np.random.default_rng(0).random(500),
        np.random.default_rng(0).choice([0.1, 1 / 3, 5e-324], 500),
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5]),
        np.array([0.0, -0.0]),
        np.arange(-3, 200),
        np.arange(300) + 2**40,
        np.arange(7.0),
        np.empty(0),
    ],
    ids=lambda numbers: str(numbers[:3]),
)
def test_packed_numbers_are_the_same_to_the_last_bit(numbers):
    found = unpack(json.loads(as_json(pack(numbers)))).astype(np.float64)
    expected = numbers.astype(np.float64)
    assert found.tobytes() == expected.tobytes()


def test_numbers_to_be_looked_at_lose_digits_only_where_nobody_sees_it():
    rng = np.random.default_rng(0)
    few = np.sort(rng.random(100))
    assert pack(few, shown=True)["type"] == "float32"
    np.testing.assert_allclose(unpack(pack(few, shown=True)), few, rtol=1e-6)
    close = np.array([*few, few[0] * (1 + 1e-12)])
    tiny = np.array([*few, 1e-60])
    for numbers in (close, tiny):
        assert unpack(pack(numbers, shown=True)).tobytes() == numbers.tobytes()


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1, 2.5, 3],
        [[1, 2], [], [3]],
        [{"a": 1, "b": [1, 2]}, {"c": None}, {"a": 0.1, "b": []}],
        [None, {"a": 1}, [2]],
        ["x", "y"],
        [True, 1],
        [[{"probs": [0.1, 0.9]}], [{"probs": [0.2]}, {"low": None, "high": 3.0}]],
    ],
    ids=str,
)
def test_folded_lists_are_the_same_again(values):
    assert unfold(json.loads(as_json(fold(values)))) == values


def test_the_page_of_a_default_forest_is_small_and_holds_the_whole_model():
    german = datasets.load("german")
    model = GenerativeForestClassifier(random_state=0).fit(german.X, german.y)
    page = make_exploration(model, german.X, german.y)
    assert page.megabytes < 1.5
    text = page.text.partition('id="data">')[2].partition("</script>")[0]
    document = json.loads(text)["model"]["document"]
    assert unfold(document["trees"]["folded"]) == model.to_dict()["trees"]
