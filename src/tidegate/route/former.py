"""Who finishes what began before buckets moved, between an epoch's mapping and the ones before it.

With window recreation (StreamCloud; UniMiCo's migration timestamp) no state moves: what is stored
of times before the timestamp stays with who had it, until no window reaches it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.batch import EpochId


@dataclass(frozen=True)
class Former:
    """The owners of an earlier epoch, who finish the windows that began in it.

    What is stored of times below `until_us` stays theirs, from the `until_us` of the epoch before
    it on. Their last window ends at `over_us`: when the frontier is there, they are done.
    """

    epoch: EpochId
    instances: int
    owners: tuple[int, ...]
    until_us: int
    over_us: int

    def recorded(self) -> dict[str, Any]:
        """It as a manifest has it."""
        return {**self.__dict__, "epoch": int(self.epoch), "owners": list(self.owners)}

    @staticmethod
    def restored(held: Mapping[str, Any]) -> Former:
        """What `recorded` gave."""
        return Former(
            EpochId(held["epoch"]),
            held["instances"],
            tuple(held["owners"]),
            held["until_us"],
            held["over_us"],
        )
