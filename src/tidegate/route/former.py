"""The former owners of buckets that have moved, who finish the windows that they began.

With window recreation (StreamCloud; UniMiCo's migration timestamp) no state moves: what is stored
of times before the timestamp stays with who had it, until no window reaches it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.batch import EpochId


@dataclass(frozen=True)
class Position:
    """The migration timestamp where windows count tuples: a number in one part of the state.

    The tuples below number `until` of the part `what` came before it. When `over` tuples have come,
    no window has any of them.
    """

    what: str
    until: int
    over: int


@dataclass(frozen=True)
class Former:
    """The owners of an earlier epoch, who finish the windows that began in it.

    What is stored of times below `until_us` stays theirs, from the `until_us` of the epoch before
    it on. Their last window ends at `over_us`: when the frontier is there, they are done. Parts of
    the state whose windows count tuples have `positions` instead, and former owners are done when
    these are reached as well. An input may fall silent before that: from batch `relieved` on, what
    is left is handed over by its state; None where time alone counts, which does not stand still.
    """

    epoch: EpochId
    instances: int
    owners: tuple[int, ...]
    until_us: int
    over_us: int
    positions: tuple[Position, ...] = ()
    relieved: int | None = None

    def until(self, what: str) -> int:
        """Up to where a part of the state stays theirs: a number where it has one, else a time."""
        return next((p.until for p in self.positions if p.what == what), self.until_us)

    def is_done(self, frontier_us: int, counts: Mapping[str, int]) -> bool:
        """Whether nothing of theirs is needed; `counts` are the tuples of parts that have come."""
        reached = all(counts.get(p.what, 0) >= p.over for p in self.positions)
        return reached and self.over_us <= frontier_us

    def recorded(self) -> dict[str, Any]:
        """It as a manifest has it."""
        counted = {p.what: [p.until, p.over] for p in self.positions}
        return {
            "epoch": int(self.epoch),
            "instances": self.instances,
            "owners": list(self.owners),
            "until_us": self.until_us,
            "over_us": self.over_us,
            **({"positions": counted, "relieved": self.relieved} if counted else {}),
        }

    @staticmethod
    def restored(held: Mapping[str, Any]) -> Former:
        """What `recorded` gave."""
        return Former(
            EpochId(held["epoch"]),
            held["instances"],
            tuple(held["owners"]),
            held["until_us"],
            held["over_us"],
            tuple(Position(what, *ends) for what, ends in held.get("positions", {}).items()),
            held.get("relieved"),
        )
