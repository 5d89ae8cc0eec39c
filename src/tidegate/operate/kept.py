"""Keeps what an instance has in memory from one batch to the next.

The checkpoint stays the truth: whatever is kept here was also written, and whoever does not find it
reads it. A value is known by the batch that left it, and taken out by the one that follows: where a
batch fails and runs again, here or elsewhere, nothing of the first try is found. How much is kept
is bounded by the memory of the process.
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

    `owner` names the instance, of one run of one query. `before` names the batch whose state this
    one goes on with, None where that is not known or was divided otherwise; `now` names this one.
    `last` names the batch before also where buckets have come to the instance or gone from it.
    """

    owner: str
    before: str | None
    now: str
    last: str | None = None

    def take(self, what: str, moved: bool = False) -> Any | None:
        """What the batch before has left under a name; it is the caller's to change.

        With `moved` also where the instance has other buckets now, if `before` is None: then it is
        for the caller to see to what has come and gone.
        """
        held: _Value | None = _VALUES.take((self.owner, what))
        left_by = self.last if moved and self.before is None else self.before
        return held.value if held is not None and held.left_by == left_by else None

    def fits(self, nbytes: int) -> bool:
        """Whether a value of so many bytes can be left; one that cannot need not be made."""
        return nbytes <= _SHARE * MEMORY.limit_bytes

    def leave(self, what: str, value: object, nbytes: int) -> None:
        """Leave something for the next batch, which takes up so many bytes; at its end only.

        What takes up more than all that is kept may is not kept: it would drive out the rest.
        """
        key = self.owner, what
        if self.fits(nbytes):
            _VALUES.put(key, _Value(self.now, value, nbytes))
        else:
            _VALUES.take(key)


def forget() -> None:
    """Let go of all that is kept in this process, as if its instances ran elsewhere now."""
    _VALUES.clear()
