"""The state of one bucket's object: read when a batch touches the bucket, written at its end.

The head row holds the timers and what `snapshot` returned, or the plain attributes; entries of
declared state have rows of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidegate.operate.process.definition import Process, declarations_of
from tidegate.operate.process.entry import StateRow
from tidegate.operate.process.plain import Encoder
from tidegate.operate.process.snapshot import Kept, pending, read, write, write_attributes
from tidegate.operate.process.stored import BucketRows
from tidegate.operate.process.stored_entries import StoredEntries


class ObjectState:
    """What is stored of an object, None for a new one, and what becomes of it in a batch."""

    def __init__(self, made: Process, stored: BucketRows | None, where: str) -> None:
        self._made = made
        self._stored = stored
        self._declarations = declarations_of(made)
        self.kept = None if stored is None else read(stored.head, made.pickle, where)
        """What `restore` of the object is to be given, and its timers; None for a new one."""
        self._entries: list[StoredEntries] = []
        self._count = 0 if self.kept is None else self.kept.count

    def attach(self, now_us: Callable[[], int]) -> None:
        """Give the declared state of the object its entries, and the event time."""
        self._declarations.close()
        for name, state in self._declarations.declared.items():
            entries = StoredEntries(name, state.ttl_us, self._stored, now_us, self._number)
            self._entries.append(entries)
            state.attach(entries)

    def changes(self, state: Any, timers: Sequence[int]) -> list[StateRow]:
        """The rows to write, `state` being what `snapshot` of the object returned."""
        encoder = Encoder()
        rows = [row for entries in self._entries for row in entries.changes(encoder)]
        if is_kept_by_attribute(self._made):
            head = write_attributes(state, timers, self._count, encoder)
        else:
            head = write(Kept(state, tuple(timers), self._count), self._made.pickle)
        if self._stored is None or head != self._stored.head:
            rows.append(StateRow.head(pending(timers), head))
        return rows

    def _number(self) -> int:
        self._count += 1
        return self._count


def is_kept_by_attribute(made: Process) -> bool:
    """Whether the state of an object is its attributes, and they are plain values."""
    kind = type(made)
    own = kind.snapshot is not Process.snapshot or kind.restore is not Process.restore
    return not own and not made.pickle
