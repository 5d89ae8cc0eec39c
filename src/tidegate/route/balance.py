"""Chooses which buckets to move so that instances are evenly loaded."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import fsum, isfinite

from tidegate.batch import EpochId
from tidegate.errors import OptionError
from tidegate.route.mapping import Mapping, switched

_LEAST = 1e-6
"""A bucket is not worth a move if it is a smaller fraction of the difference of two instances."""

_Loaded = tuple[float, int]
"""The load of a bucket, and the bucket."""


def balanced(
    mapping: Mapping,
    loads: Sequence[float],
    instances: int | None = None,
    within: float = 0.05,
    paces: Sequence[float] = (),
) -> Mapping:
    """The next epoch's mapping, with even loads; the current mapping if nothing changes.

    `loads` has the load of each bucket, in any unit. The method is StreamCloud's greedy one: while
    the standard deviation of the instances' loads is more than `within` of their mean, the most
    loaded instance that can gives a bucket to the least loaded one. It gives the bucket whose load
    is nearest to half of their difference, and less than the difference. So every move lowers the
    deviation and none raises the largest load; it ends when no such move is left. New instances
    begin with nothing. The buckets of instances that go are given to the least loaded ones, the
    heaviest bucket first. Without any load, buckets are divided evenly by number (`switched`).
    `paces` says of the first instances how many times as long each takes for its load: so much less
    is even for it.

    The result depends on the arguments alone, so a replay finds the same mapping. A move costs
    about instances * log(instances).
    """
    _check(mapping, loads)
    count = mapping.instances if instances is None else instances
    # Loads are measured; before anything was measured, numbers of buckets stand for them.
    even_numbers = mapping if count == mapping.instances else switched(mapping, count)
    if not any(loads):
        return even_numbers
    held = _offloaded(mapping, loads, count)
    spared = _spared(fsum(loads), paces, count)
    totals = [fsum([less, *(load for load, _ in of)]) for less, of in zip(spared, held)]
    mean = fsum(totals) / count
    while fsum((total - mean) ** 2 for total in totals) > count * (within * mean) ** 2:
        move = _next_move(held, totals)
        if move is None:
            break
        giver, place, taker = move
        load, bucket = held[giver].pop(place)
        insort(held[taker], (load, bucket))
        totals[giver] -= load
        totals[taker] += load
    owners = _owners(held, mapping.buckets)
    if (owners, count) == (mapping.owners, mapping.instances):
        return mapping
    return Mapping(EpochId(mapping.epoch + 1), count, owners)


def _spared(whole: float, paces: Sequence[float], count: int) -> list[float]:
    """How much less than the fastest each instance is to have: with it, all are to be the same."""
    speeds = [1 / pace for pace in paces[:count]] + [1.0] * (count - len(paces))
    due = [whole * speed / fsum(speeds) for speed in speeds]
    return [max(due) - one for one in due]


def _next_move(
    held: Sequence[Sequence[_Loaded]], totals: Sequence[float]
) -> tuple[int, int, int] | None:
    """The giver, the place of the bucket among its own, and the taker; None where none helps.

    Only the least loaded instance is tried as taker: to it the difference is largest, so what is
    too heavy for it is too heavy for all.
    """
    taker = min(range(len(totals)), key=lambda i: (totals[i], i))
    for giver in sorted(range(len(totals)), key=lambda i: (-totals[i], i)):
        difference = totals[giver] - totals[taker]
        place = _nearest(held[giver], difference)
        if place is not None:
            return giver, place, taker
    return None


def _nearest(buckets: Sequence[_Loaded], difference: float) -> int | None:
    """The place of the bucket that evens two instances best; the first of equal ones.

    `buckets` ascend by load: so the best one is next to half of the difference.
    """
    half = difference / 2
    heavier = bisect_left(buckets, (half,))
    lighter = bisect_left(buckets, (buckets[heavier - 1][0],)) if heavier else len(buckets)
    fitting = [
        place
        for place in (lighter, heavier)
        if place < len(buckets)
        and difference * _LEAST < buckets[place][0] < difference * (1 - _LEAST)
    ]
    return min(fitting, key=lambda place: abs(buckets[place][0] - half), default=None)


def _offloaded(mapping: Mapping, loads: Sequence[float], count: int) -> list[list[_Loaded]]:
    """The buckets of each instance, by load, after instances that go have given theirs away."""
    held: list[list[_Loaded]] = [[] for _ in range(count)]
    free: list[_Loaded] = []
    for bucket, owner in enumerate(mapping.owners):
        (held[owner] if owner < count else free).append((float(loads[bucket]), bucket))
    least = [(fsum(load for load, _ in of), len(of), i) for i, of in enumerate(held)]
    heapify(least)
    for load, bucket in sorted(free, key=lambda one: (-one[0], one[1])):
        total, number, instance = least[0]
        held[instance].append((load, bucket))
        heapreplace(least, (total + load, number + 1, instance))
    return [sorted(of) for of in held]


def _owners(held: Sequence[Sequence[_Loaded]], buckets: int) -> tuple[int, ...]:
    owners = [0] * buckets
    for instance, of in enumerate(held):
        for _, bucket in of:
            owners[bucket] = instance
    return tuple(owners)


def _check(mapping: Mapping, loads: Sequence[float]) -> None:
    if len(loads) != mapping.buckets:
        raise OptionError(
            "balance", f"needs the load of each of the {mapping.buckets} buckets", str(len(loads))
        )
    for load in loads:
        if load < 0 or not isfinite(load):
            raise OptionError("balance", "loads must be numbers from 0 on", str(load))
