"""Measures the highest rate that a query sustains with some instances, on its own input.

The input is replayed as if it arrived at a rate: a batch takes the rows that are due when it
begins, in the order of time. A row is answered when its batch is committed. A rate is sustained if
99 of 100 rows are answered in time, and no more rows wait at the end than arrive in that time.
Results and state are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError
from tidegate.model.sizing.rate_search import RateSearch, highest_rate
from tidegate.plan.physical import Plan
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.sink.null_sink import NothingSink

DEFAULT_SECONDS = 5.0
DEFAULT_WITHIN_S = 1.0
DEFAULT_TRIES = 8

_WARM_BATCHES, _WARM_ROWS = 4, 2_000
"""What comes first, at once, and is not counted: it loads and compiles what the query uses."""

_SETTLE = 1 / 3
"""The part of a try that is not judged: batches find their size in it."""

_TICK_S = 0.001


@dataclass(frozen=True)
class RateTry:
    """One try: the rate in rows per second over all streams, and the latencies.

    `short`: the input ended in less than half of the time, so no higher rate can be tried.
    """

    instances: int
    rate: float
    seconds: float
    rows: int
    batches: int
    p50_ms: float
    p99_ms: float
    waiting_rows: int
    sustained: bool
    short: bool

    def as_dict(self) -> dict[str, Any]:
        """The form of `--json`."""
        return {k: round(v, 3) if isinstance(v, float) else v for k, v in vars(self).items()}


@dataclass(frozen=True)
class SustainSetup:
    """The settings that all tries share."""

    plan: Plan
    place: Place
    seconds: float = DEFAULT_SECONDS
    within_s: float = DEFAULT_WITHIN_S
    clock: Clock = field(default_factory=lambda: schedule.current().clock)


def sustainable(
    setup: SustainSetup, instances: int, tries: int = DEFAULT_TRIES
) -> RateSearch[RateTry]:
    """Search the highest rate that the query sustains with `instances` of each subquery."""
    first = _full_speed(setup, instances) / 2
    return highest_rate(
        partial(attempted, setup, instances),
        lambda one: one.sustained,
        first,
        tries,
        lambda one: one.short,
    )


def attempted(setup: SustainSetup, instances: int, rate: float) -> RateTry:
    """Replay the input at a rate for `setup.seconds`."""
    loop = _loop(setup, instances)
    try:
        _warmed(loop)
        return paced(loop, setup, instances, rate)
    finally:
        loop.close()


def paced(loop: Loop, setup: SustainSetup, instances: int, rate: float) -> RateTry:
    """Run batches of the rows that are due, until the time is over or the input ends."""
    clock = setup.clock
    begun, taken, batches, ended = clock.now(), 0, 0, False
    answered: list[npt.NDArray[np.float64]] = []
    passed = 0.0
    while not ended and passed < setup.seconds:
        due = int((clock.now() - begun) * rate) - taken
        if due < 1:
            clock.sleep(_TICK_S)
        else:
            loop.controls.ask_rows(due)
            report = loop.step()
            ended = report is None or loop.manifest.finished
            rows = 0 if report is None else report.rows_in
            late = (clock.now() - begun) - np.arange(taken + 1, taken + rows + 1) / rate
            if passed >= _SETTLE * setup.seconds:
                answered.append(np.maximum(late, 0.0))
            taken, batches = taken + rows, batches + 1
        passed = clock.now() - begun
    lasted = max(taken / rate if ended else passed, 1e-9)
    waiting = 0 if ended else max(int(passed * rate) - taken, 0)
    judged = np.concatenate([*answered, np.empty(0)])
    p50, p99 = (float(q) for q in np.quantile(judged, (0.5, 0.99))) if len(judged) else (0.0, 0.0)
    behind = passed - taken / rate if ended else waiting / rate
    return RateTry(
        instances,
        rate,
        lasted,
        taken,
        batches,
        p50 * 1e3,
        p99 * 1e3,
        waiting,
        sustained=p99 <= setup.within_s and behind <= setup.within_s,
        short=ended and lasted < setup.seconds / 2,
    )


def _full_speed(setup: SustainSetup, instances: int) -> float:
    """Rows a second where all of them are there: of some batches after the first ones."""
    clock, loop = setup.clock, _loop(setup, instances)
    try:
        size = _warmed(loop)
        begun, rows = clock.now(), 0
        while clock.now() - begun < setup.seconds / 4 and not loop.manifest.finished:
            size = min(2 * size, 1_000_000)
            loop.controls.ask_rows(size)
            report = loop.step()
            if report is None:
                break
            rows += report.rows_in
        if not rows:
            raise OptionError(
                "--sustainable",
                f"needs more than the {_WARM_BATCHES * _WARM_ROWS:,} rows that come first",
                "an input without them",
                "Give the streams more rows.",
            )
        return rows / max(clock.now() - begun, 1e-9)
    finally:
        loop.close()


def _loop(setup: SustainSetup, instances: int) -> Loop:
    sinks = {target.name: NothingSink() for target in setup.plan.targets}
    options = RunOptions(instances=instances, batch_rows=_WARM_ROWS)
    return prepare(setup.plan, setup.place, sinks, options)


def _warmed(loop: Loop) -> int:
    """Run the first batches; how many rows they had each, at most."""
    for _ in range(_WARM_BATCHES):
        loop.controls.ask_rows(_WARM_ROWS)
        if loop.step() is None or loop.manifest.finished:
            break
    return _WARM_ROWS


def searches_json(found: Mapping[int, RateSearch[RateTry]], setup: SustainSetup) -> dict[str, Any]:
    """All searches as plain data, by the number of instances."""
    return {
        "within_ms": setup.within_s * 1e3,
        "seconds": setup.seconds,
        "instances": {
            str(count): {
                "rate": None if search.best is None else round(search.best.rate, 3),
                "best": None if search.best is None else search.best.as_dict(),
                "tries": [one.as_dict() for one in search.tries],
            }
            for count, search in found.items()
        },
    }
