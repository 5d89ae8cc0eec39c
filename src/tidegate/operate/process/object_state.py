"""The state of one bucket's object, between the rows that are stored and those that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.operate.process.attributes import Attributes
from tidegate.operate.process.definition import Process
from tidegate.operate.process.entry import StateRow
from tidegate.operate.process.snapshot import Kept, pending, read, write, write_attributes
from tidegate.operate.process.stored import BucketRows


class ObjectState:
    """What is stored of an object, None for a new one, and what becomes of it in a batch."""

    def __init__(self, stored: BucketRows | None) -> None:
        self._stored = stored
        self._attributes = Attributes(stored)

    def restored(self, made: Process, whole: frozenset[str] | None, where: str) -> Kept | None:
        """What `restore` of a newly made object is to be given, and its timers.

        `whole` are the attributes whose mappings are read as a whole, None for all of them.
        """
        if self._stored is None:
            return None
        kept = read(self._stored.head, made.pickle, where)
        if not kept.by_attribute:
            return kept
        chosen = whole if is_kept_by_attribute(made) else None
        return Kept(self._attributes.restored(kept.state, chosen), kept.timers)

    def changes(self, made: Process, state: Any, timers: Sequence[int]) -> list[StateRow]:
        """The rows to write, `state` being what `snapshot` of the object returned."""
        if is_kept_by_attribute(made):
            text, buffers, rows = self._attributes.changes(state)
            head = write_attributes(text, buffers, timers)
        else:
            head, rows = write(Kept(state, tuple(timers)), made.pickle), self._attributes.gone()
        if self._stored is None or head != self._stored.head:
            rows.append(StateRow.head(pending(timers), head))
        return rows


def is_kept_by_attribute(made: Process) -> bool:
    """Whether the state of an object is its attributes, and they are plain values."""
    kind = type(made)
    own = kind.snapshot is not Process.snapshot or kind.restore is not Process.restore
    return not own and not made.pickle
