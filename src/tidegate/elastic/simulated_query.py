"""A query in a simulated world, batch by batch, for any policy to decide about.

Tuples arrive as a load says, whatever the query does. A batch starts when the one before has ended
and the trigger allows it, takes all that has arrived, and lasts as long as its fixed cost, what the
driver does for its tuples, and its busiest instance. What happens to a policy on the engine happens
here: a switch takes time, a task is run again, a pause, a slow instance, buckets of uneven load. No
clock is read: the same load and policy give the same batches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from typing import Any

import numpy as np

from tidegate.elastic.auto.forecast import cadence_text
from tidegate.elastic.policy import Decision, Policy
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.batch_run import Course
from tidegate.model.join.simulation import Counts, JoinModel
from tidegate.model.join.trace import Trace
from tidegate.model.observation import (
    START_UP,
    BatchCadence,
    InputLoad,
    InstanceLoad,
    Observation,
    ShedSeen,
    SplitSeen,
)
from tidegate.model.operation import Floats, Lookback, Operation
from tidegate.route.balance import balanced
from tidegate.route.mapping import Mapping as Owners
from tidegate.route.mapping import even

_BUCKETS = 256
_DISTURBED = {"retry": "a task was run again", "start": START_UP}
"""What a batch with a fault says of it; nothing of a pause."""


@dataclass(frozen=True)
class SimulatedFault:
    """From `at_s` for `seconds` something is wrong.

    A `slow` instance takes `times` as long, and as much CPU time. A `stalled` one takes as long by
    the clock alone: its host gives it a part of the time. With `reading`, map tasks do. A `pause`
    adds its seconds to one batch, and a `retry` has one batch done twice. With a `start` a run
    begins, and its first batch takes so much longer.
    """

    kind: str
    at_s: float
    seconds: float
    times: float = 2.0
    instance: int = 0


@dataclass(frozen=True, kw_only=True)
class SimulatedLoad:
    """What arrives in each second, or `step_s`: tuples, and the CPU seconds that they take.

    `hottest` is the share of one bucket in each second, all others being even, and `hot_bucket`
    which one that is; without it all are even. `state_bytes` is what all instances keep. A join by
    comparisons has `window` and `costs`.
    """

    tuples: Floats
    work_s: Floats
    hottest: Floats | None = None
    hot_bucket: int = 0
    state_bytes: Floats | None = None
    window: Lookback | None = None
    costs: JoinCosts | None = None
    step_s: float = 1.0

    def __len__(self) -> int:
        return len(self.tuples)

    def is_hot(self, second: int) -> bool:
        """Whether one bucket has more than the others."""
        return self.hottest is not None and float(self.hottest[second]) > 1.0 / _BUCKETS

    def weights(self, second: int) -> Floats:
        """The share of each bucket."""
        if self.hottest is None:
            return np.full(_BUCKETS, 1.0 / _BUCKETS)
        hot = max(float(self.hottest[second]), 1.0 / _BUCKETS)
        found = np.full(_BUCKETS, (1.0 - hot) / (_BUCKETS - 1))
        found[self.hot_bucket] = hot
        return found


@dataclass(frozen=True, kw_only=True)
class SimulatedQuery:
    """A query and where it runs.

    `batch_s` and `tuple_s` are what the driver takes, `switch_s` what the first batch with another
    mapping does beside. A batch takes at most `batch_tuples`. Where keys may be split, `merging` is
    the part by which that adds to the work; None where the partitioner cannot be changed.
    `memory_bytes` is what the process of an instance may hold. Of one that sheds, `most_share` is
    the most, `saved` the part of the work of a shed tuple that is saved, and `half_error` the error
    of a window where half is shed; `sieve_s` is what it takes the driver to choose among tuples,
    while some are shed, and `beside_saved` the part that it does not have to do for a shed tuple.
    """

    load: SimulatedLoad
    batch_s: float = 0.02
    tuple_s: float = 0.0
    switch_s: float = 0.1
    trigger_s: float = 0.2
    slots: int = 36
    most_share: float | None = None
    saved: float = 0.85
    half_error: float = 0.02
    sieve_s: float = 0.0
    beside_saved: float = 0.0
    window_s: float = 10.0
    batch_tuples: float = inf
    merging: float | None = None
    memory_bytes: int | None = None
    faults: Sequence[SimulatedFault] = ()

    @property
    def cadence(self) -> BatchCadence:
        """The cadence that it starts with."""
        return BatchCadence(
            self.trigger_s, None if self.batch_tuples == inf else int(self.batch_tuples)
        )

    def start(self, instances: int) -> SimulatedState:
        course = Course(self.load.tuples, self.load.work_s, self.load.step_s)
        return SimulatedState(self, course, even(_BUCKETS, instances), self.cadence)

    def run(self, policy: Policy, *, instances: int = 1) -> list[SimulatedBatch]:
        """All batches of the load, with a policy that decides after each."""
        return list(self.start(instances).batches(policy))


@dataclass(frozen=True)
class SimulatedBatch:
    """One batch: when it started and ended, and what was set while it ran.

    It has the tuples that came after `after_s` and until it started, the first of them where there
    are more than a batch takes.
    """

    after_s: float
    start_s: float
    end_s: float
    instances: int
    share: float
    observed: Observation
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class SimulatedState:
    """The world between two batches; `step` gives the next one and leaves this one as it is."""

    query: SimulatedQuery
    course: Course
    mapping: Owners
    cadence: BatchCadence
    splits: bool = False
    share: float = 0.0
    batch: int = 0
    now_s: float = 0.0
    started_s: float = -1e9
    taken_s: float = 0.0
    switched: bool = False
    shed_error: tuple[float, float] | None = None
    """Error and kept share of the newest window that shed."""
    done: frozenset[int] = field(default_factory=frozenset)
    """The pauses and retries that have been."""

    @property
    def over(self) -> bool:
        return self.start_s >= self.course.end_s - 1e-9

    @property
    def start_s(self) -> float:
        """When the next batch starts."""
        taken, _ = self.course.until(self.taken_s)
        first_s = self.course.when(taken + 1.0)
        return max(self.now_s, self.started_s + self.cadence.trigger_s, first_s)

    @property
    def split(self) -> SplitSeen | None:
        """What a policy sees of the partitioner in the batch that starts next."""
        if self.query.merging is None:
            return None
        hot = self.query.load.is_hot(self.course.interval(self.start_s))
        return SplitSeen(self.splits, self.splits and hot)

    def step(self) -> tuple[SimulatedState, SimulatedBatch]:
        """One batch with the mapping and the share that stand."""
        query, start_s = self.query, self.start_s
        second = self.course.interval(start_s)
        tuples0, work0_s = self.course.until(self.taken_s)
        most = inf if self.cadence.rows is None else self.cadence.rows
        until_s = min(start_s, self.course.when(tuples0 + most))
        tuples, work_s = self.course.until(until_s)
        tuples, work_s = tuples - tuples0, work_s - work0_s
        cpu_s = work_s * (1 - query.saved * self.share)
        weights = query.load.weights(second)
        if self.split is not None and self.split.splits:
            assert query.merging is not None
            weights = np.full(_BUCKETS, (1 + query.merging) / _BUCKETS)
        buckets = cpu_s * weights
        owners = self.mapping.owner_array
        slow, paces, reading = np.ones((3, self.mapping.instances))
        lasting = {"slow": slow, "stalled": paces, "reading": reading}
        extra_s, disturbed, done = 0.0, None, set(self.done)
        for place, fault in enumerate(query.faults):
            longer = lasting.get(fault.kind)
            if longer is not None and fault.at_s <= start_s < fault.at_s + fault.seconds:
                longer[fault.instance % self.mapping.instances] = fault.times
            elif longer is None and fault.at_s <= start_s and place not in done:
                done.add(place)
                extra_s += fault.seconds
                disturbed = _DISTURBED.get(fault.kind, disturbed)
        buckets = buckets * slow[owners]
        busy: Floats = np.bincount(  # type: ignore[assignment]
            owners, weights=buckets, minlength=self.mapping.instances
        )
        tuple_s = query.tuple_s * (1 - query.beside_saved * self.share)
        tuple_s += query.sieve_s if self.share else 0.0
        tuple_s *= float(reading.max())
        seconds = query.batch_s + tuple_s * tuples + float((busy * paces).max()) + extra_s
        seconds += query.switch_s if self.switched else 0.0
        end_s = start_s + seconds
        error = self.shed_error
        if self.share and int(end_s // query.window_s) > int(self.now_s // query.window_s):
            error = query.half_error * sqrt(self.share / (1 - self.share)), 1 - self.share
        waiting, _ = self.course.until(min(end_s, self.course.end_s))
        seen = self._seen(start_s, end_s, tuples, busy, buckets, waiting - tuples0 - tuples)
        observed = replace(
            seen,
            instances=tuple(
                replace(load, pace=pace)
                for load, pace in zip(seen.instances, paces.tolist(), strict=True)
            ),
            disturbed=disturbed,
            shed=None
            if query.most_share is None
            else ShedSeen(self.share, query.most_share, *(error or (None, None))),
        )
        batch = SimulatedBatch(
            self.taken_s, start_s, end_s, self.mapping.instances, self.share, observed
        )
        after = replace(
            self,
            batch=self.batch + 1,
            now_s=end_s,
            started_s=start_s,
            taken_s=until_s,
            switched=False,
            shed_error=error,
            done=frozenset(done),
        )
        return after, batch

    def scaled(self, instances: int) -> SimulatedState:
        """With so many instances from now on, whose loads are as even as they can be."""
        weights = self.query.load.weights(self.course.interval(self.now_s))
        mapping = balanced(self.mapping, weights.tolist(), instances)
        return replace(self, mapping=mapping, switched=mapping is not self.mapping)

    def batches(self, policy: Policy) -> Iterator[SimulatedBatch]:
        """All that follow; the memory of the policy goes through JSON, as through a manifest."""
        state, memory = self, dict[str, Any]()
        while not state.over:
            state, batch = state.step()
            decision = policy.decide((batch.observed,), memory)
            memory = json.loads(json.dumps(decision.memory))
            whys = [request.why for request in decision.requests]
            loads = (batch.observed.buckets / batch.observed.period_s).tolist()
            state = state.after(decision, loads)
            if decision.share is not None:
                whys.append(decision.share.why)
            if decision.cadence is not None:
                whys.append(cadence_text(decision.cadence))
            yield replace(batch, why=tuple(dict.fromkeys(whys)))

    def after(self, decision: Decision, loads: Sequence[float]) -> SimulatedState:
        """With all that a policy asks for; `loads` are those of the buckets lately."""
        state = self
        for request in decision.requests:
            mapping = request.change.after(state.mapping, loads)
            state = replace(state, mapping=mapping, switched=mapping is not state.mapping)
        if decision.share is not None:
            state = replace(state, share=decision.share.share or 0.0)
        if decision.splits is not None:
            state = replace(state, splits=decision.splits)
        return state if decision.cadence is None else replace(state, cadence=decision.cadence)

    def _oldest_s(self, start_s: float) -> float:
        """When the oldest tuple of a batch came: after a gap without tuples, not before its end."""
        taken, _ = self.course.until(self.taken_s)
        return min(max(self.taken_s, self.course.when(taken + 1e-6)), start_s)

    def _state_bytes(self, at_s: float) -> int:
        kept = self.query.load.state_bytes
        return 0 if kept is None else round(float(kept[self.course.interval(at_s)]))

    def _seen(
        self,
        start_s: float,
        end_s: float,
        tuples: float,
        busy: Floats,
        buckets: Floats,
        waiting: float,
    ) -> Observation:
        load, count = self.query.load, self.mapping.instances
        joined = load.costs is not None and load.window is not None
        compared = [0.0] * count
        if load.costs is not None:
            compared = (busy / load.costs.comparison_s).tolist()
            sigma = load.costs.sigma
        period_s = end_s - self.now_s
        arrived, _ = self.course.until(min(end_s, self.course.end_s))
        before, _ = self.course.until(min(self.now_s, self.course.end_s))
        sides = (tuples / 2, tuples / 2) if joined else (tuples,)
        came = (arrived - before) / len(sides)
        instances = tuple(
            InstanceLoad(
                float(cpu_s),
                round(tuples / count),
                round(pairs),
                round(pairs * sigma) if joined else 0,
                round(pairs),
            )
            for cpu_s, pairs in zip(busy.tolist(), compared, strict=True)
        )
        return Observation(
            subquery="join" if joined else "aggregate",
            batch=self.batch,
            seconds=end_s - start_s,
            period_s=period_s,
            mapping=self.mapping,
            instances=instances,
            buckets=buckets,
            backlog=round(waiting),
            slots=self.query.slots,
            inputs=tuple(
                InputLoad(side, name, name, round(n), round(came), side=side)
                for side, (name, n) in enumerate(zip("rs", sides))
            ),
            sides=tuple(round(n) for n in sides) if joined else (),
            operation=Operation("join", "scan", (load.window, load.window), (0, 1), everywhere=True)
            if joined and load.window is not None
            else Operation("aggregate"),
            taken=round(tuples),
            event_s=start_s - self.taken_s,
            latency_s=end_s - self._oldest_s(start_s),
            cadence=self.cadence,
            own_cadence=self.query.cadence,
            split=self.split,
            state_bytes=self._state_bytes(start_s),
            memory_bytes=self.query.memory_bytes,
        )


def simulated_join(policy: Policy, join: JoinModel, trace: Trace, *, first: int) -> Counts:
    """The instances of each interval of a trace, where a policy decides after each batch.

    Batches are those of the model, or of 20 ms where it has none.
    """
    share = join.quota * join.free_s(trace) / trace.step_s
    load = SimulatedLoad(
        tuples=(trace.r.sum(axis=1) + trace.s.sum(axis=1)) * trace.step_s,
        work_s=join.work(trace) * join.costs.comparison_s / share,
        window=join.window,
        costs=join.costs,
        step_s=trace.step_s,
    )
    query = SimulatedQuery(load=load, slots=_BUCKETS)
    if join.batch is not None:
        query = replace(query, batch_s=join.costs.batch_s, trigger_s=join.batch.trigger_s)
    batches = query.run(policy, instances=first)
    ends = np.array([batch.end_s for batch in batches])
    counts = np.array([batch.instances for batch in batches], np.int64)
    places = np.searchsorted(ends, np.arange(len(trace)) * trace.step_s, side="right")
    found: Counts = (
        counts[np.minimum(places, len(counts) - 1)]
        if len(counts)
        else np.full(len(trace), first, np.int64)
    )
    return found


def latencies(batches: Sequence[SimulatedBatch], seconds: int) -> Floats:
    """Of the tuple at the end of each second, how long after it the batch ends that has it.

    NaN for seconds after the last batch started.
    """
    starts = np.array([batch.start_s for batch in batches])
    ends = np.array([batch.end_s for batch in batches])
    marks = np.arange(1, seconds + 1, dtype=np.float64)
    place = np.searchsorted(starts, marks - 1e-9)
    known = place < len(ends)
    found = np.full(seconds, np.nan)
    found[known] = ends[place[known]] - marks[known]
    return found


def instance_seconds(batches: Sequence[SimulatedBatch]) -> float:
    """The instances over time: those of a batch count from the end of the one before."""
    ends = np.array([0.0, *(batch.end_s for batch in batches)])
    return float(np.diff(ends) @ np.array([batch.instances for batch in batches]))


def share_seconds(batches: Sequence[SimulatedBatch]) -> Mapping[str, float]:
    """The most that was shed, and the mean over the time."""
    ends = np.array([0.0, *(batch.end_s for batch in batches)])
    shares = np.array([batch.share for batch in batches])
    whole_s = float(ends[-1]) or 1.0
    return {"most": float(shares.max()), "mean": float(np.diff(ends) @ shares) / whole_s}
