"""A scenario as it goes: lives of a driver in a simulated world, one after the other.

What every life publishes is compared with what the interpreter gives. After the last life all
rows, the counters, the states and the files of the checkpoint must be as they must be.
"""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

import tidegate as tg
from tests.property.steps import BUCKETS
from tests.property.switching import drawn
from tests.simulation.check import CHECKPOINT, OUT, Check, Wrong
from tests.simulation.data import pieces
from tests.simulation.fault import Astray, Damage, Fault, Refuses, Replaced, Rotated
from tests.simulation.harm import Undo, damage, replace
from tests.simulation.place import CALLED, Called
from tests.simulation.scenario import Scenario, Start
from tidegate.driver.loop import Loop
from tidegate.driver.migration import reach_of
from tidegate.driver.report.metrics import Summary
from tidegate.elastic import handover
from tidegate.errors import OptionError, TidegateError
from tidegate.plan.options import JoinOptions, PlanOptions
from tidegate.plan.physical import Plan
from tidegate.query.node.graph import has
from tidegate.query.node.node import Join
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.options import run_options
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.folder.files import FileSink
from tidegate.sink.protocol import Sink
from tidegate.sink.registry import of
from tidegate.testing.simulation.fault import Kill, Strike
from tidegate.testing.simulation.life import Ended, Life
from tidegate.testing.simulation.process import SimulatedProcess
from tidegate.testing.simulation.runner import SimRunner
from tidegate.testing.simulation.world import World

PLACE = Place("none")


@dataclass
class Report:
    """What a course came to: the faults that happened, and what was wrong, if anything."""

    scenario: Scenario
    happened: list[Fault] = field(default_factory=list)
    wrong: str | None = None
    story: list[str] = field(default_factory=list)
    steps: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """Of requests for other owners of buckets, which did not have to be refused, their kinds."""
    ahead: Counter[str] = field(default_factory=Counter)
    """How many jobs found their map tasks done ahead, and how many of those were for nothing."""


def run(scenario: Scenario) -> Report:
    """Let a scenario happen, and check it."""
    with small_pieces():
        course = Course(scenario)
        try:
            course.run()
        except (AssertionError, TidegateError) as error:
            course.report.wrong = f"{type(error).__name__}: {error}"
        course.report.steps = course.world.schedule.steps
        for of in (executor.ahead for executor in course.executors):
            course.report.ahead.update(used=of.used, unused=of.unused)
        return course.report


@contextmanager
def small_pieces() -> Iterator[None]:
    """Several tasks read one source and one edge, and batches are archived, though they are few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 16)
        patch.setattr("tidegate.execute.delivery.SPAN_ROWS", 12)
        patch.setattr("tidegate.state.store.PACKED", 3)
        yield


class Asked:
    """What one life asks for, batch by batch; a batch may begin several times."""

    def __init__(self, numbers: Sequence[int | None]) -> None:
        self._numbers = iter(numbers)
        self._batch = -1

    def at(self, batch: int) -> int | None:
        if batch == self._batch:
            return None
        self._batch = batch
        return next(self._numbers, None)


class Course:
    """The world of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.report = Report(scenario)
        self.world = World(scenario.seed)
        self.plans: dict[str, Plan] = {}
        self.undo: list[Undo] = []
        """How to repair what was damaged, when a run has told of it."""
        self.growth: list[tuple[str, bytes]] = []
        """What is still to be written of the input, while drivers run."""
        self.writers: list[SimulatedProcess] = []
        self.rotation: Rotated | None = None
        """What is still to happen to a followed file in this life."""
        self.executors: list[SimRunner] = []
        self.chance = random.Random(f"growth {scenario.seed}")
        for stream in scenario.streams:
            for path, content in stream.files().items():
                written = pieces(self.chance, content) if scenario.follow else [content]
                self.world.disk.put(path, written[0])
                place = 0
                for piece in written[1:]:
                    place = self.chance.randint(place, len(self.growth))
                    self.growth.insert(place, (path, piece))
                    place += 1

    def run(self) -> None:
        with self.world.entered():
            session = tg.Session(master="none")
            streams = [
                session.stream(
                    s.uris(),
                    time="ts",
                    name=s.name,
                    disorder=timedelta(microseconds=s.disorder_us),
                )
                for s in self.scenario.streams
            ]
            self.outputs = tuple(
                Output(name, stream.node)
                for name, stream in self.scenario.graph.build(streams).items()
            )
            plan = self.plan(self.scenario.starts[0])
            self.called = {o.name or "": Called(self.world) for o in self.outputs}
            self.check = Check(self.scenario, self.outputs, plan, self.world, self.called)
            for number, start in enumerate(self.scenario.starts):
                if not start.follow:
                    self.complete()
                last = self.live(f"life {number}", start)
            self.end(last)
            self.check.finished()
            if not self.undo:  # nobody notices that a segment of an earlier state is damaged
                self.check.states()

    def complete(self) -> None:
        """Write what is left of the input."""
        for path, piece in self.growth:
            self.world.disk.put(path, piece, append=True)
        self.growth = []

    def live(self, name: str, start: Start) -> Ended:
        """One life, to whatever end."""
        fault = start.fault
        self.rotation = fault if isinstance(fault, Rotated) else None
        inside = None if isinstance(fault, Astray | Rotated | Refuses) else fault
        if isinstance(inside, Damage) and inside.staged:
            inside = Strike("replace", "/batch=", 1 + inside.step % 5, power=False)
        elif isinstance(inside, Damage | Replaced):
            inside = Kill(inside.step)
        life = Life(self.world, name, lambda executor: self.drive(start, executor), inside)
        ends = self.lived(life, fault)
        for writer in self.writers:
            self.world.kill(writer)
        for ended in ends:
            self.judge(ended)
        if life.two:
            raise Wrong(f"{name}: another must be refused where one runs")
        if isinstance(fault, Astray):
            self.check.astray(ended)
            life.happened = True
        if isinstance(fault, Rotated) and self.rotation is None:
            life.happened = True
            if ended.failure is None:
                raise Wrong(f"{name}: a followed file that is written anew must be told")
        if life.happened and fault is not None and self.harm(fault):
            self.report.happened.append(fault)
        return ended

    def lived(self, life: Life, fault: Fault | None) -> list[Ended]:
        """How a life ends, in which a function that takes results may fail."""
        one = next(iter(self.called.values()))
        one.fails_in = fault.call if isinstance(fault, Refuses) else None
        ends = life.live()
        life.happened |= one.failed
        one.fails_in, one.failed = None, False
        return ends

    def drive(self, start: Start, executor: SimRunner) -> Summary:
        sinks = {o.name: self.sink(start, o.name or "") for o in self.outputs}
        options = run_options(
            start.instances,
            dict(start.switches),
            None,
            buckets=BUCKETS,
            batch_rows=start.batch_rows,
            follow=start.follow,
            handover=self.handover(start),
            keep_us=start.keep_us,
        )
        loops, asked, published = list[Loop](), Asked(start.asked), list[int]()

        def observe(step: str, batch: int) -> None:
            self.ask(loops[-1], asked, step, batch)
            if step == "after publish":
                published.append(batch)
                if len(published) == start.batches:
                    loops[-1].stop()

        loop = prepare(
            self.plan(start),
            PLACE,
            sinks,
            options,
            checkpoint=CHECKPOINT,
            observer=observe,
        )
        loops.append(loop)
        loop.runner = executor
        self.executors.append(executor)
        if start.follow:
            writer, _ = self.world.begin("writer", lambda: self.write(loop))
            self.writers.append(writer)
        return loop.run()

    def ask(self, loop: Loop, asked: Asked, step: str, batch: int) -> None:
        """Ask for other owners of buckets as a batch begins, if the start has that."""
        number = asked.at(batch) if step == "before gate" else None
        if number is None or batch == 0:
            return
        request = drawn(random.Random(number), list(loop.plan.names.values()))
        with suppress(OptionError):  # an instance that is not there; nothing changes
            loop.controls.ask(request)
            self.report.asked[type(request.change).__name__] += 1

    def handover(self, start: Start) -> str:
        """The one that the start asks for, where all subqueries can have it."""
        reaches = [reach_of(s.operator) for s in self.plan(start).subqueries]
        refused = start.handover == handover.WINDOW and any(isinstance(r, str) for r in reaches)
        return handover.AUTO if refused else start.handover

    def sink(self, start: Start, output: str) -> Sink:
        if isinstance(start.fault, Astray):
            return of(f"nowhere://results/{output}")
        if self.scenario.format == CALLED:
            return self.called[output].sink()
        return FileSink(f"{OUT}/{output}", self.scenario.format)

    def write(self, loop: Loop) -> None:
        """Let the input grow, then stop the driver that follows it."""
        clock, pieces = self.world.schedule.clock, 0
        while self.growth:
            clock.sleep(self.chance.choice((0.001, 0.02, 0.1)))
            if self.rotated(pieces):
                break  # and the driver ends by itself
            pieces += 1
            if self.growth:
                path, piece = self.growth.pop(0)
                self.world.disk.put(path, piece, append=True)
        clock.sleep(0.1)
        self.rotated(pieces)
        clock.sleep(0.2)  # the driver looks at its files every 0.01 s
        loop.stop()

    def rotated(self, pieces: int) -> bool:
        """Write a followed file anew, if it is time to, and some of it was read."""
        if self.rotation is None or pieces < self.rotation.piece:
            return False
        choice = self.rotation.choice
        if not self.harmed(replace(self.world, self.scenario, self.check, "longer", choice)):
            return False
        self.rotation = None
        return True

    def plan(self, start: Start) -> Plan:
        """Made once for each method: making it again in each life gives the same."""
        joins = any(has(Join, o.node) for o in self.outputs)
        method = start.method if joins else "auto"
        if method not in self.plans:
            options = PlanOptions(JoinOptions(method, "auto", BUCKETS), self.scenario.strategy)
            self.plans[method] = plan_for(self.outputs, PLACE, options)
        return self.plans[method]

    def harm(self, fault: Fault) -> bool:
        """Do to files what is done while no driver runs; whether there was something to do."""
        if isinstance(fault, Damage):
            done = damage(self.world, self.check, fault)
        elif isinstance(fault, Replaced):
            done = replace(self.world, self.scenario, self.check, fault.kind, fault.choice)
        else:
            return True
        return self.harmed(done)

    def harmed(self, done: tuple[str, Undo | None] | None) -> bool:
        if done is None:
            return False
        told, undo = done
        self.report.story.append(told)
        if undo is not None:
            self.undo.append(undo)
        return True

    def judge(self, ended: Ended) -> None:
        """A life ends done, dead, or with an error that a user can read; its output is true."""
        failure = ended.failure
        how = f"finished {ended.result.finished}" if failure is None else repr(failure)
        self.report.story.append(f"{ended.who}: {how}")
        if ended.killed:
            return
        if failure is not None and not isinstance(failure, TidegateError):
            lines = "".join(traceback.format_exception(failure))
            raise Wrong(f"{ended.who} ended with what is no error for users: {lines}")
        self.check.prefix(ended.who)
        if failure is not None:
            for undo in reversed(self.undo):
                undo()
            self.undo = []

    def end(self, last: Ended) -> None:
        """The last life goes well, after one more try where damage was still to be repaired.

        A start after the end finds nothing to do, and clears away what late tasks have left.
        """
        start = self.scenario.starts[-1]
        if last.failure is not None:
            last = self.live("the last life", start)
        if last.failure is not None:
            raise Wrong(f"the last life must complete; got {last.failure!r}")
        if not last.result.finished:
            raise Wrong("the last life must finish")
        self.world.schedule.end()
        once_more = self.live("a start after the end", start)
        if once_more.failure is not None:
            raise Wrong("a start after the end must find nothing to do")
