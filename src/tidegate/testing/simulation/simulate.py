"""Runs a query with a user's sink, source or process through many simulated crashes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import pyarrow as pa

from tidegate import schedule
from tidegate.batch import BatchId
from tidegate.driver.options import RunOptions
from tidegate.driver.report.metrics import Summary
from tidegate.errors import TidegateError
from tidegate.plan.options import JoinOptions, PlanOptions
from tidegate.query.output import Output
from tidegate.query.stream import Stream
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.session import Session
from tidegate.sink.memory import MemorySink
from tidegate.sink.protocol import Opening, PartWriter, Sink
from tidegate.sink.receipt import Part, Receipt
from tidegate.testing.simulation.fault import FAULTS, Fault, Zombie, drawn
from tidegate.testing.simulation.life import Ended, Life
from tidegate.testing.simulation.runner import SimRunner
from tidegate.testing.simulation.schedule import SimSchedule
from tidegate.testing.simulation.world import World

P = TypeVar("P")

Rows = Any
"""A table, or rows as mappings."""

KINDS = tuple(dict.fromkeys(fault.__name__ for fault in FAULTS))
"""The names of the faults there are."""

_CHECKPOINT = "/checkpoint"
_PLACE = Place("none")
_BUCKETS = 8


class SimulationError(AssertionError):
    """A course with a wrong result: what is wrong, and the fewest faults that cause it."""

    def __init__(self, seed: int, faults: Sequence[Fault], wrong: str, story: str) -> None:
        super().__init__(seed, faults, wrong, story)
        self.seed = seed
        self.faults = tuple(faults)
        self.wrong = wrong
        self.story = story

    def __str__(self) -> str:
        told = ", ".join(map(str, self.faults)) or "no fault"
        return f"seed {self.seed}: {self.wrong}\nwith {told}\n{self.story}"


@dataclass(frozen=True)
class _Simulation(Generic[P]):
    """The arguments that all courses share."""

    query: Callable[[Session], Stream]
    place: Callable[[], P]
    sink: Callable[[P], Sink]
    read: Callable[[P], Rows]
    files: Mapping[str, bytes]
    batch_rows: int


@dataclass
class _Course(Generic[P]):
    """One course: lives of a driver, each with a fault, then one without."""

    simulation: _Simulation[P]
    seed: int
    meant: list[Any]
    story: list[str] = field(default_factory=list)
    happened: int = 0

    def run(self, faults: Sequence[Fault]) -> str | None:
        """Run the lives; what is wrong, None where all is right."""
        world = _world(self.simulation.files, self.seed)
        place = self.simulation.place()
        self.story, self.happened = [], 0
        with world.entered():
            for number, fault in enumerate([*faults, None]):
                life = Life(
                    world,
                    f"driver {number}",
                    lambda runner: _drive(
                        self.simulation, _Stepped(self.simulation.sink(place)), runner
                    ),
                    fault,
                )
                for ended in life.live():
                    wrong = self._judged(ended, place)
                    if wrong is not None:
                        return wrong
                self.happened += life.happened
            if ended.failure is not None:
                return f"a run without a fault must complete; got {ended.failure!r}"
            if (rows := len(_lines(self.simulation.read(place)))) != len(self.meant):
                return f"there must be {len(self.meant)} rows; got {rows}"
        return None

    def _judged(self, ended: Ended, place: P) -> str | None:
        how = "was killed" if ended.killed else "ended well"
        if ended.failure is not None and not ended.killed:
            how = f"ended with {ended.failure!r}"
        self.story.append(f"  {ended.who} {how}")
        if ended.killed:
            return None
        if ended.failure is not None and not isinstance(ended.failure, TidegateError):
            return f"{ended.who}: an error must be a TidegateError; got {ended.failure!r}"
        try:
            found = _lines(self.simulation.read(place))
        except Exception as error:
            return f"{ended.who}: what is there must be readable; got {error!r}"
        if found != self.meant[: len(found)]:
            row = next(
                (i for i, (a, b) in enumerate(zip(found, self.meant, strict=False)) if a != b),
                len(self.meant),
            )
            must = self.meant[row] if row < len(self.meant) else "none"
            return f"{ended.who}: row {row} must be {must}; got {found[row]}"
        return None


def simulate(
    query: Callable[[Session], Stream],
    *,
    place: Callable[[], P],
    sink: Callable[[P], Sink],
    read: Callable[[P], Rows],
    seeds: Iterable[int] = range(100),
    faults: int = 3,
    kinds: Sequence[str] = KINDS,
    files: Mapping[str, bytes] | None = None,
    batch_rows: int = 10,
) -> int:
    """Run a query through crashes in a simulated world; the number of faults that struck.

    Each seed gives a course, in which the driver is started again and again. Each start but the
    last meets a fault: the driver is killed, the power fails, the disk is full or fails, an attempt
    of a task dies, runs twice or goes on after the end. In the end the rows in the sink's place
    must be those of a run without faults, in the same order. Whenever a driver ends by itself, they
    must be the first of those. If not, a SimulationError gives the seed and the fewest faults that
    cause it. A seed gives the same course every time.

    `query` makes the query with a session; each start calls it, as a program would. `place` makes a
    new place for results: a path, or an object that stands for a database. `sink` makes a sink for
    a place, once for each start. `read` gives the rows that a reader sees in a place.

    The disk is simulated in memory. `files` are its files at the start, by path. A sink reaches it
    by `disk.current()`; only what the sink has synced there survives when the power fails.
    Everything else that a sink uses is real. A driver can die before and after every call of the
    sink, and at every operation on the disk.

    `faults` is the number of faults of a course, of these `kinds`. Batches have at most
    `batch_rows` rows.
    """
    simulation = _Simulation(query, place, sink, read, files or {}, batch_rows)
    meant, steps = _meant(simulation)
    happened = 0
    for seed in seeds:
        course = _Course(simulation, seed, meant)
        chance = random.Random(f"simulate {seed}")
        given = [_drawn(chance, steps, kinds) for _ in range(faults)]
        wrong = course.run(given)
        happened += course.happened
        if wrong is not None:
            raise _shrunk(course, given, wrong)
    return happened


def _drawn(chance: random.Random, steps: int, kinds: Sequence[str]) -> Fault:
    fault = drawn(chance, steps, chance.choice([f for f in FAULTS if f.__name__ in kinds]))
    # A sink without fencing cannot be asked to bear two drivers on a disk without locks.
    return Zombie(fault.step, True, fault.resumed) if isinstance(fault, Zombie) else fault


def _shrunk(course: _Course[Any], faults: Sequence[Fault], wrong: str) -> SimulationError:
    """The error for the fewest faults with which the course is still wrong."""
    smallest, place = list(faults), 0
    while place < len(smallest):
        fewer = smallest[:place] + smallest[place + 1 :]
        found = course.run(fewer)
        if found is None:
            place += 1
        else:
            smallest, wrong = fewer, found
    course.run(smallest)
    return SimulationError(course.seed, smallest, wrong, "\n".join(course.story))


def _meant(simulation: _Simulation[Any]) -> tuple[list[Any], int]:
    """The rows of a run without faults, and the number of its steps."""
    world, sink = _world(simulation.files, 0), MemorySink()
    with world.entered():
        life = Life(world, "driver", lambda runner: _drive(simulation, sink, runner))
        (ended,) = life.live()
        if ended.failure is not None:
            raise ended.failure
        return _lines(sink.table()), world.schedule.steps


def _world(files: Mapping[str, bytes], seed: int) -> World:
    world = World(seed)
    for path, content in files.items():
        world.disk.put(path, content)
    return world


def _drive(simulation: _Simulation[Any], sink: Sink, runner: SimRunner) -> Summary:
    session = Session(master="none")
    outputs = (Output(None, simulation.query(session).node),)
    connectors = session._sources.connectors
    options = PlanOptions(JoinOptions(buckets=_BUCKETS))
    plan = plan_for(outputs, _PLACE, options, connectors)
    loop = prepare(
        plan,
        _PLACE,
        {None: sink},
        RunOptions(
            instances=runner.drawn((1, 2, 3)),
            buckets=_BUCKETS,
            batch_rows=max(1, runner.drawn((simulation.batch_rows, simulation.batch_rows // 2))),
        ),
        checkpoint=_CHECKPOINT,
        connectors=connectors,
    )
    loop.runner = runner
    return loop.run()


def _lines(rows: Rows) -> list[Any]:
    return rows.to_pylist() if isinstance(rows, pa.Table) else [dict(row) for row in rows]


def _step(name: str) -> None:
    cast(SimSchedule, schedule.current()).step(name)


class _Stepped:
    """A sink with a step before and after each of its calls."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.parallel = sink.parallel
        self.side_outputs = sink.side_outputs
        self.uri = sink.uri

    def open(self, opening: Opening) -> None:
        _step("sink open")
        self._sink.open(opening)
        _step("sink opened")

    def begin(self, batch: BatchId) -> PartWriter:
        _step("sink begin")
        writer = self._sink.begin(batch)
        _step("sink begun")
        return _SteppedWriter(writer)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        _step("sink publish")
        self._sink.publish(batch, receipts)
        _step("sink published")

    def close(self) -> None:
        self._sink.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


@dataclass(frozen=True)
class _SteppedWriter:
    """A part writer with a step before and after each part."""

    writer: PartWriter

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        _step("sink write")
        receipt = self.writer.write(part, rows)
        _step("sink written")
        return receipt
