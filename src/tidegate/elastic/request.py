"""What can be asked of a running query: another mapping of one subquery, or of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.batch import EpochId
from tidegate.errors import OptionError
from tidegate.route.mapping import Mapping, switched


class Change(Protocol):
    """One kind of change; it depends on the mapping that is there and on loads alone."""

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        """The mapping of the next epoch, or the current one where nothing is to change.

        `loads` are those of the buckets in recent batches. What cannot be is an OptionError.
        """


@dataclass(frozen=True)
class Scale:
    """Another number of instances, with the fewest moves that leave them even."""

    instances: int

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        return current if self.instances == current.instances else switched(current, self.instances)


@dataclass(frozen=True)
class Move:
    """Give some buckets to one instance, which is there."""

    buckets: tuple[int, ...]
    instance: int

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        owners = list(current.owners)
        for bucket in self.buckets:
            if not 0 <= bucket < current.buckets:
                raise OptionError(
                    "move", f"buckets must be from 0 to {current.buckets - 1}", str(bucket)
                )
            owners[bucket] = self.instance
        return Switch(tuple(owners), current.instances).after(current, loads)


@dataclass(frozen=True)
class Switch:
    """The owners of all buckets, given one by one, of so many instances."""

    owners: tuple[int, ...]
    instances: int

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        if len(self.owners) != current.buckets:
            raise OptionError(
                "switch",
                f"a mapping must give an owner to each of the {current.buckets} buckets",
                f"{len(self.owners)} owners",
            )
        if (self.owners, self.instances) == (current.owners, current.instances):
            return current
        return Mapping(EpochId(current.epoch + 1), self.instances, self.owners)


@dataclass(frozen=True)
class Request:
    """A change that somebody asks for, and why; `subquery` is a name, None for all of them."""

    change: Change
    subquery: str | None = None
    by: str = "user"
    why: str = ""
