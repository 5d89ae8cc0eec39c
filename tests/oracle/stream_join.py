"""A stream join event by event: each tuple arrives, becomes ready, is compared and has its output.

The twin of the equations in `tidegate.model`, of which nothing is used. Time is in seconds. Tuples
are not really compared; how many they meet is counted, and every 1/sigma-th comparison of an
instance matches.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

SECOND = 10**9


@dataclass
class Event:
    """A tuple: when it came, from which source and stream, and what became of it."""

    at: float
    source: int
    stream: int
    ready: float = math.inf
    meets: int = 0


@dataclass(frozen=True)
class PlainJoin:
    """What the join is: one window for both streams, by seconds or by rows."""

    alpha: float
    beta: float
    sigma: float
    seconds: float = math.inf
    rows: float = math.inf
    batch_s: float = 0.0
    tuple_s: float = 0.0


def arrivals(rates: Sequence[Sequence[Sequence[float]]], step: float) -> list[Event]:
    """All tuples in the order of arrival; those of one time in the order of the sources.

    `rates` has for each stream a list of sources, and for each source a rate for each interval. The
    n-th tuple of a source comes when as many have come as the rates say: the first at once. Times
    are cut to nanoseconds, exactly, so that sources that coincide do so here.
    """
    events = []
    source = 0
    for stream, sources in enumerate(rates):
        for series in sources:
            events += [Event(at, source, stream) for at in _times(series, step)]
            source += 1
    return sorted(events, key=lambda e: (e.at, e.source))


def _times(series: Sequence[float], step: float) -> list[float]:
    found = []
    arrived = Fraction(0)
    length = Fraction(step)
    for place, value in enumerate(series):
        rate = Fraction(value).limit_denominator(10**6)
        upto = arrived + rate * length
        if rate:
            first, last = math.ceil(arrived), math.ceil(upto)
            begin = place * length + (first - arrived) / rate
            scale = begin.denominator * rate.numerator
            offset, pace = begin.numerator * rate.numerator, begin.denominator * rate.denominator
            found += [(offset + k * pace) * SECOND // scale / SECOND for k in range(last - first)]
        arrived = upto
    return found


def make_ready(events: list[Event], sources: int, strict: bool) -> list[Event]:
    """The tuples in the order in which they are processed, each with the time at which it is ready.

    One is ready when every other source has brought one that comes after it, by time and then by
    source; strictly, when every source has brought one with a later time.
    """
    newest = [(-math.inf, -1)] * sources
    waiting: list[deque[Event]] = [deque() for _ in range(sources)]
    done = []
    for event in events:
        newest[event.source] = (event.at, event.source)
        waiting[event.source].append(event)
        while True:
            heads = [queue[0] for queue in waiting if queue]
            if not heads:
                break
            head = min(heads, key=lambda e: (e.at, e.source))
            if strict:
                ready = all(at > head.at for at, _ in newest)
            else:
                after = (head.at, head.source)
                ready = all(seen > after for k, seen in enumerate(newest) if k != head.source)
            if not ready:
                break
            head.ready = event.at
            done.append(waiting[head.source].popleft())
    return done


def meet(order: list[Event], join: PlainJoin) -> None:
    """How many tuples of the other stream each meets: those that are in its window by then."""
    held: list[deque[float]] = [deque(), deque()]
    for event in order:
        other = held[1 - event.stream]
        while other and other[0] < event.at - join.seconds:
            other.popleft()
        event.meets = len(other)
        own = held[event.stream]
        own.append(event.at)
        if len(own) > join.rows:
            own.popleft()


def held_at(events: list[Event], stream: int, time: float, join: PlainJoin) -> int:
    """What the window of a stream holds at a time."""
    came = [e.at for e in events if e.stream == stream and time - join.seconds <= e.at < time]
    return int(min(len(came), join.rows))


@dataclass
class Instance:
    """One that processes tuple after tuple, for `quota` of each interval."""

    step: float
    quota: float
    free: float = 0.0
    matched: float = 0.0
    used: dict[int, float] = field(default_factory=dict)
    made: dict[int, float] = field(default_factory=dict)
    """Comparisons by interval."""
    emitted: list[tuple[int, float]] = field(default_factory=list)
    """The number of each tuple with output in the order of processing, and when it was done."""

    def process(self, number: int, event: Event, meets: int, join: PlainJoin) -> float | None:
        """Scan; the mean time of the output, or None where there is none."""
        first = self.matched
        self.matched += join.sigma * meets
        outputs = math.floor(self.matched)
        self.matched -= outputs
        spent = [(math.ceil((j - first) / join.sigma) * join.alpha) + j * join.beta
                 for j in range(1, outputs + 1)]  # fmt: skip
        pieces = self._work(
            max(event.ready, self.free), meets, meets * join.alpha + outputs * join.beta
        )
        self.free = pieces[-1][1]
        if not outputs:
            return None
        self.emitted.append((number, self.free))
        return sum(_moment(pieces, s) for s in spent) / outputs

    def _work(self, at: float, meets: int, seconds: float) -> list[tuple[float, float]]:
        """When it is at work for so long: pairs of begin and end."""
        pieces = []
        left = seconds
        while True:
            i = int(at / self.step + 1e-9)
            used = self.used.get(i, 0.0)
            now = min(left, self.quota * self.step - used, (i + 1) * self.step - at)
            if now > 0 or left <= 0:
                pieces.append((at, at + now))
                self.used[i] = used + now
                share = now / seconds if seconds > 0 else 1.0
                self.made[i] = self.made.get(i, 0.0) + meets * share
                left -= now
                at += now
            if left <= 1e-15:
                return pieces
            if now <= 0 or self.used.get(i, 0.0) >= self.quota * self.step - 1e-15:
                at = (i + 1) * self.step


def _moment(pieces: list[tuple[float, float]], spent: float) -> float:
    for begin, end in pieces:
        if spent <= end - begin:
            return begin + spent
        spent -= end - begin
    return pieces[-1][1]


@dataclass
class Seen:
    """What was seen of each tuple that was processed, or its batch committed; in this order.

    `at` is when it came, `done` when it was processed. A term that it has none of is NaN.
    """

    at: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    joined: list[float] = field(default_factory=list)
    merged: list[float] = field(default_factory=list)
    made: dict[int, float] = field(default_factory=dict)
    """Comparisons of all instances by interval."""


def run(
    rates: Sequence[Sequence[Sequence[float]]],
    step: float,
    join: PlainJoin,
    *,
    instances: int,
    quota: float = 1.0,
    deterministic: bool = True,
    strict: bool = False,
) -> Seen:
    """The join of the paper, which processes each tuple as soon as it is ready."""
    events = arrivals(rates, step)
    if deterministic:
        order = make_ready(events, sum(len(sources) for sources in rates), strict)
    else:
        order = events
        for event in order:
            event.ready = event.at
    meet(order, join)
    workers = [Instance(step, quota) for _ in range(instances)]
    seen = Seen()
    for number, event in enumerate(order):
        outputs = []
        for k, worker in enumerate(workers):
            share = event.meets // instances + (k < event.meets % instances)
            outputs.append(worker.process(number, event, share, join))
        times = [time for time in outputs if time is not None]
        seen.at.append(event.at)
        seen.done.append(max(worker.free for worker in workers))
        seen.waited.append(event.ready - event.at)
        seen.joined.append(sum(times) / len(times) - event.ready if times else math.nan)
    seen.merged = merged(workers, len(order)) if deterministic else [0.0] * len(order)
    for worker in workers:
        for i, count in worker.made.items():
            seen.made[i] = seen.made.get(i, 0.0) + count
    return seen


def merged(workers: list[Instance], tuples: int) -> list[float]:
    """How long the output of each tuple waits for the merge, on average over the instances.

    Output goes on when each other instance has brought some that comes after it, in the order of
    the tuples and then of the instances.
    """
    sums, counts = [0.0] * tuples, [0] * tuples
    numbers = [[number for number, _ in worker.emitted] for worker in workers]
    for k, worker in enumerate(workers):
        for number, done in worker.emitted:
            after = done
            for x, other in enumerate(workers):
                if x != k:
                    place = bisect_right(numbers[x], number if x < k else number - 1)
                    after = max(
                        after, other.emitted[place][1] if place < len(numbers[x]) else math.nan
                    )
            sums[number] += after - done
            counts[number] += 1
    return [total / count if count else math.nan for total, count in zip(sums, counts)]


def run_batches(
    rates: Sequence[Sequence[Sequence[float]]],
    step: float,
    join: PlainJoin,
    *,
    instances: int,
    quota: float = 1.0,
    trigger: float = 0.0,
    rows: float = math.inf,
) -> Seen:
    """An engine of micro-batches, whose tuples are ready strictly before the least newest time.

    A batch takes what has arrived when it starts, and processes what is ready of all that was
    taken. `waited` is until it started, `joined` until its commit.
    """
    events = arrivals(rates, step)
    sources = sum(len(streams) for streams in rates)
    order = make_ready([Event(e.at, e.source, e.stream) for e in events], sources, strict=True)
    meet(order, join)
    seen = Seen()
    newest = [-math.inf] * sources
    taken = answered = 0
    free = 0.0
    while taken < len(events):
        start = max(free, events[taken].at)
        first = taken
        while taken < len(events) and events[taken].at <= start and taken - first < rows:
            newest[events[taken].source] = events[taken].at
            taken += 1
        batch = []
        while answered < len(order) and order[answered].at < min(newest):
            batch.append(order[answered])
            answered += 1
        meets = sum(event.meets for event in batch)
        working = meets * (join.alpha + join.sigma * join.beta) / (instances * quota)
        end = start + join.batch_s + join.tuple_s * (taken - first) + working
        for event in batch:
            seen.at.append(event.at)
            seen.done.append(end)
            seen.waited.append(start - event.at)
            seen.joined.append(end - start)
            seen.merged.append(0.0)
        _spread(seen.made, meets, start, end, step)
        free = max(end, start + trigger)
    return seen


def _spread(made: dict[int, float], meets: float, start: float, end: float, step: float) -> None:
    for i in range(int(start / step), int(end / step) + 1):
        overlap = min(end, (i + 1) * step) - max(start, i * step)
        share = overlap / (end - start) if end > start else 1.0
        made[i] = made.get(i, 0.0) + meets * share
