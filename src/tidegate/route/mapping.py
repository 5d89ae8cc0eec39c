"""The mapping from buckets to instances, and its versions, the epochs."""

from __future__ import annotations

from collections.abc import Mapping as Held
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.batch import EpochId
from tidegate.errors import OptionError
from tidegate.route.former_owner import Former

Numbers = npt.NDArray[np.signedinteger[Any]]

_NONE: Held[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Mapping:
    """Which instance owns which bucket, during one epoch.

    `formers` are the owners of earlier epochs, oldest first, that still finish windows which began
    before their buckets moved. Only a switch by window recreation leaves some.
    """

    epoch: EpochId
    instances: int
    owners: tuple[int, ...]
    formers: tuple[Former, ...] = ()

    def __post_init__(self) -> None:
        _check_instances(self.instances, len(self.owners))
        if min(self.owners) < 0 or max(self.owners) >= self.instances:
            raise OptionError(
                "mapping", "every bucket must belong to an instance", "an owner outside"
            )

    @property
    def buckets(self) -> int:
        return len(self.owners)

    @cached_property
    def owner_array(self) -> npt.NDArray[np.int32]:
        """The owners by bucket, as an int32 array that must not be written."""
        return np.asarray(self.owners, np.int32)

    @cached_property
    def running(self) -> int:
        """The number of instances at work, including those that only finish windows."""
        finishing = (max(former.owners) + 1 for former in self.formers)
        return max(self.instances, *finishing, 1)

    @cached_property
    def tenures(self) -> npt.NDArray[np.int32]:
        """The owners by epoch and bucket: those of former epochs first, the present ones last."""
        if not self.formers:
            return self.owner_array[np.newaxis]
        return np.array([*(f.owners for f in self.formers), self.owners], np.int32)

    def owners_at(self, buckets: Numbers, times: Numbers) -> Numbers:
        """The instances that keep stored tuples of some buckets and times, one for each pair."""
        ends = np.array([f.until_us for f in self.formers], np.int64)
        found: Numbers = self.tenures[np.searchsorted(ends, times, "right"), buckets]
        return found

    def lasting(self, frontier_us: int, counts: Held[str, int] = _NONE) -> Mapping:
        """The mapping at a frontier: without the formers that are done.

        `counts` has the number of tuples that came, by part of the state, where windows count them.
        """
        formers = tuple(f for f in self.formers if not f.is_done(frontier_us, counts))
        return self if formers == self.formers else replace(self, formers=formers)

    def continues(self, before: Mapping) -> bool:
        """Whether every instance goes on with exactly the state that it had before.

        That is so if nothing has moved, or if what has moved has no stored tuples yet.
        """
        if self.owners == before.owners:
            return self.formers == before.formers
        # After a switch by window recreation the last former owners are just those of `before`.
        *older, last = self.formers or (None,)
        return last is not None and last.epoch == before.epoch and tuple(older) == before.formers

    def owned_by(self, instance: int) -> tuple[int, ...]:
        """The buckets of an instance, ascending."""
        return tuple(np.flatnonzero(self.owner_array == instance).tolist())

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are computed again where they are needed, not sent to every task.
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def even(buckets: int, instances: int, epoch: int = 0) -> Mapping:
    """Deal the buckets in turn: the mapping that a query starts with."""
    return Mapping(EpochId(epoch), instances, tuple(b % max(instances, 1) for b in range(buckets)))


def switched(current: Mapping, instances: int) -> Mapping:
    """The next epoch's mapping for another number of instances: even, with the fewest moves.

    Every instance then owns q or q + 1 of the B buckets, where q, r = divmod(B, instances). With
    c_i the buckets that instance i owns now, it moves

        B - sum of min(c_i, q) over i < instances - min(r, how many i < instances have c_i > q)

    of them, and no even mapping moves fewer: an instance keeps at most min(c_i, its share), and
    only r of the shares are q + 1. It depends on the current mapping and the number alone, so that
    a replay switches to the same one.
    """
    _check_instances(instances, current.buckets)
    owners = current.owner_array.astype(np.int64)
    owned = np.bincount(owners, minlength=instances)
    smaller, larger = divmod(current.buckets, instances)
    share = np.zeros(len(owned), np.int64)
    share[:instances] = smaller
    most_first = np.argsort(-owned[:instances], kind="stable")
    share[most_first[:larger]] += 1
    # An instance keeps its first buckets, and what is free is given out in stretches, owner by
    # owner: rows of neighbouring buckets are neighbours in a segment of their owner, so that a
    # stretch of them is one slice; and an instance takes over from as few others as can be, each of
    # which may have what is known of its segments in another process.
    free = np.flatnonzero(_places(owners) >= share[owners])
    free = free[np.argsort(owners[free], kind="stable")]
    owners[free] = np.repeat(np.arange(len(owned)), np.maximum(share - owned, 0))
    return Mapping(EpochId(current.epoch + 1), instances, tuple(owners.tolist()))


def recorded(mapping: Mapping) -> dict[str, Any]:
    """A mapping as a manifest has it."""
    finishing = [former.recorded() for former in mapping.formers]
    return {
        "epoch": int(mapping.epoch),
        "instances": mapping.instances,
        "owners": list(mapping.owners),
        **({"formers": finishing} if finishing else {}),
    }


def restored(
    epoch: int, instances: int, owners: Sequence[int], formers: Sequence[Held[str, Any]] = ()
) -> Mapping:
    """The mapping that a manifest recorded."""
    finishing = tuple(Former.restored(former) for former in formers)
    return Mapping(EpochId(epoch), instances, tuple(owners), finishing)


def _places(owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each bucket, how many earlier buckets have the same owner."""
    order = np.argsort(owners, kind="stable")
    first = np.searchsorted(owners[order], owners[order])
    places = np.empty(len(owners), np.int64)
    places[order] = np.arange(len(owners)) - first
    return places


def _check_instances(instances: int, buckets: int) -> None:
    if instances < 1:
        raise OptionError("mapping", "needs at least one instance", str(instances))
    if instances > buckets:
        raise OptionError(
            "mapping",
            f"instances must not outnumber the {buckets} buckets",
            str(instances),
            "Ask for fewer instances, or start a new checkpoint with more --buckets.",
        )
