"""The mapping from buckets to instances, and its versions, the epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.batch import EpochId
from tidegate.errors import OptionError


@dataclass(frozen=True)
class Mapping:
    """Which instance owns which bucket, during one epoch."""

    epoch: EpochId
    instances: int
    owners: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.instances < 1:
            raise OptionError("mapping", "needs at least one instance", str(self.instances))
        if self.instances > len(self.owners):
            raise OptionError(
                "mapping",
                f"instances must not outnumber the {len(self.owners)} buckets",
                str(self.instances),
                "Ask for fewer instances, or start a new checkpoint with more --buckets.",
            )
        if any(not 0 <= owner < self.instances for owner in self.owners):
            raise OptionError(
                "mapping", "every bucket must belong to an instance", "an owner outside"
            )

    @property
    def buckets(self) -> int:
        return len(self.owners)

    def owned_by(self, instance: int) -> tuple[int, ...]:
        return tuple(b for b, owner in enumerate(self.owners) if owner == instance)


def even(buckets: int, instances: int, epoch: int = 0) -> Mapping:
    """Deal the buckets out evenly; the mapping a query starts with and `scale` asks for."""
    return Mapping(EpochId(epoch), instances, tuple(b % max(instances, 1) for b in range(buckets)))


def switched(current: Mapping, instances: int) -> Mapping:
    """The next epoch's mapping for another number of instances."""
    return even(current.buckets, instances, current.epoch + 1)


def recorded(mapping: Mapping) -> dict[str, Any]:
    """A mapping as a manifest has it."""
    return {
        "epoch": int(mapping.epoch),
        "instances": mapping.instances,
        "owners": list(mapping.owners),
    }


def restored(epoch: int, instances: int, owners: Sequence[int]) -> Mapping:
    """The mapping that a manifest recorded."""
    return Mapping(EpochId(epoch), instances, tuple(owners))
