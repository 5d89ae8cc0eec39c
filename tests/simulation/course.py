"""A scenario as it goes: lives of a driver in a simulated world, one after the other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

import tidegate as tg
from tests.property.steps import BUCKETS
from tests.simulation.check import Check, Wrong
from tests.simulation.data import encoded
from tests.simulation.fault import (
    Damage,
    Fails,
    Fault,
    Full,
    Kill,
    PowerLoss,
    Replaced,
    Task,
    Torn,
    Zombie,
)
from tests.simulation.scenario import Life, Scenario
from tidegate.driver.loop import Loop
from tidegate.driver.metrics import Summary
from tidegate.errors import TidegateError
from tidegate.plan.options import JoinOptions, PlanOptions
from tidegate.plan.physical import Plan
from tidegate.query.graph import has_join
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.options import run_options
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.files import FileSink
from tidegate.testing.simulation.disk import CHANGES
from tidegate.testing.simulation.executor import Attempt, SimExecutor
from tidegate.testing.simulation.process import Killed, Process
from tidegate.testing.simulation.schedule import SimFuture
from tidegate.testing.simulation.world import World

CHECKPOINT, OUT = "/checkpoint", "/out"
PLACE = Place("none")


@dataclass
class Report:
    """What a course came to: the faults that happened, and what was wrong, if anything."""

    scenario: Scenario
    happened: list[Fault] = field(default_factory=list)
    wrong: str | None = None
    story: list[str] = field(default_factory=list)
    steps: int = 0


def run(scenario: Scenario) -> Report:
    """Let a scenario happen, and check it."""
    with small_pieces():
        course = Course(scenario)
        try:
            course.run()
        except Wrong as wrong:
            course.report.wrong = str(wrong)
        except AssertionError as error:
            course.report.wrong = f"{type(error).__name__}: {error}"
        course.report.steps = course.world.schedule.steps
        return course.report


@contextmanager
def small_pieces() -> Iterator[None]:
    """Several tasks read one source and one edge, although both are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 16)
        patch.setattr("tidegate.execute.delivery.SPAN_ROWS", 12)
        yield


Undo = Callable[[], None]


class Course:
    """The world of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.report = Report(scenario)
        self.world = World(scenario.seed)
        self.plans: dict[str, Plan] = {}
        self.undo: Undo | None = None
        """How to repair the last damage, until a run has gone well without."""
        for stream in scenario.streams:
            for path, content in stream.files().items():
                self.world.disk.put(path, content)

    def run(self) -> None:
        with self.world.entered():
            session = tg.Session(master="none")
            streams = [
                session.stream(
                    s.uris(), time="ts", name=s.name, disorder=timedelta(microseconds=s.disorder_us)
                )
                for s in self.scenario.streams
            ]
            self.outputs = tuple(
                Output(name, stream.node)
                for name, stream in self.scenario.graph.build(streams).items()
            )
            self.check = Check(
                self.scenario, self.outputs, self.plan(self.scenario.lives[0]), self.world
            )
            for number, life in enumerate(self.scenario.lives):
                self.live(number, life)
            self.check.finished()

    def live(self, number: int, life: Life) -> None:
        """One life, to whatever end; one that was refused because of damage is lived once more."""
        ending = _Ending(self, number, life)
        process, future = self.begin(number, life, ending.attempts)
        ending.arm(process)
        self.world.schedule.run(lambda: future.done() or process.paused)
        ending.disarm()
        if process.paused:
            self.take_over(number, life, process, future)
        else:
            self.judge(f"life {number}", life, future)
        ending.afterwards()
        if ending.happened and life.fault is not None:
            self.report.happened.append(life.fault)
        if life.fault is None and number == len(self.scenario.lives) - 1:
            self.end(number, life, future)

    def begin(
        self, number: int, life: Life, attempts: tuple[Attempt, ...] = ()
    ) -> tuple[Process, SimFuture[Summary]]:
        executor = SimExecutor(self.world, f"{self.scenario.seed} {number}", attempts)
        self.executor = executor

        def drive() -> Summary:
            loop = self.loop(life)
            loop.executor = executor
            return loop.run()

        return self.world.begin("driver", drive)

    def loop(self, life: Life) -> Loop:
        sinks = {o.name: FileSink(f"{OUT}/{o.name}", self.scenario.format) for o in self.outputs}
        options = run_options(
            life.instances,
            dict(life.switches),
            None,
            buckets=BUCKETS,
            batch_rows=life.batch_rows,
        )
        return prepare(self.plan(life), PLACE, sinks, options, checkpoint=CHECKPOINT)

    def plan(self, life: Life) -> Plan:
        """Made once for each method: making it again in each life gives the same."""
        joins = any(has_join(o.node) for o in self.outputs)
        method = life.method if joins else "auto"
        if method not in self.plans:
            options = PlanOptions(JoinOptions(method, "auto", BUCKETS), self.scenario.strategy)
            self.plans[method] = plan_for(self.outputs, PLACE, options)
        return self.plans[method]

    def take_over(
        self, number: int, life: Life, process: Process, future: SimFuture[Summary]
    ) -> None:
        """A second driver comes while the first stands still, which then goes on."""
        assert isinstance(life.fault, Zombie)
        second, taken = self.begin(number + 1000, life)
        resumed = life.fault.resumed
        self.world.disk.locks = life.fault.locks

        def at_step(step: int, name: str) -> None:
            if step == resumed:
                self.world.resume(process)

        second.at_step = at_step
        self.world.schedule.run(taken.done)
        self.world.resume(process)
        self.world.schedule.run(future.done)
        self.world.disk.locks = True
        self.judge(f"life {number}, who took over", life, taken)
        self.judge(f"life {number}, who stood still", life, future)

    def judge(self, who: str, life: Life, future: SimFuture[Summary]) -> None:
        """How a life ended: done, dead, or with an error that a user can read."""
        failure = future.exception()
        if failure is None:
            self.report.story.append(f"{who}: finished {future.result().finished}")
        else:
            self.report.story.append(f"{who}: {type(failure).__name__} {failure}")
        if failure is not None and not isinstance(failure, Killed | TidegateError):
            lines = "".join(traceback.format_exception(failure))
            raise Wrong(f"{who} ended with what is no error for users: {lines}")
        if failure is None or isinstance(failure, TidegateError):
            self.check.prefix(who)
        if self.undo is not None:
            if isinstance(failure, TidegateError):
                self.undo()
            if not isinstance(failure, Killed):
                self.undo = None

    def end(self, number: int, life: Life, future: SimFuture[Summary]) -> None:
        """The last life goes well, after one more try where damage was still to be repaired."""
        if future.exception() is not None:
            _, future = self.begin(number + 2000, life)
            self.world.schedule.run(future.done)
            self.judge("the last life", life, future)
        failure = future.exception()
        if failure is not None:
            raise Wrong(f"the last life must complete; got {type(failure).__name__} {failure}")
        if not future.result().finished:
            raise Wrong("the last life must finish")
        self.world.schedule.end()
        _, once_more = self.begin(number + 3000, life)
        self.world.schedule.run(once_more.done)
        self.judge("a start after the end", life, once_more)
        if once_more.exception() is not None:
            raise Wrong("a start after the end must find nothing to do")


class _Ending:
    """How one life is made to end, or to go wrong on its way."""

    def __init__(self, course: Course, number: int, life: Life) -> None:
        self.course = course
        self.world = course.world
        self.number = number
        self.fault = life.fault
        self.happened = False
        self.counted = 0
        self.attempts = (self.fault.attempt,) if isinstance(self.fault, Task) else ()

    def arm(self, process: Process) -> None:
        fault, disk = self.fault, self.world.disk
        self.process = process
        match fault:
            case Kill(step) | Damage(step) | Replaced(step):
                process.at_step = self.at(step, lambda: self.world.kill(process))
            case Task(_, step) if step is not None:
                process.at_step = self.at(step, lambda: self.world.kill(process))
            case PowerLoss(step):
                process.at_step = self.at(step, self.world.power_loss)
            case Zombie(step, locks):
                disk.locks = locks
                process.at_step = self.at(step, lambda: self.world.pause(process))
            case Full(room_bytes):
                disk.room_bytes = room_bytes
            case Fails():
                disk.fail = self.fail
            case Torn():
                disk.written = self.written

    def at(self, step: int, action: Callable[[], None]) -> Callable[[int, str], None]:
        def at_step(number: int, name: str) -> None:
            if number == step:
                self.happened = True
                action()

        return at_step

    def fail(self, operation: str, path: str) -> None:
        assert isinstance(self.fault, Fails)
        if not path.startswith(self.fault.where) or path.startswith("/in"):
            return
        if self.fault.error != 5 and operation not in CHANGES:
            return
        self.counted += 1
        if self.counted == self.fault.operation:
            self.happened = True
            raise OSError(self.fault.error, "simulated", path)

    def written(self, path: str, content: bytes) -> bytes:
        assert isinstance(self.fault, Torn)
        self.counted += 1
        if self.counted != self.fault.write:
            return content
        self.happened = True
        self.world.kill(self.process)
        return content[: round(len(content) * self.fault.part)]

    def disarm(self) -> None:
        disk = self.world.disk
        if isinstance(self.fault, Full):
            self.happened = disk.room_bytes == 0
        if isinstance(self.fault, Task):
            self.happened |= bool(self.course.executor.happened)
        disk.room_bytes = None
        disk.fail = lambda operation, path: None
        disk.written = lambda path, content: content
        if not isinstance(self.fault, Zombie):
            disk.locks = True
        self.process.at_step = None

    def afterwards(self) -> None:
        """What happens to files when the driver is dead."""
        if not self.happened:
            return
        if isinstance(self.fault, Damage):
            self.course.undo = self.damage(self.fault)
        elif isinstance(self.fault, Replaced):
            self.course.undo = self.replace(self.fault)
        self.happened = self.happened and (
            not isinstance(self.fault, Damage | Replaced) or self.course.undo is not None
        )

    def damage(self, fault: Damage) -> Undo | None:
        disk = self.world.disk
        staged = [p for p in disk.files(OUT) if "/_staging/" in p]
        found = disk.files(CHECKPOINT)
        if fault.staged and staged:
            found = staged
        found = [p for p in found if disk.read(p)]
        if not found:
            return None
        path = found[int(fault.choice * len(found))]
        content, changed = disk.read(path), disk.status(path).modified_ns
        self.course.report.story.append(f"damage: {fault.kind} {path}")
        if fault.kind == "remove":
            disk.remove(path)
            return lambda: None if path in disk.files("/") else disk.put(path, content)
        place = int(fault.choice * 7919) % len(content)
        other = {
            "flip": content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :],
            "cut": content[:place],
            "zero": content[:place] + bytes(len(content) - place),
        }[fault.kind]
        disk.rewrite(path, other, changed)

        def undo() -> None:
            if path in disk.files("/") and disk.read(path) == other:
                disk.rewrite(path, content, changed)

        return undo

    def replace(self, fault: Replaced) -> Undo | None:
        """Another file in the place of one that was begun and not consumed; how to put it back."""
        disk = self.world.disk
        begun = self.course.check.begun()
        if not begun:
            return None
        path = sorted(begun)[int(fault.choice * len(begun))]
        stream = next(s for s in self.course.scenario.streams if path in s.paths())
        lines = list(stream.sources[stream.paths().index(path)])
        spoilt = stream.spoilt[stream.paths().index(path)]
        if fault.kind == "values":
            lines = [(ts, k, 77 if v is None else v + 1) for ts, k, v in lines]
        elif fault.kind == "longer":
            lines = [(ts, k, 5) for ts, k, v in lines] + [(lines[-1][0] + 1, 1, 1)] * 3
        else:
            lines = lines[len(lines) // 2 :] + [(lines[-1][0] + 1, 1, 1)]
            spoilt = ()
        self.course.report.story.append(f"replaced: {fault.kind} {path}")
        self.course.check.refuses = True
        content = disk.read(path)
        status = disk.status(path)
        disk.rewrite(path, encoded(lines, stream.format, spoilt))

        def undo() -> None:
            disk.rewrite(path, content, status.modified_ns)

        return undo
