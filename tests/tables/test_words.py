"""Words as a dictionary: what Arrow makes of them, whatever they are."""

import numpy as np
import pyarrow as pa
import pytest

from robustq.tables import _word_kernels, words
from robustq.tables.words import MOST_WORDS, encode_words

LONG = "a word of more than eight bytes"


@pytest.fixture(autouse=True)
def _never_left_to_arrow(monkeypatch):
    monkeypatch.setattr(words, "FEW_ROWS", 0)


def check(values):
    found = encode_words(values)
    found.validate(full=True)
    assert found.equals(values.dictionary_encode())
    return found


@pytest.mark.parametrize(
    "texts",
    [
        ["b", "a", "b", "", "a", "c" * 20],
        ["", "\0", "\0\0", "", "\0" * 7, "\0" * 8, "\0" * 9],  # told apart by their length alone
        ["1234567", "12345678", "123456789", "12345678", "1234567"],
        [f"{LONG}, {middle}, {LONG}" for middle in ["one", "two", "one", "six"]],
        [f"{LONG}{end}" for end in "abcab"],
        ["é", "ê", "日本語", "é", "日本語だよ", "日本語"],
        ["x" * 16, ""],  # the last one begins behind the last byte
        ["x" * 15, "y"],
    ],
)
def test_words_are_encoded_as_arrow_does(texts):
    check(pa.array(texts))


@pytest.mark.parametrize("seed", range(5))
def test_random_words_are_encoded_as_arrow_does(seed):
    rng = np.random.default_rng(seed)
    known = ["".join(rng.choice(["a", "b", "é"], rng.integers(0, 30))) for _ in range(300)]
    check(pa.array(rng.choice(known, 5000).tolist()))


def test_a_part_of_a_column_is_encoded_by_itself():
    whole = pa.array([f"word {n % 7}" for n in range(100)])
    found = check(whole.slice(3, 5))
    assert found.dictionary.to_pylist() == [f"word {n}" for n in (3, 4, 5, 6, 0)]


@pytest.mark.parametrize("count", [MOST_WORDS, MOST_WORDS + 1])
def test_there_may_be_any_number_of_words(count):
    check(pa.array([f"number {n % count}" for n in range(count + 10)]))


@pytest.mark.parametrize("texts", [[], [""] * 20, ["a", "b"], ["value"] * 9 + [None]])
def test_what_the_kernel_does_not_take_is_left_to_arrow(texts):
    check(pa.array(texts, pa.string()))


def test_words_whose_bytes_give_one_number_are_told_apart():
    one, other = find_twins()
    assert one != other
    assert digest(one) == digest(other)
    check(pa.array([one, other, one, other + "!"]))


def digest(word):
    """Return what the kernel makes of a word of sixteen bytes."""
    head, tail = (int.from_bytes(word.encode()[at : at + 8], "little") for at in (0, 8))
    key = tail ^ len(word)
    return ((key ^ key >> 32) * _word_kernels.SCATTER ^ head) % (1 << 63)


def find_twins():
    """Return two words of sixteen bytes with the same digest: a head makes up for another tail."""
    one = "\0" * 8 + "number 0"
    for tail in (f"number {chr(code)}" for code in range(ord("1"), 128)):
        head = (digest("\0" * 8 + tail) ^ digest(one)).to_bytes(8, "little")
        if head.isascii():
            return one, head.decode() + tail
    pytest.fail("there are none")
