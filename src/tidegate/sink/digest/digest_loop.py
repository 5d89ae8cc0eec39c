"""The loops of a digest: mix the cells of a column into the hashes of rows, fold rows in order.

`digest_array` is their plain twin, for few rows; both give the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part
from tidegate.sink.digest.digest_array import BASE, M1, M2, NULL, PRIME, SEED

_U64 = np.uint64
_SEED, _M1, _M2, _NULL = _U64(SEED), _U64(M1), _U64(M2), _U64(NULL)
_S27, _S30, _S31, _S61 = _U64(27), _U64(30), _U64(31), _U64(61)
_S3, _S8, _S29, _S32 = _U64(3), _U64(8), _U64(29), _U64(32)
_LOW32, _LOW29 = _U64(2**32 - 1), _U64(2**29 - 1)
_PRIME, _BASE = _U64(PRIME), _U64(BASE)
_ZERO, _ONE = _U64(0), _U64(1)


@part
def _mixed(word: Any) -> Any:
    """The finaliser of splitmix64."""
    word = word + _SEED
    word = (word ^ (word >> _S30)) * _M1
    word = (word ^ (word >> _S27)) * _M2
    return word ^ (word >> _S31)


@part
def _reduced(number: Any) -> Any:
    """A number modulo the prime 2**61 - 1."""
    # 2**61 is 1 modulo the prime, so the bits above it are simply added to those below.
    number = (number & _PRIME) + (number >> _S61)
    return number - _PRIME if number >= _PRIME else number


@part
def _product(a: Any, b: Any) -> Any:
    """The product of two numbers below 2**61, modulo the prime."""
    # Schoolbook multiplication in halves of 32 bits, because 64 bits cannot hold the product. The
    # high product counts 2**64 = 8 * 2**61, which is 8; the upper bits of `middle` count 2**61.
    a_high, a_low, b_high, b_low = a >> _S32, a & _LOW32, b >> _S32, b & _LOW32
    middle = a_high * b_low + a_low * b_high
    low = a_low * b_low
    high = a_high * b_high * _U64(8) + (middle >> _S29)
    return _reduced(_reduced(high) + _reduced((middle & _LOW29) << _S32) + _reduced(low))


def _mix_words(rows: Any, words: Any, nulls: Any, column: Any) -> None:
    for i in range(len(rows)):
        cell = _NULL if len(nulls) and nulls[i] else _mixed(words[i])
        rows[i] = _mixed(rows[i] ^ _mixed(cell ^ column))


def _mix_texts(rows: Any, offsets: Any, data: Any, nulls: Any, column: Any) -> None:
    for i in range(len(rows)):
        cell = _NULL
        if not (len(nulls) and nulls[i]):
            begin, end = offsets[i], offsets[i + 1]
            cell = _mixed(_U64(end - begin))
            word, filled = _ZERO, 0
            for at in range(begin, end):
                word = (word << _S8) | _U64(data[at])
                filled += 1
                if filled == 8:
                    cell = _mixed(cell ^ word)
                    word, filled = _ZERO, 0
            if filled:
                cell = _mixed(cell ^ word)
        rows[i] = _mixed(rows[i] ^ _mixed(cell ^ column))


def _fold(rows: Any, before: Any) -> Any:
    found = before
    for i in range(len(rows)):
        # Plus one, so that a row counts even where its hash is 0.
        found = _reduced(_product(found, _BASE) + _reduced(rows[i] >> _S3) + _ONE)
    return found


_word, _words, _nulls = types.uint64, given(types.uint64), given(types.boolean)
mix_words = compiled(types.void(made(types.uint64), _words, _nulls, _word), _mix_words)
mix_texts = compiled(
    types.void(made(types.uint64), given(types.int64), given(types.uint8), _nulls, _word),
    _mix_texts,
)
fold = compiled(_word(_words, _word), _fold)
