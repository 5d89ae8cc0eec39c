"""A campaign: the blows of a schedule against an arena, and what has become of the output."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.nemesis import query
from tests.nemesis.arena import TICK_S, Arena
from tests.nemesis.fault import Killed
from tests.nemesis.schedule import Blow

BOUND_S = 120.0
"""Before the first fault, and after the last one, more rows must come within so long, again and
again until all are there; a driver starts twice in that time on a machine that is busy otherwise.
"""
LOOK_S = 1.0


@dataclass
class Report:
    """What a campaign came to, as plain data."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    """Those that had an effect, by kind."""
    kills: Counter[str] = field(default_factory=Counter)
    """Processes that were killed, by what they do."""
    story: list[str] = field(default_factory=list)
    lives: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    """How lives of drivers ended: killed, or with an error for users."""
    rows: dict[str, int] = field(default_factory=dict)
    recovered_s: float = 0.0
    """From the last fault until every row was there."""
    logs: dict[str, str] = field(default_factory=dict)
    """The ends of what processes have said, where something is wrong."""

    def as_json(self) -> str:
        return json.dumps(vars(self))

    @classmethod
    def of_json(cls, text: str) -> Report:
        content: dict[str, Any] = json.loads(text)
        counters = {name: Counter(content[name]) for name in ("faults", "kills", "ends")}
        return cls(**content | counters)


class Campaign:
    """Strikes and heals when it is time, keeps the driver running, and judges at the end."""

    def __init__(self, arena: Arena, seed: int) -> None:
        self.arena = arena
        self.report = Report(seed)
        self._begun = time.monotonic()

    def run(self, blows: tuple[Blow, ...]) -> Report:
        report = self.report
        try:
            self.arena.feed.start()
            self._until_first_rows()
            self._strike_all(blows)
            self._judge()
        except AssertionError as error:
            report.wrong.append(str(error))
        report.lives, report.ends = self.arena.driver.lives, self.arena.driver.ends
        report.wrong += self.arena.driver.wrong
        if report.wrong:
            report.logs = self.arena.logs()
        return report

    def _until_first_rows(self) -> None:
        until = time.monotonic() + BOUND_S
        while not all(self.arena.found().values()):
            assert time.monotonic() < until, f"the first rows must come within {BOUND_S} s"
            self._wait(LOOK_S)
        self._tell("the first rows are there")

    def _strike_all(self, blows: tuple[Blow, ...]) -> None:
        moments = [(blow.at_s, number, True) for number, blow in enumerate(blows)]
        moments += [(blow.healed_s, number, False) for number, blow in enumerate(blows)]
        at_s = 0.0
        for next_s, number, strikes in sorted(moments):
            # A server that takes long to start puts off all that follows.
            self._wait(next_s - at_s)
            at_s, blow = next_s, blows[number]
            if strikes:
                self._note(blow, blow.fault.strike(self.arena))
            else:
                blow.fault.heal(self.arena)
                self._tell(f"healed {blow.fault}")

    def _note(self, blow: Blow, struck: int) -> None:
        self._tell(f"{struck} struck by {blow.fault} for {blow.lasts_s:.1f} s")
        self.report.faults[type(blow.fault).__name__] += bool(struck)
        if isinstance(blow.fault, Killed):
            self.report.kills[blow.fault.victim.role] += struck

    def _judge(self) -> None:
        """Rows must come again within the bound, and be there in the end, once and in order."""
        healed = time.monotonic()
        self.arena.feed.end()
        wanted = query.meant(self.arena.sent())
        assert all(wanted.values()), "every output must have rows"
        came, rows = healed, -1
        while (found := self.arena.found()) != wanted:
            odd = query.difference(found, wanted)
            assert odd is None, odd
            if (now := sum(map(len, found.values()))) > rows:
                came, rows = time.monotonic(), now
            silent_s = time.monotonic() - came
            assert silent_s < BOUND_S, f"more than {rows} rows must come; none for {silent_s:.0f} s"
            self._wait(LOOK_S)
        self.report.recovered_s = round(time.monotonic() - healed, 1)
        self._tell("all rows are there")
        self._wait(LOOK_S)  # what is written twice may come now
        assert self.arena.found() == wanted, "nothing must come after the last row"
        self.report.rows = {name: len(rows) for name, rows in wanted.items()}

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            self.arena.driver.look()
            while self.arena.driver.said:
                self._tell(self.arena.driver.said.pop(0))
            time.sleep(min(TICK_S, left_s))

    def _tell(self, what: str) -> None:
        self.report.story.append(f"{time.monotonic() - self._begun:7.1f} s  {what}")
