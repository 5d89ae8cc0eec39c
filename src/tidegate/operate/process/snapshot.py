"""The head of a bucket as bytes, between the user's object and the store.

A head has its kind, then JSON with the timers and the state, then the buffers that the JSON
numbers. The state is what `snapshot` of the class returned, or where the class has none of its own
the attributes of the object, one after the other.
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
from tidegate.operate.process.packed import pack, unpack
from tidegate.operate.process.plain import decode, encode

_MAGIC = b"TGP2"
_START = struct.Struct("<4scQ")
_WHOLE, _PICKLED, _ATTRIBUTES = b"J", b"P", b"A"


@dataclass(frozen=True)
class Kept:
    """What a head holds: the state, and the timers that the object waits for.

    Where it is `by_attribute`, the state is a list of what `attributes` writes for each.
    """

    state: Any
    timers: tuple[int, ...]
    by_attribute: bool = False


def write(kept: Kept, pickled: bool) -> bytes:
    """The head of a state as it is; equal states give equal bytes. NotPlain names what cannot be
    kept."""
    if pickled:
        return _written(_PICKLED, kept.timers, "null", [pickle.dumps(kept.state, protocol=5)])
    return _written(_WHOLE, kept.timers, *encode(kept.state, "the state"))


def write_attributes(attributes: str, buffers: Sequence[bytes], timers: Sequence[int]) -> bytes:
    """The head of attributes that are JSON already."""
    return _written(_ATTRIBUTES, timers, attributes, buffers)


def read(data: bytes, pickled: bool, where: str) -> Kept:
    """What a head holds; one that was pickled is opened only where the class allows it."""
    if len(data) < _START.size or data[:4] != _MAGIC:
        raise _damaged(where, repr(data[:8]))
    _, kind, size = _START.unpack_from(data)
    if (kind == _PICKLED) != pickled:
        raise StateError(
            where,
            "the class must keep its state as it did when the checkpoint was made",
            f"a state made with pickle = {kind == _PICKLED}",
            "Set pickle in the class as it was, or start with a new checkpoint.",
        )
    if len(data) != _START.size + size:
        raise _damaged(where, f"{len(data)} bytes")
    try:
        document, buffers = unpack(data[_START.size :])
    except ValueError as error:
        raise _damaged(where, str(error)) from error
    if pickled:
        return Kept(pickle.loads(buffers[0]), tuple(json.loads(document)[0]))
    timers, state = decode(document, buffers)
    return Kept(state, tuple(timers), kind == _ATTRIBUTES)


def pending(timers: Sequence[int]) -> int:
    """The earliest timer, MAX_US where there is none."""
    return min(timers, default=MAX_US)


def _written(kind: bytes, timers: Sequence[int], text: str, buffers: Sequence[bytes]) -> bytes:
    content = pack(f"[[{','.join(map(str, sorted(timers)))}],{text}]", buffers)
    return _START.pack(_MAGIC, kind, len(content)) + content


def _damaged(where: str, got: str) -> StateError:
    return StateError(
        where,
        "the state of a bucket must be a snapshot",
        got,
        "The checkpoint is damaged, or of another version: start with a new one.",
    )
