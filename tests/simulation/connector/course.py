"""Courses over a connector: lives of a driver, each with a fault at a call, and one without."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest

from tests.simulation.connector.boundary import ZOMBIE, CallFault
from tests.simulation.connector.connector import Connector, Found
from tests.simulation.connector.mutant import ConnectorMutant
from tidegate.driver.options import RunOptions
from tidegate.driver.report.metrics import Summary
from tidegate.errors import TidegateError
from tidegate.plan.options import JoinOptions, PlanOptions
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.session import Session
from tidegate.testing.simulation.fault import Fault, Zombie, drawn
from tidegate.testing.simulation.life import Ended, Life
from tidegate.testing.simulation.runner import SimRunner
from tidegate.testing.simulation.world import World

PLACE = Place("none")
CHECKPOINT = "/checkpoint"
BUCKETS = 4
BATCH_ROWS = (12, 18)
FAULTS = 3
"""At most so many in a course, as long as no life has ended well."""

ELSEWHERE = 0.15
"""How likely a fault is none of a call: at any step, of the disk of the checkpoint, of a task."""

MORE_SEEDS, MORE = 1_000_000, 4
"""From here on there are further courses, MORE times as many, until every fault has happened."""

STEPS = 120
"""About so many has a life."""

FRESH, AGAIN, FORGOTTEN = STAGES = "fresh", "again", "forgotten"
"""Lives make other calls when they begin with nothing, after others, or where much is lost."""

AIMS = 4
"""So many faults wait for a life, of which mostly one happens: the driver ends with it."""


TOKENS = 10_000
"""More than a course draws: the names of checkpoints are among them."""

_worlds = itertools.count()


@dataclass
class Course:
    """One course; `wrong` says what is not as it must be."""

    connector: Connector
    seed: int
    meant: Found | None
    wrong: str | None = None
    story: list[str] = field(default_factory=list)
    found: Found = field(default_factory=dict)
    lives: int = 0
    last_one: bool = False
    """Whether input is read to its end, which all of it has by then."""

    def begin(self) -> None:
        """A world of its own, and a place."""
        self.world = World(self.seed)
        self.world.schedule._tokens = TOKENS * next(_worlds)  # servers outlive worlds
        self.world.disk = self.connector.disk(self.world)
        self.place = self.connector.place()
        self.connector.boundary.beside = lambda: self.connector.beside(self.place)

    def live(self, at_calls: Sequence[CallFault] = (), fault: Fault | None = None) -> list[object]:
        """One life, to whatever end; the faults that happened."""
        boundary = self.connector.boundary
        for stands in (f for f in at_calls if f.kind == ZOMBIE):
            fault = Zombie(0, False, stands.resumed)
        boundary.begin(self.world, at_calls)
        life = Life(self.world, f"driver {self.lives}", self._drive, fault)
        self.lives += 1
        ends = life.live()
        happened = [*boundary.happened, *([fault] if life.happened else [])]
        self.calls = boundary.calls
        boundary.begin(None)
        self.story.append(f"  {happened or 'no fault'}")
        for ended in ends:
            self._judge(ended)
        self.last = ended
        return happened

    def finish(self) -> None:
        """The last life goes well, and everything is there."""
        self.last_one = True
        while self.connector.grow(self.place):
            pass
        self.live()
        if self.wrong is None and self.last.failure is not None:
            self.wrong = f"a life without a fault must complete; got {self.last.failure!r}"
        if self.wrong is None and self.meant is not None and self.found != self.meant:
            self.wrong = f"in the end there must be {self.meant}; got {self.found}"

    def _drive(self, runner: SimRunner) -> Summary:
        session = Session(master="none")
        outputs = (Output(None, self.connector.query(session, self.place).node),)
        connectors = session._sources.connectors
        plan = plan_for(outputs, PLACE, PlanOptions(JoinOptions(buckets=BUCKETS)), connectors)
        options = RunOptions(
            instances=runner.drawn((1, 2)),
            buckets=BUCKETS,
            batch_rows=runner.drawn(BATCH_ROWS),
            available_now=self.connector.grows and not self.last_one,
        )
        sinks = {None: self.connector.sink(self.place)}
        loop = prepare(plan, PLACE, sinks, options, checkpoint=CHECKPOINT, connectors=connectors)
        loop.runner = runner
        return loop.run()

    def _judge(self, ended: Ended) -> None:
        """A driver is dead, done, or ends with an error for users; what it left is a beginning."""
        how = "was killed" if ended.killed else "ended well"
        if ended.failure is not None and not ended.killed:
            how = f"ended with {ended.failure!r}"
        self.story.append(f"    {ended.who} {how}")
        if ended.killed or self.wrong is not None:
            return
        if ended.failure is not None and not isinstance(ended.failure, TidegateError):
            self.wrong = f"{ended.who}: an error must be a TidegateError; got {ended.failure!r}"
            return
        try:
            self.found = self.connector.read(self.world, self.place)
        except Exception as error:
            self.wrong = f"{ended.who}: what is there must be readable; got {error!r}"
            return
        for name, rows in (self.meant or {}).items():
            there = self.found.get(name, [])
            if there != rows[: len(there)]:
                self.wrong = f"{ended.who}: {name} must begin as {rows}; got {there}"


class Campaign:
    """Many courses of one connector: which calls they made, and which faults those have met.

    Each life aims at calls and kinds that were met least. Grows with the names of calls.
    """

    def __init__(self, connector: Connector, only: Collection[tuple[str, str]] = ()) -> None:
        """`only` are the calls and kinds to aim at, all if empty."""
        self.connector = connector
        self._only = only
        self.courses = self.lives = 0
        self.hits: Counter[tuple[str, str]] = Counter()
        self.elsewhere = 0
        self._calls: dict[str, Counter[str]] = {s: Counter() for s in STAGES}
        """By stage the names of calls, and the most that a life made of each."""
        self.meant: Found = {}

    def begin(self) -> Found:
        """Courses without a fault: what must come out, and the first calls that are known."""
        course = self._course(0, [], None)
        assert course.wrong is None, course.wrong
        self.meant = course.found
        return self.meant

    def run(self, seed: int) -> str | None:
        """A course by its seed, and by what was met before; what is wrong, None if nothing."""
        chance = random.Random(f"{type(self.connector).__name__} {seed}")
        course = self._course(seed, [chance] * FAULTS, self.meant)
        return course.wrong and "\n".join([f"seed {seed}: {course.wrong}", *course.story])

    def missed(self) -> list[tuple[str, str]]:
        """The calls that were made, with the kinds that they never met."""
        made = {name for calls in self._calls.values() for name in calls}
        made -= self.connector.asides
        return sorted((n, k) for n in made for k in self.connector.kinds if not self.hits[n, k])

    def _course(self, seed: int, faults: Sequence[random.Random], meant: Found | None) -> Course:
        course = Course(self.connector, seed, meant)
        course.begin()
        self.courses += 1
        with course.world.entered():
            for number, chance in enumerate(faults):
                self._live(course, AGAIN if number else FRESH, chance)
                if course.wrong is not None:
                    return course
                if course.last.failure is None and not self.connector.grow(course.place):
                    break
            course.finish()
            self._note(course, AGAIN if faults else FRESH)
            if course.wrong is None and not faults:
                self._once_more(course, AGAIN)
            if course.wrong is None and self.connector.forgets and seed % 3 == 0:
                self.connector.forget(course.place)
                self._live(course, FORGOTTEN, faults[0] if faults else None)
                if course.wrong is None:
                    self._once_more(course, AGAIN)
        self.lives += course.lives
        return course

    def _once_more(self, course: Course, stage: str) -> None:
        course.meant = course.meant or course.found
        course.finish()
        self._note(course, stage)

    def _live(self, course: Course, stage: str, chance: random.Random | None) -> None:
        if chance is None:
            happened = course.live()
        elif chance.random() < ELSEWHERE and not self._only:
            happened = course.live(fault=drawn(chance, STEPS))
        else:
            happened = course.live(self._drawn(stage, chance))
        self._note(course, stage)
        at_calls = [fault for fault in happened if isinstance(fault, CallFault)]
        self.hits.update((fault.call, fault.kind) for fault in at_calls)
        self.elsewhere += len(happened) - len(at_calls)

    def _note(self, course: Course, stage: str) -> None:
        self._calls[stage] |= course.calls

    def _drawn(self, stage: str, chance: random.Random) -> list[CallFault]:
        """Some faults of calls that were met least; a life meets those that it comes to."""
        known = self._calls[stage]
        pairs = [(name, kind) for name in sorted(known) for kind in self.connector.kinds]
        pairs = [pair for pair in pairs if not self._only or pair in self._only]
        chance.shuffle(pairs)
        common = Counter() if stage == FRESH else self._calls[FRESH]  # others can have their faults
        pairs.sort(key=lambda pair: (self.hits[pair], common[pair[0]] > 0))
        return [
            CallFault(
                call,
                kind,
                chance.choice((1, chance.randint(1, known[call]))),  # a first one there is mostly
                chance.randint(1, STEPS),
            )
            for call, kind in pairs[:AIMS]
        ]


@dataclass(frozen=True)
class Told:
    """What a campaign came to, for a person."""

    campaign: Campaign

    def __str__(self) -> str:
        campaign = self.campaign
        return (
            f"{type(campaign.connector).__name__}: {campaign.courses} courses, {campaign.lives} "
            f"lives, {campaign.hits.total()} faults at calls ({len(campaign.hits)} kinds of "
            f"{len({call for call, _ in campaign.hits})} calls), {campaign.elsewhere} elsewhere"
        )


def run_courses(connector: Connector, seeds: Sequence[int]) -> Campaign:
    """A campaign, which must go well and leave out no fault of any call."""
    campaign = Campaign(connector)
    with connector.entered():
        expected = campaign.begin()
        assert expected.get("rows"), f"a course must give something; got {expected}"
        wrong = next((told for told in map(campaign.run, seeds) if told is not None), None)
        more = range(MORE_SEEDS, MORE_SEEDS + MORE * len(seeds))
        while wrong is None and campaign.missed() and more:  # chance has left some out so far
            wrong, more = campaign.run(more[0]), more[1:]
    assert wrong is None, wrong
    missed = campaign.missed()
    assert not missed, f"each call must have met each kind of fault; these have not: {missed}"
    return campaign


def first_wrong(connector: Connector, mutant: ConnectorMutant, seeds: Sequence[int]) -> str | None:
    """What the first course says that finds a defect which was made on purpose."""
    campaign = Campaign(connector, mutant.faults)
    with connector.entered(), pytest.MonkeyPatch.context() as patch:
        campaign.begin()
        mutant.patch(patch)
        return next((told for told in map(campaign.run, seeds) if told is not None), None)
