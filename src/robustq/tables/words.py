"""Texts that repeat, as dictionaries of those that differ."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["encode_words"]

FEW_ROWS = 1 << 12  # Arrow is done with them before a kernel is found
MOST_WORDS = 1 << 12  # of more, they hardly repeat
LEAST_BYTES = 16


def encode_words(values: pa.StringArray) -> pa.DictionaryArray:
    """Return texts as a dictionary, its words in the order in which they first come.

    It is what `dictionary_encode` makes, in a quarter of the time where words are few and short.

    Examples
    --------
    >>> encode_words(pa.array(["b", "a", "b"])).indices.to_pylist()
    [0, 1, 0]
    """
    _, offsets, text = values.buffers()
    if len(values) < FEW_ROWS or values.null_count or text is None or text.size < LEAST_BYTES:
        return values.dictionary_encode()
    from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

    starts = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    # One begins at every byte: the last one, where the last eight bytes do.
    eights = np.ndarray(text.size - 7, np.uint64, text, strides=(1,))
    slots = 1 << _kernels.SLOT_BITS
    firsts, codes = np.empty(MOST_WORDS, np.int32), np.empty(len(values), np.int32)
    room = np.empty(slots, np.uint64), np.zeros(slots, np.int32)
    count = _kernels.find_words(eights, starts, *room, firsts, codes)
    if count < 0:
        return values.dictionary_encode()
    words = values.take(pa.array(firsts[:count]))
    # Every code is that of a word.
    return pa.DictionaryArray.from_arrays(pa.array(codes), words, safe=False)
