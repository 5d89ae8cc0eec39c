"""Keeps the newest tuples of a join in memory from one batch to the next, also across a switch.

After a switch an instance still has the newest tuples of the buckets that it keeps. To read them
again would mean to open as many small segments as there were batches since they were compacted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.operate.join.chain import Chain, Flags
from tidegate.operate.operator import InstanceWork
from tidegate.state.bucket_set import BucketSet

MOST_MOVED_ROWS = 32_768
"""So many tuples of a side are kept in memory, or put beside those, by who gets other buckets: the
index of all of them is made again."""


@dataclass(frozen=True)
class JoinMemory:
    """The newest tuples of both sides, for the next batch.

    They are those of `buckets`; None where others are among them, or their times tell whose.
    """

    chains: tuple[Chain, Chain]
    buckets: BucketSet | None


@dataclass(frozen=True)
class SideMemory:
    """What there is of one side.

    `gained` are the buckets that have come since, by a flag each; None where all are as they were.
    """

    chain: Chain | None = None
    gained: Flags | None = None


def find(work: InstanceWork, name: str) -> Sequence[SideMemory]:
    """What the batch before has left of both sides, without what is of others now."""
    left: JoinMemory | None = work.kept.take(name, moved=True)
    if left is not None and work.kept.before is not None:
        return [SideMemory(chain) for chain in left.chains]
    if left is None or left.buckets is None or work.mapping.formers:
        return SideMemory(), SideMemory()
    own = work.mapping.owner_array == work.instance
    gained = own.copy()
    gained[left.buckets.numbers()] = False
    return [SideMemory(chain.of(own, MOST_MOVED_ROWS), gained) for chain in left.chains]


def leave(work: InstanceWork, name: str, chains: tuple[Chain, Chain], own: bool = True) -> None:
    """Leave tuples of both sides in memory; `own` says that they are those of its own buckets."""
    buckets = None
    if own and not work.mapping.formers:
        buckets = BucketSet.where(work.mapping.owner_array == work.instance)
    work.kept.leave(name, JoinMemory(chains, buckets), sum(chain.nbytes for chain in chains))
