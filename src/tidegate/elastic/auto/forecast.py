"""Forecasts what a setting of a query leads to: latency with an interval, load, memory and error.

A batch takes what came while the one before it ran, as far as the limit of its rows allows. So the
next batches follow from the input that waits, the load, the fixed cost of a batch and its cadence
(`model.pace`). The slowest tuple of a batch waits for all batches before it and for its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

from tidegate.elastic.auto.evidence import Evidence, Saved, SubqueryEvidence
from tidegate.model.observation import BatchCadence

MOST_LOAD = 0.98
"""A setting holds only where the load is below this at the upper end of its interval."""

MOST_MEMORY, FULL_MEMORY = 0.6, 0.8
"""State may fill this part of what a process may hold, with a setting that is chosen; one that is
there already is left only from the second part on."""

_UNEVEN = 1.02
"""How many times the mean the busiest instance has after a balancing, at least."""

_MERGING = 1.15
"""How many times the work there is after keys were split, before batches have shown it: parts of a
key are merged."""

_MOST_STEPS = 400

_LEAST_SPARE = 0.02
"""Of the time at least so much is taken to be left for a backlog, where it is compared."""


@dataclass(frozen=True)
class Setting:
    """What a query can be set to: instances of each subquery, and the share that it sheds.

    With `evened` the loads of its buckets are evened on the way. `splits` says whether partitioners
    on standby may split keys, and `cadence` how often batches start and how large they are; None
    leaves each as it is.
    """

    counts: tuple[int, ...]
    share: float = 0.0
    evened: bool = False
    splits: bool | None = None
    cadence: BatchCadence | None = None

    @property
    def cost(self) -> int:
        return sum(self.counts)

    def stands(self, seen: Evidence) -> bool:
        """Whether the query has it already; whether loads are even does not count."""
        return (
            (self.counts, self.share) == (seen.counts, seen.share)
            and self.splits in (None, seen.splits)
            and self.cadence in (None, seen.cadence)
        )

    def undone(self, seen: Evidence) -> Setting:
        """What is there now, of all that this setting would change: the way back."""
        return Setting(
            seen.counts,
            seen.share,
            splits=None if self.splits is None else seen.splits,
            cadence=None if self.cadence is None else seen.cadence,
        )

    def as_dict(self) -> dict[str, Any]:
        """As status and JSON have it; what a setting leaves as it is, is left out."""
        told: dict[str, Any] = {"instances": list(self.counts), "share": self.share}
        if self.splits is not None:
            told["splits_keys"] = self.splits
        if self.cadence is not None:
            told |= {"trigger_s": self.cadence.trigger_s, "batch_rows": self.cadence.rows}
        return told


def change_text(before: Setting, after: Setting) -> str:
    """From one setting to another, in words."""
    parts = []
    if before.counts != after.counts:
        many = "" if sum(after.counts) == 1 else "s"
        parts.append(f"{_counts(before)} -> {_counts(after)} instance{many}")
    if before.share != after.share:
        parts.append(f"shed {before.share:.0%} -> {after.share:.0%}")
    if after.splits is not None and before.splits != after.splits:
        parts.append("keys may be split" if after.splits else "keys go by hash")
    if after.cadence is not None and before.cadence != after.cadence:
        parts.append(cadence_text(after.cadence, before.cadence))
    return ", ".join(parts) or "the same instances with even loads"


def cadence_text(cadence: BatchCadence, before: BatchCadence | None = None) -> str:
    """A cadence in words: all of it, or what is other than before."""
    parts = []
    if before is None or cadence.trigger_s != before.trigger_s:
        parts.append(f"every {cadence.trigger_s:g} s" if cadence.trigger_s else "at once")
    if before is None or cadence.rows != before.rows:
        parts.append("of any size" if cadence.rows is None else f"of {cadence.rows:,} rows at most")
    return f"batches {', '.join(parts)}"


def _counts(of: Setting) -> str:
    return " + ".join(map(str, of.counts))


@dataclass(frozen=True)
class LatencyForecast:
    """The latency of the slowest tuples at the end of a horizon, from `low_s` to `high_s`.

    `load` is the share of the time that the query needs, `high_load` at the upper end of what is
    known; from 1 on it falls behind. `drain_s` is how long a backlog takes that is too large for
    the horizon, 0 without one. `memory` is the part that state fills of what the process of the
    fullest instance may hold, 0 where that is not known.
    """

    low_s: float
    latency_s: float
    high_s: float
    load: float
    high_load: float
    memory: float = 0.0
    drain_s: float = 0.0

    def holds(self, target_s: float) -> bool:
        """Whether the target is kept and state fits, also if the work is as much as it may be."""
        fits = self.memory <= MOST_MEMORY
        return fits and self.high_s <= target_s and self.high_load <= MOST_LOAD

    def helps(self, other: LatencyForecast, part: float) -> bool:
        """Whether it is so much better than another, where neither holds.

        The latency of a query that falls behind has no end: then the load is compared. No remedy
        takes much off a backlog of minutes within the horizon: then it is how soon it is gone.
        """
        return (
            self.latency_s <= part * other.latency_s
            or (other.load > 1 and self.load <= part * other.load)
            or (other.drain_s > 0 and self.drain_s <= part * other.drain_s)
            or (other.memory > FULL_MEMORY and self.memory <= part * other.memory)
        )

    def as_dict(self) -> dict[str, Any]:
        high_s = max(self.high_s, self.latency_s)  # to shed less, saving less is the better case
        low, mid, high = (_plain(s) for s in (self.low_s, self.latency_s, high_s))
        told = {"latency_s": mid, "low_s": low, "high_s": high, "load": round(self.load, 4)}
        return told | ({"memory": round(self.memory, 4)} if self.memory else {})


def forecast(
    seen: Evidence, setting: Setting, horizon_s: float, *, work: tuple[float, ...] | None = None
) -> LatencyForecast:
    """What becomes of a query in so many seconds, with the setting from now on.

    `work` is that of each subquery if nothing is shed, in place of what is foreseen.
    """
    asked = work or tuple(one.highest for one in seen.subqueries)
    cadence = setting.cadence or seen.cadence
    # Subqueries have their turns in a batch; what is beside them was measured with each of them.
    fixed_s = max(one.fixed_s for one in seen.subqueries)
    beside = max(one.beside for one in seen.subqueries)
    divided = sum(
        work * _skew(one, count, setting) / count
        for one, work, count in zip(seen.subqueries, asked, setting.counts, strict=True)
    )
    most_s = inf if cadence.rows is None or seen.rate <= 0 else cadence.rows / seen.rate
    ends = []
    for factor, worst in ((1 - seen.doubt, False), (1.0, False), (1 + seen.doubt, True)):
        load = beside * _left(seen.saved_beside, seen.share, setting.share, worst=worst)
        load += divided * factor * _left(seen.saved, seen.share, setting.share, worst=worst)
        cycles = BatchCycles(fixed_s, load, cadence.trigger_s, most_s)
        end_s = cycles.slowest_s(seen.backlog_s, horizon_s)
        ends.append((seen.ready_s + end_s, cycles.least_load))
    (low_s, _), (mid_s, load), (high_s, high_load) = ends
    waiting_s = seen.backlog_s if seen.backlog_s > max(horizon_s, cadence.trigger_s) else 0.0
    # A second of input takes `load`, in which so much more comes in.
    drain_s = waiting_s * load / max(1 - load, _LEAST_SPARE)
    memory = memory_of(seen, setting)
    return LatencyForecast(low_s, mid_s, high_s, load, high_load, memory, drain_s)


@dataclass(frozen=True)
class BatchCycles:
    """Batches one after the other: `fixed_s` for each and `load` for each second of its input.

    A batch takes at most `most_s` seconds of input.
    """

    fixed_s: float
    load: float
    trigger_s: float
    most_s: float = inf

    @property
    def least_load(self) -> float:
        """The share of the time that is needed with the largest batches there may be."""
        return max(self.load + self.fixed_s / self.most_s, self.trigger_s / self.most_s)

    def slowest_s(self, waiting_s: float, horizon_s: float) -> float:
        """The latency of the slowest tuple of the batch that ends after so many seconds."""
        waiting_s, passed_s, latency_s = max(waiting_s, self.trigger_s), 0.0, inf
        for _ in range(_MOST_STEPS):
            taken_s = min(waiting_s, self.most_s)
            batch_s = self.fixed_s + self.load * taken_s
            latency_s = waiting_s + batch_s
            cycle_s = max(batch_s, self.trigger_s, 1e-4)
            after_s = waiting_s - taken_s + cycle_s
            passed_s += cycle_s
            if passed_s >= horizon_s or abs(after_s - waiting_s) <= 1e-3 * waiting_s:
                break
            waiting_s = after_s
        return latency_s


def memory_of(seen: Evidence, setting: Setting) -> float:
    """The part of what its process may hold that state fills, of the fullest instance.

    State is taken to be as uneven as the load: a bucket with more work has more of it.
    """
    if not seen.memory_bytes:
        return 0.0
    fullest = (
        one.state_bytes * _skew(one, count, replace(setting, splits=None)) / count
        for one, count in zip(seen.subqueries, setting.counts, strict=True)
    )
    return sum(fullest) / seen.memory_bytes


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
    """How many times an even part of the work the busiest of so many instances has."""
    if one.even:
        return 1.0
    if setting.splits and one.split is not None and not one.split.allowed:
        return _UNEVEN * _MERGING
    slowed = count / one.capacity(count)
    if count == 1:
        return slowed
    if count == one.instances and not setting.evened:
        return one.skew
    return max(one.hottest * count, _UNEVEN) * slowed


def _plain(seconds: float) -> float | None:
    return None if seconds == inf else round(seconds, 4)
