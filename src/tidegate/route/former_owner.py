"""Lets the former owners of moved buckets finish the windows that they began.

With window recreation (StreamCloud; UniMiCo's migration timestamp) no state moves: stored tuples
from before the timestamp stay with the former owner until no window reaches them any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.batch import EpochId


@dataclass(frozen=True)
class Position:
    """The migration timestamp where windows count tuples: a number in one part of the state.

    Tuples of the part `what` with numbers below `until` came before the migration. When `over`
    tuples have come, no window has any of those.
    """

    what: str
    until: int
    over: int


@dataclass(frozen=True)
class Former:
    """The owners of an earlier epoch, which finish the windows that began in it.

    Stored tuples with times from the `until_us` of the epoch before to below this `until_us` stay
    theirs. Their last window ends at `over_us`: when the frontier is there, they are done. Parts of
    the state whose windows count tuples have `positions`, which must be reached as well. An input
    may fall silent before that. So from batch `relieved` on, what is left is handed over by its
    state; None where only time counts, because time does not stand still.
    """

    epoch: EpochId
    instances: int
    owners: tuple[int, ...]
    until_us: int
    over_us: int
    positions: tuple[Position, ...] = ()
    relieved: int | None = None

    def until(self, what: str) -> int:
        """Up to where a part of the state stays theirs: a number if it has one, else a time."""
        return next((p.until for p in self.positions if p.what == what), self.until_us)

    def is_done(self, frontier_us: int, counts: Mapping[str, int]) -> bool:
        """Whether nothing of theirs is needed; `counts` has the tuples that came, by part."""
        reached = all(counts.get(p.what, 0) >= p.over for p in self.positions)
        return reached and self.over_us <= frontier_us

    def recorded(self) -> dict[str, Any]:
        """The entry in a manifest."""
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
        """The former owners whose entry `recorded` made."""
        return Former(
            EpochId(held["epoch"]),
            held["instances"],
            tuple(held["owners"]),
            held["until_us"],
            held["over_us"],
            tuple(Position(what, *ends) for what, ends in held.get("positions", {}).items()),
            held.get("relieved"),
        )
