"""A JSON text and the buffers beside it as one piece of bytes, between values and rows of state."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

HAS_BUFFERS = b"\0"
"""How a text with buffers begins. JSON has no such byte."""

_COUNT = struct.Struct("<cQ")


def pack(text: str, buffers: Sequence[bytes]) -> bytes:
    """What `encode` gives as bytes: JSON alone is itself."""
    document = text.encode("ascii")
    if not buffers:
        return document
    sizes = [len(document), *map(len, buffers)]
    head = _COUNT.pack(HAS_BUFFERS, len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
    return b"".join([head, document, *buffers])


def unpack(data: bytes) -> tuple[str, list[bytes]]:
    """What `pack` was given; ValueError where that cannot be."""
    if not data.startswith(HAS_BUFFERS):
        return data.decode("ascii"), []
    try:
        _, count = _COUNT.unpack_from(data)
        sizes = struct.unpack_from(f"<{count}Q", data, _COUNT.size)
    except struct.error as error:
        raise ValueError(str(error)) from error
    starts = list(accumulate(sizes, initial=_COUNT.size + 8 * count))
    if starts[-1] != len(data):
        raise ValueError(f"{len(data)} bytes where {starts[-1]} were written")
    document, *buffers = (data[a:b] for a, b in pairwise(starts))
    return document.decode("ascii"), buffers
