"""The handover of a switch, between the mapping that is asked for and the one that tasks get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.batch import MIN_US
from tidegate.elastic.handover import (
    MOST_FORMERS,
    NONE,
    SHARED,
    STATE,
    WINDOW,
    Choice,
    Reach,
    Site,
    choose,
    finishing,
)
from tidegate.operate.operator import Migration, Operator
from tidegate.route import mapping as route
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment

State = Mapping[str, Sequence[Segment]]


def reach_of(operator: Operator) -> Reach | None:
    """How far back in time the state of an operator reaches; None where it has none."""
    return operator.reach_us if operator.keepers() else None


def handed_over(
    before: route.Mapping,
    after: route.Mapping,
    *,
    operator: Operator,
    state: State,
    frontier_us: int,
    asked: str,
    site: Site,
) -> tuple[route.Mapping, dict[str, Any]]:
    """The mapping of a new epoch, and what its record says of how buckets are handed over.

    `before` has the formers that are not done at the frontier, `state` is what is stored.
    """
    moved = BucketSet.where(before.owner_array != after.owner_array)
    size = stored_bytes(state, moved)
    reach, migration = reach_of(operator), None
    if isinstance(reach, int):
        migration = operator.migration(frontier_us, state)
    wait_us = 0 if migration is None else _wait_us(migration, frontier_us)
    choice = choose(asked, site, 0 if reach is None else reach, size, wait_us)
    if reach is None:
        choice = Choice(NONE, "it keeps no state")
    elif not size and not before.formers:
        choice = Choice(NONE, "nothing is stored of the buckets that move")
    elif choice.handover == WINDOW and len(before.formers) >= MOST_FORMERS:
        way = SHARED if site.shares else STATE
        choice = Choice(way, f"{MOST_FORMERS} switches before it still have windows to finish")
    facts = {"handover": choice.handover, "handover_why": choice.why, "buckets_moved": len(moved)}
    if choice.handover == WINDOW and migration is not None:
        after = finishing(before, after, migration.until_us, migration.over_us)
        facts |= {"until_us": migration.until_us, "over_us": migration.over_us}
    return after, {**facts, "bytes_moved": size if choice.handover == STATE else 0}


def stored_bytes(state: State, buckets: BucketSet) -> int:
    """About how many bytes are stored of some buckets, if all buckets of a segment have as many."""
    shares = (
        segment.bytes * len(segment.buckets & buckets) / len(segment.buckets)
        for segments in state.values()
        for segment in segments
        if segment.rows
    )
    return round(sum(shares))


def _wait_us(migration: Migration, frontier_us: int) -> int:
    """For how long of event time former owners have something to do."""
    return migration.over_us - (migration.until_us if frontier_us == MIN_US else frontier_us)
