"""Reads and writes the state of a bucket's object.

A bucket has a head, and a row for each entry of declared state. A head has its kind, JSON, and the
buffers of the JSON. The JSON has the timers, the state and the last number of an entry. The state
is what the class's `snapshot` returned; by default these are the attributes.
"""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.batch import MAX_US
from tidegate.errors import StateError
from tidegate.operate.process.definition import Process, declarations_of
from tidegate.operate.process.entry import StateRow
from tidegate.operate.process.hot import HotBucket
from tidegate.operate.process.value_json import Encoder, decode, pack, unpack

_MAGIC = b"TGP2"
_START = struct.Struct("<4scQ")
_PLAIN, _PICKLED = b"J", b"P"
_BY_ENTRY = b"A"
"""The kind of heads of earlier versions, which kept each entry of dict attributes apart."""


@dataclass(frozen=True)
class StoredHead:
    """What a head holds: the state, the timers that are set, and the number of the last entry."""

    state: Any
    timers: tuple[int, ...]
    count: int = 0


class ObjectState:
    """The stored state of an object, and what a batch changes in it."""

    def __init__(self, made: Process, bucket: HotBucket, where: str) -> None:
        self._made = made
        self._bucket = bucket
        self._declared = declarations_of(made)
        self.kept = None if bucket.head is None else read(bucket.head, made.pickle, where)
        """The state for `restore` of the object, and its timers; None for a new object."""
        self._count = 0 if self.kept is None else self.kept.count

    def attach(self, now_us: Callable[[], int]) -> None:
        """Connect the declared state to its stored entries and to the event time."""
        self._declared.close()
        for state in self._declared.declared.values():
            state.attach(self._bucket, now_us, self._number)

    def changes(self, state: Any, timers: Sequence[int]) -> list[StateRow]:
        """The rows to write; `state` is what `snapshot` of the object returned."""
        encoder = Encoder()
        entries = self._declared.declared.values()
        found = [change for declared in entries for change in declared.changes(encoder)]
        rows = [
            StateRow.gone(name, stored) if gone else StateRow.of(name, stored)
            for name, stored, gone in found
        ]
        kept = StoredHead(state, tuple(timers), self._count)
        head = write(kept, self._made.pickle, encoder, is_kept_by_attribute(self._made))
        if head != self._bucket.head:
            rows.append(StateRow.head(min(timers, default=MAX_US), head))
        return rows

    def _number(self) -> int:
        self._count += 1
        return self._count


def is_kept_by_attribute(made: Process) -> bool:
    """Whether an object's state is its attributes, kept as plain values."""
    kind = type(made)
    own = kind.snapshot is not Process.snapshot or kind.restore is not Process.restore
    return not own and not made.pickle


def write(
    kept: StoredHead, pickled: bool, encoder: Encoder | None = None, attributes: bool = False
) -> bytes:
    """The bytes of a head; equal states give equal bytes. Raises NotPlain for what cannot be kept.

    `attributes` says that the state is the object's attributes, so that messages name them.
    `encoder` has met the declared state, so that no object can be in both.
    """
    encoder = encoder or Encoder()
    if pickled:
        text, buffers = "null", [pickle.dumps(kept.state, protocol=5)]
    else:
        write_text = _attributes_text if attributes else Encoder.text
        text, buffers = write_text(encoder, kept.state, "the state"), encoder.buffers
    last = f",{kept.count}" if kept.count else ""
    content = pack(f"[[{','.join(map(str, sorted(kept.timers)))}],{text}{last}]", buffers)
    return _START.pack(_MAGIC, _PICKLED if pickled else _PLAIN, len(content)) + content


def _attributes_text(encoder: Encoder, attributes: Mapping[Any, Any], path: str) -> str:
    """The text of a dict of attributes; messages call its values self.name."""
    names = [encoder.text(name, "the name of an attribute") for name in attributes]
    values = [encoder.text(value, f"self.{name}") for name, value in attributes.items()]
    return f'{{"dict":[[{",".join(names)}],[{",".join(values)}]]}}'


def read(data: bytes, pickled: bool, where: str) -> StoredHead:
    """Read a head; StateError for a pickled one, unless the class sets `pickle`."""
    if len(data) < _START.size or data[:4] != _MAGIC:
        raise _damaged(where, repr(data[:8]))
    _, kind, size = _START.unpack_from(data)
    if kind == _BY_ENTRY:
        raise StateError(
            where,
            "the state must be of this version, which keeps attributes whole",
            "attributes that an earlier version kept entry by entry",
            "Start with a new checkpoint.",
        )
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
        timers, _, *count = json.loads(document)
        return StoredHead(pickle.loads(buffers[0]), tuple(timers), *count)
    timers, state, *count = decode(document, buffers)
    return StoredHead(state, tuple(timers), *count)


def _damaged(where: str, got: str) -> StateError:
    return StateError(
        where,
        "the state of a bucket must be a snapshot",
        got,
        "The checkpoint is damaged, or of another version: start with a new one.",
    )
