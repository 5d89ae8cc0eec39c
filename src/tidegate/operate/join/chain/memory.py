"""Keeps the chains of a join in memory from one batch to the next, also across a switch.

After a switch an instance still has the newest tuples of the buckets that it keeps. Reading them
again would open one small segment for each batch since the last compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.operate.join.chain.chain import Chain, Flags
from tidegate.operate.operator import InstanceWork
from tidegate.state.bucket_set import BucketSet

MOST_MOVED_ROWS = 32_768
"""At a switch an instance keeps, or adds, at most so many tuples of a side in memory.

It makes the index of all of them again, in one batch.
"""


@dataclass(frozen=True)
class JoinMemory:
    """The chains of both sides, for the next batch.

    `buckets` are those of the tuples. None where tuples of other instances are among them, or where
    former owners have some: such chains do not outlive a switch.
    """

    chains: tuple[Chain, Chain]
    buckets: BucketSet | None


@dataclass(frozen=True)
class SideMemory:
    """The chain of one side that was found; None where there is none.

    `gained` flags the buckets that the instance got since; None where it owns what it owned.
    """

    chain: Chain | None = None
    gained: Flags | None = None


def find(work: InstanceWork, name: str) -> Sequence[SideMemory]:
    """The chains that the batch before left, without the tuples of buckets that have moved away."""
    left: JoinMemory | None = work.kept.take(name, moved=True)
    if left is not None and work.kept.before is not None:
        return [SideMemory(chain) for chain in left.chains]
    if left is None or left.buckets is None or work.mapping.formers:
        return SideMemory(), SideMemory()
    own = work.mapping.owner_array == work.instance
    gained = own.copy()
    gained[left.buckets.numbers()] = False
    return [SideMemory(chain.in_buckets(own, MOST_MOVED_ROWS), gained) for chain in left.chains]


def leave(work: InstanceWork, name: str, chains: tuple[Chain, Chain], own: bool = True) -> None:
    """Leave chains for the next batch; `own` says that all tuples are in the instance's buckets."""
    buckets = None
    if own and not work.mapping.formers:
        buckets = BucketSet.where(work.mapping.owner_array == work.instance)
    work.kept.leave(name, JoinMemory(chains, buckets), sum(chain.nbytes for chain in chains))
