"""Decides how buckets reach their new owners at a switch: by state, by window, or shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.batch import MIN_US
from tidegate.elastic.handover import (
    MOST_FORMERS,
    NONE,
    SHARED,
    STATE,
    WINDOW,
    HandoverChoice,
    Reaching,
    Site,
    choose,
    finishing,
)
from tidegate.execute.job import Job, Outcome
from tidegate.operate.operator import Migration, Operator
from tidegate.route import mapping as route
from tidegate.route.reach import Reach
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment

State = Mapping[str, Sequence[Segment]]


@dataclass(frozen=True)
class InputProgress:
    """How far the input of a subquery is, and how fast it moves.

    `counts` are the tuples counted in each part of its state; `before` are the counts before the
    newest batch. That batch covered `lasted_us` of event time; 0 if unknown, as at a start.
    """

    frontier_us: int
    counts: Mapping[str, int]
    before: Mapping[str, int]
    lasted_us: int

    def wait_us(self, migration: Migration) -> int | None:
        """About how much event time passes until former owners are done.

        None if that is unknown because their windows count tuples and no rate is known.
        """
        began_us = migration.until_us if self.frontier_us == MIN_US else self.frontier_us
        waits = [migration.over_us - began_us]
        for position in migration.positions:
            came = self.counts.get(position.what, 0) - self.before.get(position.what, 0)
            if came <= 0 or self.lasted_us <= 0:
                return None
            waits.append(round((position.over - position.until) * self.lasted_us / came))
        return max(waits)


def reach_of(operator: Operator) -> Reaching | None:
    """How far back the state of an operator reaches; None if it keeps none."""
    return operator.state.reach if operator.state.keepers else None


def handed_over(
    before: route.Mapping,
    after: route.Mapping,
    *,
    operator: Operator,
    state: State,
    arrived: InputProgress,
    batch: int,
    asked: str,
    site: Site,
) -> tuple[route.Mapping, dict[str, Any]]:
    """Choose the handover of a switch; return the mapping of the new epoch, and its record.

    `before` must have only the former owners that are not done yet. `state` are the stored
    segments. `batch` is the first of the new epoch.
    """
    moved = BucketSet.where(before.owner_array != after.owner_array)
    size = stored_bytes(state, moved)
    reach, migration = reach_of(operator), None
    if isinstance(reach, Reach):
        migration = operator.state.migration(arrived.frontier_us, state, arrived.counts)
    wait_us = 0 if migration is None else arrived.wait_us(migration)
    choice = choose(asked, site, reach or Reach(), size, wait_us)
    if reach is None:
        choice = HandoverChoice(NONE, "it keeps no state")
    elif not size and not before.formers:
        choice = HandoverChoice(NONE, "nothing is stored of the buckets that move")
    elif choice.handover == WINDOW and len(before.formers) >= MOST_FORMERS:
        way = SHARED if site.shares else STATE
        choice = HandoverChoice(
            way, f"{MOST_FORMERS} switches before it still have windows to finish"
        )
    facts = {"handover": choice.handover, "handover_why": choice.why, "buckets_moved": len(moved)}
    if choice.handover == WINDOW and migration is not None:
        ends = {"until_us": migration.until_us, "over_us": migration.over_us}
        after = finishing(before, after, **ends, positions=migration.positions, batch=batch)
        facts |= ends
        if migration.positions:
            facts["over_tuples"] = {p.what: p.over for p in migration.positions}
    return after, {**facts, "bytes_moved": size if choice.handover == STATE else 0}


def loaded_bytes(before: route.Mapping, job: Job, outcomes: Sequence[Outcome]) -> int:
    """The bytes that instances loaded of buckets that they did not own in the mapping `before`.

    Buckets that an instance owned before, and loads because it runs on another host now, do not
    count. All buckets of a segment are assumed to have the same size.
    """
    moved, reads = 0.0, job.operator.state.reads
    for what, segments in job.state.items():
        buckets = {segment.name: segment.buckets for segment in segments}
        for outcome in outcomes:
            had = reads(what, before, outcome.instance)
            has = reads(what, job.mapping, outcome.instance)
            for name in outcome.fetched.keys() & buckets.keys():
                wanted = buckets[name] & has
                moved += outcome.fetched[name] * len(wanted - had) / max(len(wanted), 1)
    return round(moved)


def stored_bytes(state: State, buckets: BucketSet) -> int:
    """About how many bytes some buckets have, if all buckets of a segment have the same size."""
    shares = (
        segment.bytes * len(segment.buckets & buckets) / len(segment.buckets)
        for segments in state.values()
        for segment in segments
        if segment.rows
    )
    return round(sum(shares))
