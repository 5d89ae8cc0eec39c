"""The state of one bucket as bytes, between the user's object and the store.

A snapshot is a fixed head (kind, the earliest timer, sizes), then JSON with the timers and the
state, then the buffers that the JSON numbers. The earliest timer is read without the rest.
"""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.batch import MAX_US
from tidegate.errors import StateError
from tidegate.operate.process.plain import decode, encode

_MAGIC = b"TGP1"
_HEAD = struct.Struct("<4scqQQ")
_SIZE = struct.Struct("<Q")
_PLAIN, _PICKLED = b"J", b"P"


@dataclass(frozen=True)
class Kept:
    """What a snapshot holds: the state that the object gave, and the timers it waits for."""

    state: Any
    timers: tuple[int, ...]


def write(kept: Kept, pickled: bool) -> bytes:
    """Bytes that are equal for equal states; NotPlain names what cannot be kept."""
    if pickled:
        text, buffers = "null", [pickle.dumps(kept.state, protocol=5)]
    else:
        text, buffers = encode(kept.state, "the state")
    timers = sorted(kept.timers)
    document = f"[{json.dumps(timers, separators=(',', ':'))},{text}]".encode()
    kind, earliest = _PICKLED if pickled else _PLAIN, timers[0] if timers else MAX_US
    head = _HEAD.pack(_MAGIC, kind, earliest, len(document), len(buffers))
    sizes = [_SIZE.pack(len(b)) for b in buffers]
    return b"".join([head, *sizes, document, *buffers])


def read(data: bytes, pickled: bool, where: str) -> Kept:
    """What a snapshot holds; one that was pickled is opened only where the class allows it."""
    kind, _, length, count = _head(data, where)
    if (kind == _PICKLED) != pickled:
        raise StateError(
            where,
            "the class must keep its state as it did when the checkpoint was made",
            f"a state made with pickle = {kind == _PICKLED}",
            "Set pickle in the class as it was, or start with a new checkpoint.",
        )
    start = _HEAD.size + _SIZE.size * count
    sizes = [_SIZE.unpack_from(data, _HEAD.size + _SIZE.size * i)[0] for i in range(count)]
    if len(data) != start + length + sum(sizes):
        raise _damaged(where, f"{len(data)} bytes")
    document = bytes(data[start : start + length]).decode()
    buffers = _cut(data, start + length, sizes)
    if pickled:
        return Kept(pickle.loads(buffers[0]), tuple(json.loads(document)[0]))
    timers, state = decode(document, buffers)
    return Kept(state, tuple(timers))


def pending(snapshot: bytes) -> int | None:
    """The earliest timer of a bucket, without restoring its object; None where there is none."""
    _, earliest, _, _ = _head(snapshot, "process")
    return None if earliest == MAX_US else earliest


def _head(data: bytes, where: str) -> tuple[bytes, int, int, int]:
    if len(data) < _HEAD.size or bytes(data[:4]) != _MAGIC:
        raise _damaged(where, repr(bytes(data[:8])))
    _, kind, earliest, length, count = _HEAD.unpack_from(data)
    return kind, earliest, length, count


def _cut(data: bytes, start: int, sizes: Sequence[int]) -> list[bytes]:
    buffers = []
    for size in sizes:
        buffers.append(bytes(data[start : start + size]))
        start += size
    return buffers


def _damaged(where: str, got: str) -> StateError:
    return StateError(
        where,
        "the state of a bucket must be a snapshot",
        got,
        "The checkpoint is damaged, or of another version: start with a new one.",
    )
