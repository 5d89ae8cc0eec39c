"""Runs that switch again and again, with a witness to every job, and what must hold of them.

The rules are STRETCH's properties P1 to P6 as `docs/internals.md` has them; each is a function here
that looks at what a witness has seen.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

import tidegate as tg
from tests.property.course import IN_MEMORY, lines
from tests.property.graphs import CELLS
from tests.property.steps import BUCKETS, Graph, Line
from tidegate.batch import EpochId
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import StepSeen
from tidegate.elastic import handover
from tidegate.elastic.request import MappingChange, Move, Rebalance, Request, Scale, Switch
from tidegate.errors import OptionError
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalRunner
from tidegate.execute.task import map_here, run_instance, start_parcels
from tidegate.operate.process.definition import Process
from tidegate.plan.join.method import AUTO
from tidegate.plan.options import JoinOptions, PlanOptions
from tidegate.plan.physical import OPERATOR_SET
from tidegate.query.output import Output
from tidegate.route import mapping as route
from tidegate.route.partitioner import EVERY_INSTANCE
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.memory import MemorySink

PLACE = Place("none")
MOST_INSTANCES = 5

Lines = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Ran:
    """One job with what its instances reported, and when it began and ended, as counted events."""

    job: Job
    outcomes: tuple[Outcome, ...]
    began: int
    ended: int


@dataclass(frozen=True)
class Sight:
    """A tuple that the object of a bucket was given: `count` is how many it had had before."""

    bucket: int
    ts: int
    tuple: int
    count: int
    instance: int
    job: Job


_events = itertools.count()


class Witness(LocalRunner):
    """Runs jobs in this process, and notes who does what. Grows with batches: it is for tests."""

    now: ClassVar[tuple[Job, int] | None] = None
    """The job and the instance that are at work."""

    def __init__(self) -> None:
        self.ran: list[Ran] = []

    def run(self, job: Job) -> list[Outcome]:
        began = self._event()
        parcels = [*start_parcels(job), *map_here(job)]
        outcomes = []
        for i in range(job.mapping.running):
            Witness.now = job, i
            mine = [p for p in parcels if p.instance in (i, EVERY_INSTANCE)]
            outcomes.append(run_instance(job, i, mine))
        Witness.now = None
        self.ran.append(Ran(job, tuple(outcomes), began, self._event()))
        return outcomes

    def _event(self) -> int:
        return next(_events)


class Seen(Process):
    """Tells of every tuple that the object of a bucket is given, and how many it had before."""

    output: ClassVar = {"k": "bigint", "v": "bigint"}
    sights: ClassVar[list[Sight]] = []

    def __init__(self) -> None:
        self.count = 0

    def on_tuple(self, tuple: Any, keys: Sequence[int | None]) -> Iterator[dict[str, Any]]:
        if Witness.now is not None:
            job, instance = Witness.now
            ts = round(tuple.ts.timestamp() * 1e6)
            sight = Sight(self.bucket, ts, tuple.v, self.count, instance, job)
            Seen.sights.append(sight)
        self.count += 1
        yield {"k": self.bucket, "v": tuple.v * 1000 + self.count}


@dataclass(frozen=True)
class Course:
    """How a run goes: in batches of some rows, with requests before some of them.

    `crash` is a step of a batch at which the process is taken to be dead; another goes on.
    """

    batch_rows: int
    instances: int = 1
    requests: Mapping[int, Sequence[Request]] = field(default_factory=dict)
    strategy: str = OPERATOR_SET
    method: str = AUTO
    crash: tuple[str, int] | None = None
    handover: str = handover.AUTO


@dataclass
class Run:
    """What came out of a run, and what was seen of it.

    `mappings` has those of the subqueries after each batch, -1 for the first, by their keys;
    `asked` has what the newest request before a batch makes of them. `handovers` counts how buckets
    changed hands.
    """

    rows: dict[str, Lines] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)
    mappings: dict[int, dict[str, route.Mapping]] = field(default_factory=dict)
    asked: dict[int, dict[str, route.Mapping]] = field(default_factory=dict)
    sights: list[Sight] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    handovers: Counter[str] = field(default_factory=Counter)
    crashed: bool = False

    @property
    def switches(self) -> int:
        """How often a mapping of a subquery changed."""
        mappings = [self.mappings[batch] for batch in sorted(self.mappings) if batch >= 0]
        return sum(a[key] != b[key] for a, b in pairwise(mappings) for key in a)

    @property
    def batches(self) -> int:
        return max(self.mappings) + 1


class Crashed(Exception):
    """The process is taken to be dead."""


def run(graph: Graph, course: Course) -> Run:
    """Run a graph to its end along a course."""
    made, sinks = Run(), dict[str, MemorySink]()
    Seen.sights = made.sights

    def observe(step: str, batch: int) -> None:
        if (step, batch) == course.crash and not made.crashed:
            made.crashed = True
            raise Crashed

    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as folder:
        loop = _loop(graph, course, folder, sinks, observe)
        while True:
            _note(loop, made)
            if loop.manifest.finished:
                break
            _ask(loop, course, made)
            try:
                loop.step()
            except Crashed:
                made.ran += loop.runner.ran
                loop.close()
                loop = _loop(graph, course, folder, sinks, observe)
        made.ran += loop.runner.ran
        made.counters = dict(loop.manifest.counters)
        made.handovers.update(e["handover"] for e in loop.manifest.epochs if "handover" in e)
        loop.close()
    made.rows = {name: lines(sink.table()) for name, sink in sinks.items()}
    return made


def _loop(
    graph: Graph, course: Course, folder: str, sinks: dict[str, MemorySink], observe: StepSeen
) -> Loop:
    session = tg.Session(master="none")
    streams = graph.build(_streams(graph, session))
    outputs = tuple(Output(name, stream.node) for name, stream in streams.items())
    for name in streams:
        sinks.setdefault(name, MemorySink())
    connectors = session._sources.connectors
    options = PlanOptions(JoinOptions(course.method, AUTO, BUCKETS), course.strategy)
    chosen = RunOptions(
        instances=course.instances,
        buckets=BUCKETS,
        batch_rows=course.batch_rows,
        handover=course.handover,
    )
    loop = prepare(
        plan_for(outputs, PLACE, options, connectors),
        PLACE,
        {name: sinks[name] for name in streams},
        chosen,
        checkpoint=folder,
        connectors=connectors,
        observer=observe,
    )
    loop.runner = Witness()
    return loop


def _streams(graph: Graph, session: tg.Session) -> list[tg.Stream]:
    """The streams of a graph, over memory sources that have ended."""
    streams = []
    for name, tables in graph.tables().items():
        sources = []
        for place, table in enumerate(tables):
            source = tg.MemorySource(table, time="ts", schema=table.schema, id=f"{name}/{place}")
            source.end()
            sources.append(source)
        streams.append(session.stream(sources, time="ts", name=name))
    return streams


def _note(loop: Loop, made: Run) -> None:
    """The mappings that count now."""
    manifest = loop.manifest
    made.mappings[manifest.batch] = {
        key: route.restored(held["epoch"], held["instances"], held["owners"])
        for key, held in manifest.mappings.items()
    }


def _ask(loop: Loop, course: Course, made: Run) -> None:
    """Ask for what the course has before the next batch."""
    batch = loop.manifest.batch + 1
    keys = {name: key for key, name in loop.plan.names.items()}
    asked: dict[str, route.Mapping] = {}
    for request in course.requests.get(batch, ()):
        with suppress(OptionError):  # an instance that is not there; nothing changes
            taken = loop.controls.ask(request)
            asked |= {keys[name]: replace(of.mapping, formers=()) for name, of in taken.items()}
    made.asked[batch] = asked


def requests(
    chance: random.Random, names: Sequence[str], batches: int, share: float
) -> dict[int, list[Request]]:
    """Random requests before a share of the batches, often several at once; the newest counts."""
    found = {}
    for batch in range(1, batches):
        if chance.random() < share:
            found[batch] = [drawn(chance, names) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return found


def drawn(chance: random.Random, names: Sequence[str]) -> Request:
    """A request for all subqueries, or one of these: each kind as often."""
    instances = chance.randint(1, MOST_INSTANCES)
    owners = tuple(chance.randrange(instances) for _ in range(BUCKETS))
    moved = tuple(sorted(chance.sample(range(BUCKETS), chance.randint(1, 4))))
    changes: list[MappingChange] = [Scale(instances), Switch(owners, instances), Rebalance()]
    changes += [Move(moved, instance) for instance in (0, chance.randrange(4))]
    return Request(chance.choice(changes), chance.choice((None, *names)))


def many_lines(chance: random.Random, rows: int, first: int = 0) -> tuple[Line, ...]:
    """Rows whose times go up or stand still."""
    ts, found = first + chance.randint(-6, 6), []
    for step, k, v in chance.choices(CELLS, k=rows):
        ts += step
        found.append((ts, k, v))
    return tuple(found)


def numbered(streams: Sequence[Sequence[Sequence[Line]]]) -> Any:
    """The same streams with a number for each tuple instead of a value."""
    number = iter(range(10**9))
    return tuple(
        tuple(tuple((ts, k, next(number)) for ts, k, _ in source) for source in stream)
        for stream in streams
    )


def in_total_order(graph: Graph) -> list[int]:
    """The values of all tuples of a graph's streams in the order that they are processed in."""
    places = [
        (ts, stream, source, seq, v)
        for stream, sources in enumerate(graph.streams)
        for source, rows in enumerate(sources)
        for seq, (ts, _, v) in enumerate(rows)
    ]
    return [place[-1] for place in sorted(places)]


def same_tuples_in_the_same_order(run: Run, graph: Graph) -> None:
    """P1, where every object is given every tuple: so do all instances, in the total order."""
    wanted = in_total_order(graph)
    seen: dict[int, list[int]] = {}
    for sight in run.sights:
        seen.setdefault(sight.bucket, []).append(sight.tuple)
    assert sorted(seen) == list(range(BUCKETS))
    assert all(tuples == wanted for tuples in seen.values())


def buckets_are_their_owners_alone(run: Run) -> None:
    """P2: in a job only its owner has a tuple or writes state of a bucket.

    With window recreation ownership is by bucket and time: an instance writes what is stored of a
    bucket in an epoch in which it owns it.
    """
    for sight in run.sights:
        assert sight.job.mapping.owners[sight.bucket] == sight.instance, sight
    written = 0
    for ran in run.ran:
        for outcome in ran.outcomes:
            owned = (ran.job.mapping.tenures == outcome.instance).any(axis=0)
            own = set(np.flatnonzero(owned).tolist())
            for segment in (s for of in outcome.segments.values() for s in of):
                assert set(segment.buckets) <= own, (ran.job.name, outcome.instance, segment)
                written += 1
    assert written or not any(ran.job.operator.state.keepers for ran in run.ran)


def tuples_are_ready_and_in_order(run: Run) -> None:
    """P3: what an instance is given is below the frontier of its batch, and not below the last."""
    for sight in run.sights:
        assert sight.job.previous_us <= sight.ts < sight.job.frontier_us, sight
    by_bucket: dict[int, list[int]] = {}
    for sight in run.sights:
        by_bucket.setdefault(sight.bucket, []).append(sight.ts)
    assert all(times == sorted(times) for times in by_bucket.values())


def old_owners_end_before_new_ones_begin(run: Run) -> None:
    """P4: a job begins after the one before has ended, and a bucket has all it had."""
    for jobs in by_subquery(run).values():
        for one, two in pairwise(jobs):
            assert one.ended < two.began
            assert two.job.batch >= one.job.batch
    counts: dict[int, int] = {}
    for sight in run.sights:
        assert sight.count == counts.get(sight.bucket, 0), sight
        counts[sight.bucket] = sight.count + 1


def switches_are_whole(run: Run) -> None:
    """P5: after a batch a mapping is what it was, or what was asked for last, and all have it."""
    for before, after in pairwise(sorted(run.mappings)):
        for key, mapping in run.mappings[after].items():
            if before < 0:
                continue
            had = run.mappings[before][key]
            assert mapping == run.asked[after].get(key, had), (after, key)
            assert mapping.epoch in (had.epoch, EpochId(had.epoch + 1))
    for ran in run.ran:
        answered = [outcome.instance for outcome in ran.outcomes]
        assert answered == list(range(ran.job.mapping.running))


def equal_times_are_of_one_epoch(run: Run) -> None:
    """P6: the jobs of a subquery divide time: each begins where the one before has ended."""
    for jobs in by_subquery(run).values():
        done = {ran.job.batch: ran.job for ran in jobs}
        for one, two in pairwise(sorted(done)):
            assert done[two].previous_us == done[one].frontier_us
    epochs: dict[int, set[int]] = {}
    for sight in run.sights:
        epochs.setdefault(sight.ts, set()).add(int(sight.job.mapping.epoch))
    assert all(len(found) == 1 for found in epochs.values())


def by_subquery(run: Run) -> dict[str, list[Ran]]:
    found: dict[str, list[Ran]] = {}
    for ran in run.ran:
        found.setdefault(ran.job.subquery.key, []).append(ran)
    return found


RULES = (
    buckets_are_their_owners_alone,
    tuples_are_ready_and_in_order,
    old_owners_end_before_new_ones_begin,
    switches_are_whole,
    equal_times_are_of_one_epoch,
)
"""What holds of every run; P1 also needs to know what was to be seen."""
