"""Packs arrays of small integers into short text for JSON."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

_LEVEL = 1
"""Higher levels of zlib take up to twenty times as long and save a tenth."""


def pack(data: bytes) -> str:
    """Bytes as text that JSON writes without escapes; a few microseconds per kilobyte."""
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode("ascii")


def unpack(text: str) -> bytes:
    """The bytes that `pack` was given; any other text is a ValueError."""
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"text that cannot be unpacked: {error}") from error


def pack_numbers(numbers: npt.ArrayLike) -> str:
    """Integers from 0 to 65,535, such as owners of buckets, as text; others are a ValueError."""
    array: npt.NDArray[Any] = np.asarray(numbers)
    narrow = array.astype("<u2")
    if not np.array_equal(narrow, array):
        raise ValueError(f"numbers of 0 to 65535 can be packed, got {array.min()} to {array.max()}")
    return pack(narrow.tobytes())


def unpack_numbers(text: str) -> list[int]:
    """The numbers that `pack_numbers` was given."""
    numbers: list[int] = np.frombuffer(unpack(text), "<u2").tolist()
    return numbers
