"""The policy of the join paper: as many instances as the rates of the input will need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tidegate.elastic.policy import Decision, check_numbers
from tidegate.elastic.request import Request, Scale
from tidegate.elastic.turn import LastTurn
from tidegate.errors import OptionError
from tidegate.model.control.controller import (
    LOWER,
    UPPER,
    Bounds,
    ControllerState,
    Demand,
    Limits,
    bounds,
)
from tidegate.model.cost.estimator import Estimator
from tidegate.model.live.subquery import LiveSubquery, LiveWork, pace_of
from tidegate.model.observation import Observation
from tidegate.model.operation import Operation
from tidegate.model.sizing.calibration_file import QueryCalibration, read_calibration

_WELL_BELOW = 0.9
"""An instance goes only where latency stays below this part of what is asked for."""

_USUAL_BATCHES, _USUAL_S = 3.0, 0.5
"""Tuples that came during so many batches, or in so many seconds, wait in a query that keeps up."""


@dataclass(frozen=True)
class _Known:
    """A subquery at the end of an interval, the work that waited before it, and the last change."""

    seen: Observation
    followed: LiveSubquery
    work: LiveWork
    waiting: float
    turn: LastTurn

    @property
    def instances(self) -> int:
        return self.seen.mapping.instances


@dataclass(frozen=True, kw_only=True)
class ByModel:
    """Keeps the work of the instances between two quotas, by the model's equations 27 to 30.

    It sees rates, and what batches cost; how busy instances are is nothing to it. What waits is
    known from these as well, but where more tuples wait in fact, the costs that are known are too
    low, and it goes by the tuples.

    Arrivals are counted for `interval` seconds. Then the model says how much work they are, and
    how much they will be within `ahead` seconds, while windows fill: unless it is given, as
    long as a window lasts, a minute at most; with 0 the paper's algorithm decides as it stands.
    Where the work is more than the part `upper` of what the instances can do, there are to be
    as many as can do it; where one less could do it within the part `lower`, those that are not
    needed go. With `latency`, in seconds, there are also to be as many as bring the mean
    latency below it, if any number does. A change is not undone before some batches have shown what
    it does (`turn`). There are never fewer than `minimum` instances, nor
    more than `maximum`; without one, no more than can run at once.

    Costs are estimated from the batches of the query, and followed as they change. Before there are
    enough of them nothing is done, unless `calibration` names a file that `tidegate calibrate` has
    written: its batches count as older ones of this query.
    """

    upper: float = UPPER
    lower: float = LOWER
    minimum: int = 1
    maximum: int | None = None
    latency: float | None = None
    calibration: str | None = None
    interval: float = 1.0
    ahead: float | None = None

    def __post_init__(self) -> None:
        _check(self)
        _ = self._calibrated  # a file that is none is told of now

    @property
    def name(self) -> str:
        return "model"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        known, after = [], {}
        for seen in observed:
            before = memory.get(seen.subquery)
            brief = None if before is None else LiveSubquery.skipped(before, seen, self.interval)
            if brief is not None:
                after[seen.subquery] = brief
                continue
            waiting = 0.0 if before is None else before["waiting"]
            turn = LastTurn.restored(() if before is None else before.get("turn", ()))
            followed = self._followed(seen, before).after(seen)
            if followed.rates.is_over(self.interval):
                followed, turn = followed.closed(), turn.after_interval(seen)
                if followed.is_known:
                    work = followed.work(self.ahead)
                    known.append(_Known(seen, followed, work, waiting, turn))
            recorded = {**followed.recorded(), "waiting": waiting, "turn": turn.recorded()}
            after[seen.subquery] = recorded
        requests = []
        for one in known:
            standing, turn, request = self._decided(one, known)
            after[one.seen.subquery]["waiting"] = round(standing.waiting, 6)
            after[one.seen.subquery]["turn"] = turn.recorded()
            requests += [] if request is None else [request]
        return Decision(requests, after)

    def remark(self, observed: Sequence[Observation]) -> str | None:
        """What a user should know where it cannot decide anything."""
        live = [load.arrived is not None for seen in observed for load in seen.inputs]
        if all(live):
            return None
        which = "not all sources of this query are live" if any(live) else "no source of it is live"
        return (
            f"it goes by the rates at which tuples arrive, and {which}: it keeps the instances it "
            "has. Files that are read as fast as they can be have no rate"
        )

    def _followed(self, seen: Observation, before: Mapping[str, Any] | None) -> LiveSubquery:
        operation = seen.operation or Operation("subquery")
        if before is not None:
            return LiveSubquery.restored(before, operation)
        return LiveSubquery.of(operation, self._estimator(seen.subquery, operation))

    def _decided(
        self, one: _Known, every: Sequence[_Known]
    ) -> tuple[ControllerState, LastTurn, Request | None]:
        """What waits after an interval, the last change, and what is to change."""
        seen, work = one.seen, one.work
        instances, seconds = one.instances, one.followed.rates.seconds
        limits = self._limits(seen)
        demand = Demand(work.divided * seconds, work.free * seconds)
        if self.ahead != 0:
            demand = replace(demand, expected=work.expected / work.free, settled=work.settled)
        behind = self._behind(one, every)
        waiting = max(one.waiting, behind / work.counts.tuples * work.divided if behind else 0.0)
        before, table = ControllerState(instances, waiting), bounds(1.0, limits)
        asked, standing = before.asked(demand), before.after(demand, table)
        wanted, fewest = standing.instances, self._for_latency(one, every, limits)
        if wanted < fewest:
            wanted = fewest if fewest > instances or wanted < instances else wanted
        if wanted == instances or not one.turn.allows(seen, wanted):
            return standing, one.turn, None
        why = _why(one, asked, table, fewest if wanted == fewest else 0, behind)
        steps = f"{instances} -> {wanted} instance{'' if wanted == 1 else 's'}"
        request = Request(Scale(wanted), seen.subquery, why=f"{why}: {steps}")
        return standing, one.turn.asked(seen, wanted), request

    def _behind(self, one: _Known, every: Sequence[_Known]) -> int:
        """The tuples that wait and would not if the query kept up; for its busiest subquery."""
        rate, rows = one.work.counts.tuples, one.seen.backlog
        busiest = max(every, key=lambda k: k.work.divided / k.instances)
        if not rows or rate <= 0 or one is not busiest:
            return 0
        settled_s = float(pace_of([(k.work, k.instances) for k in every]).settled_s)
        usual_s = max(_USUAL_BATCHES * min(settled_s, 1.0), _USUAL_S)
        return max(round(rows - usual_s * rate), 0)

    def _for_latency(self, one: _Known, every: Sequence[_Known], limits: Limits) -> int:
        """The fewest instances that have the latency that is asked for; 0 where none have."""
        if self.latency is None:
            return 0
        for count in range(limits.minimum, limits.maximum + 1):
            works = [(k.work, count if k is one else k.instances) for k in every]
            pace = pace_of(works, waits=bool(one.followed.operation.windows))
            most_s = self.latency * (1.0 if count >= one.instances else _WELL_BELOW)
            if pace.latency_s(pace.settled_s) <= most_s:
                return count
        return 0

    def _limits(self, seen: Observation) -> Limits:
        buckets = seen.mapping.buckets
        most = min(self.maximum or seen.slots or buckets, buckets)
        return Limits(
            minimum=min(self.minimum, most), maximum=most, upper=self.upper, lower=self.lower
        )

    @cached_property
    def _calibrated(self) -> QueryCalibration | None:
        if self.calibration is None:
            return None
        return read_calibration(self.calibration, "policy model, calibration")

    def _estimator(self, subquery: str, operation: Operation) -> Estimator | None:
        """What was measured of a subquery in an earlier run; None where nothing was.

        That is of the same name, and did the same in the same way: else its costs are others.
        """
        for known in () if self._calibrated is None else self._calibrated.subqueries:
            same = (known.name, known.kind, known.method)
            if same == (subquery, operation.kind, operation.method):
                return known.estimator
        return None


def _why(one: _Known, asked: float, table: Bounds, for_latency: int, behind: int) -> str:
    """The rates, the work that they are, and the bound that it is beyond."""
    work, instances = one.work, one.instances
    most = table.limits.maximum
    if not table.limits.minimum <= instances <= most:
        if instances < table.limits.minimum:
            return f"fewer than the minimum of {table.limits.minimum}"
        return f"more than the maximum of {most}"
    late = f", {behind:,} too many wait" if behind else ""
    said = f"{_rates(one)}{late}: work for {_amount(asked)} instances"
    if for_latency:
        return f"{said}, latency asks for {for_latency}"
    if asked >= table.upper[instances]:
        expected = work.expected / work.free
        soon = f", soon {_amount(expected)}" if expected > 1.01 * asked else ""
        return f"{said}{soon}, upper bound {_amount(table.upper[instances])}"
    return f"{said}, lower bound {_amount(table.lower[instances])}"


def _rates(one: _Known) -> str:
    """What comes in, and of a join the comparisons."""
    now = one.followed.rates.now
    if not one.followed.operation.windows:
        return f"{now[0]:,.0f} tuples/s"
    return f"{now[0]:,.0f} and {now[1]:,.0f} tuples/s, {_short(one.work.pairs)} comparisons/s"


def _amount(instances: float) -> str:
    """So many instances with two decimals, or with as many as it takes to tell it from none."""
    return f"{instances:.2f}" if instances >= 0.095 else f"{instances:.1g}"


def _short(count: float) -> str:
    """A count with about three digits: 950, 24.3 k, 97.7 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return f"{count:.0f}"


def _check(asked: ByModel) -> None:
    where = "policy model"
    numbers = ("upper", "lower", "interval", "latency", "ahead")
    optional = ("latency", "ahead", "maximum")
    check_numbers(asked, numbers, ("minimum", "maximum"), optional)
    Limits(  # has its own to say
        minimum=asked.minimum,
        maximum=asked.minimum if asked.maximum is None else asked.maximum,
        upper=asked.upper,
        lower=asked.lower,
    )
    for name, value in (("interval", asked.interval), ("latency", asked.latency)):
        if value is not None and value <= 0:
            raise OptionError(where, f"{name} must be above 0", f"{value:g}")
    if asked.ahead is not None and asked.ahead < 0:
        raise OptionError(where, "ahead must not be negative", f"{asked.ahead:g}")
