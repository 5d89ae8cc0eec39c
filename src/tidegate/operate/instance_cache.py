"""Keeps what an instance has in memory from one batch to the next.

It is a cache: whatever is kept here was also written to the checkpoint, and an instance that does
not find it reads it there. Each value is marked with the batch that left it, and only the next
batch may take it. So a batch that fails and runs again, here or on another host, finds nothing of
the first attempt. The size is bounded by the memory of the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.memory import MEMORY


@dataclass(frozen=True)
class _Value:
    left_by: str
    value: Any
    nbytes: int


def _nbytes(value: _Value) -> int:
    return value.nbytes


_SHARE = 1 / 4
_VALUES = MEMORY.cache(_SHARE, _nbytes)


@dataclass(frozen=True)
class Kept:
    """What one instance leaves for its next batch.

    `owner` names the instance, of one run of one query. `now` names this batch. `before` names the
    batch before; it is None where that is not known, or where the instance had other buckets then.
    `last` names the batch before even if the buckets have changed.
    """

    owner: str
    before: str | None
    now: str
    last: str | None = None

    def take(self, what: str, moved: bool = False) -> Any | None:
        """Take out what the batch before left under a name; the caller owns it and may change it.

        With `moved` a value is given even if the instance has other buckets now. The caller must
        then add the state of buckets that have come, and remove that of buckets that have gone.
        """
        held: _Value | None = _VALUES.take((self.owner, what))
        left_by = self.last if moved and self.before is None else self.before
        return held.value if held is not None and held.left_by == left_by else None

    def fits(self, nbytes: int) -> bool:
        """Whether a value of so many bytes can be left; ask before making a large one."""
        return nbytes <= _SHARE * MEMORY.limit_bytes

    def leave(self, what: str, value: object, nbytes: int) -> None:
        """Leave a value of so many bytes for the next batch; call it at the end of a batch only.

        A value that is larger than the whole cache may be is not kept: it would drive out the rest.
        """
        key = self.owner, what
        if self.fits(nbytes):
            _VALUES.put(key, _Value(self.now, value, nbytes))
        else:  # the older value would only take up room
            _VALUES.take(key)


def forget() -> None:
    """Drop all that is kept in this process, as if its instances ran elsewhere now."""
    _VALUES.clear()
