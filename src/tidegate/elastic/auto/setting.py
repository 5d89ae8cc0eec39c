"""What a setting of a query would lead to: its latency with an interval, its load, its error.

A batch takes what came while the one before it ran. So the next batches follow from the input that
waits, the load and the fixed cost of a batch (`model.pace`). The slowest tuple of a batch waits for
the whole batch before it and for its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from tidegate.elastic.auto.evidence import Evidence, Saved, SubqueryEvidence

MOST_LOAD = 0.98
"""A setting holds only where the load is below this at the upper end of its interval."""

_UNEVEN = 1.02
"""How many times the mean the busiest instance has after a balancing, at least."""

_MOST_STEPS = 400


@dataclass(frozen=True)
class Setting:
    """What a query can be set to: instances of each subquery, the share that it sheds, and whether
    the loads of its buckets are evened on the way."""

    counts: tuple[int, ...]
    share: float = 0.0
    evened: bool = False

    @property
    def cost(self) -> int:
        return sum(self.counts)


def change_text(before: Setting, after: Setting) -> str:
    """From one setting to another, in words."""
    parts = []
    if before.counts != after.counts:
        many = "" if sum(after.counts) == 1 else "s"
        parts.append(f"{_counts(before)} -> {_counts(after)} instance{many}")
    if before.share != after.share:
        parts.append(f"shed {before.share:.0%} -> {after.share:.0%}")
    return ", ".join(parts) or "the same instances with even loads"


def _counts(of: Setting) -> str:
    return " + ".join(map(str, of.counts))


@dataclass(frozen=True)
class LatencyForecast:
    """The latency of the slowest tuples at the end of a horizon, from `low_s` to `high_s`.

    `load` is the share of the time that the query needs, `high_load` at the upper end of what is
    known; from 1 on it falls behind.
    """

    low_s: float
    latency_s: float
    high_s: float
    load: float
    high_load: float

    def holds(self, target_s: float) -> bool:
        """Whether the target is kept, also if the work is as much as it may be."""
        return self.high_s <= target_s and self.high_load <= MOST_LOAD

    def helps(self, other: LatencyForecast, part: float) -> bool:
        """Whether it is so much better than another, where neither holds.

        A query that falls behind is as late as it likes: what counts then is how fast.
        """
        return self.latency_s <= part * other.latency_s or (
            other.load > 1 and self.load <= part * other.load
        )

    def as_dict(self) -> dict[str, Any]:
        high_s = max(self.high_s, self.latency_s)  # to shed less, saving less is the better case
        low, mid, high = (_plain(s) for s in (self.low_s, self.latency_s, high_s))
        return {"latency_s": mid, "low_s": low, "high_s": high, "load": round(self.load, 4)}


def forecast(
    seen: Evidence, setting: Setting, horizon_s: float, *, work: tuple[float, ...] | None = None
) -> LatencyForecast:
    """What becomes of a query in so many seconds, with the setting from now on.

    `work` is that of each subquery if nothing is shed, in place of what is foreseen.
    """
    asked = work or tuple(one.highest for one in seen.subqueries)
    # Subqueries have their turns in a batch; what is beside them was measured with each of them.
    fixed_s = max(one.fixed_s for one in seen.subqueries)
    beside = max(one.beside for one in seen.subqueries)
    divided = sum(
        work * _skew(one, count, setting) / count
        for one, work, count in zip(seen.subqueries, asked, setting.counts, strict=True)
    )
    ends = []
    for factor, worst in ((1 - seen.doubt, False), (1.0, False), (1 + seen.doubt, True)):
        load = beside * _left(seen.saved_beside, seen.share, setting.share, worst=worst)
        load += divided * factor * _left(seen.saved, seen.share, setting.share, worst=worst)
        end_s = slowest_s(fixed_s, load, seen.backlog_s, seen.trigger_s, horizon_s)
        ends.append((seen.ready_s + end_s, load))
    (low_s, _), (mid_s, load), (high_s, high_load) = ends
    return LatencyForecast(low_s, mid_s, high_s, load, high_load)


def slowest_s(
    fixed_s: float, load: float, backlog_s: float, trigger_s: float, horizon_s: float
) -> float:
    """The latency of the slowest tuple of the batch that ends after so many seconds."""
    cycle_s, passed_s, latency_s = max(backlog_s, trigger_s), 0.0, inf
    for _ in range(_MOST_STEPS):
        batch_s = fixed_s + load * cycle_s
        latency_s = cycle_s + batch_s
        next_s = max(batch_s, trigger_s, 1e-4)
        passed_s += next_s
        if passed_s >= horizon_s or abs(next_s - cycle_s) <= 1e-3 * cycle_s:
            break
        cycle_s = next_s
    return latency_s


def error_at(seen: Evidence, share: float) -> float | None:
    """The error to expect at a share; None where no window has shown one yet.

    Of a sample that keeps `k` of the tuples it grows with `sqrt((1 - k) / k)`.
    """
    if share <= 0:
        return 0.0
    return None if seen.half_error is None else seen.half_error * sqrt(share / (1 - share))


def _left(saved: Saved, now: float, share: float, *, worst: bool) -> float:
    """The part of the work that is left at a share; what is left now was measured."""
    part = saved.least if worst else saved.likely
    return (1 - part * share) / (1 - part * now) * (1 - saved.likely * now)


def _skew(one: SubqueryEvidence, count: int, setting: Setting) -> float:
    """How many times the mean the busiest of so many instances has."""
    if one.even or count == 1:
        return 1.0
    if count == one.instances and not setting.evened:
        return one.skew
    return max(one.hottest * count, _UNEVEN)


def _plain(seconds: float) -> float | None:
    return None if seconds == inf else round(seconds, 4)
