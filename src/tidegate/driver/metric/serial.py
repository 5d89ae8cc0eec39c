"""Measures the serial time of a run: the wall time in which none of its tasks is at work.

Only what tasks do is listed here, by how their spans are called. All other time is serial: a new
step of the driver needs no entry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.driver.metric.family import MetricSample, RunView, Samples, by, gauge
from tidegate.driver.metric.fold import Fold, Reported
from tidegate.driver.metric.metric import BETWEEN, CommittedBatch, RunMetric, Where
from tidegate.driver.metric.text import number_text
from tidegate.model.speed_up import SpeedUp
from tidegate.spans import added

if TYPE_CHECKING:
    from tidegate.execute.job import Outcome

ROUNDS = ((" job", ("map ", "instance ")), ("spark finish", ("merge ",)))
"""How the spans end in which the driver waits for a round of tasks, which are wall time, and how
those begin that its tasks measure of themselves, which are added up over all tasks."""

OPERATE = "operate"
"""The driver's span that all tasks of a batch are in."""


@dataclass(frozen=True, slots=True)
class TaskTime:
    """The tasks of a subquery in a batch of `wall_s` seconds.

    Some of them were at work for `at_work_s` seconds of it, and all together for `work_s`.
    """

    wall_s: float
    at_work_s: float
    work_s: float
    instances: int

    def after(self, before: TaskTime) -> TaskTime:
        """Both batches together, with the instances of this one."""
        return TaskTime(
            before.wall_s + self.wall_s,
            before.at_work_s + self.at_work_s,
            before.work_s + self.work_s,
            self.instances,
        )

    @property
    def speed_up(self) -> SpeedUp:
        """What is not in these tasks is serial for them."""
        return SpeedUp(max(self.wall_s - self.at_work_s, 0.0), self.work_s)


NO_TIME = TaskTime(0.0, 0.0, 0.0, 0)


def task_times(batch: CommittedBatch) -> dict[str, TaskTime]:
    """By subquery. Those of a batch that ran side by side share the time of `operate`."""
    found = {
        subquery.name: (_at_work_s(outcomes), _cpu_s(outcomes), len(outcomes))
        for subquery, outcomes in zip(batch.plan.subqueries, batch.work.outcomes, strict=True)
    }
    wall_s = batch.seconds + batch.spans.spans_ms.get(BETWEEN, 0.0) / 1e3
    all_s = sum(at_work_s for at_work_s, *_ in found.values())
    part = min(batch.spans.spans_ms[OPERATE] / 1e3 / all_s, 1.0) if all_s else 1.0
    return {
        name: TaskTime(wall_s, at_work_s * part, max(cpu_s, at_work_s * part), instances)
        for name, (at_work_s, cpu_s, instances) in found.items()
    }


def _at_work_s(outcomes: Sequence[Outcome]) -> float:
    """The wall time in which tasks of a subquery may have been at work.

    In each round it is no more than the driver waited, where spans say that, nor more than all its
    tasks together.
    """
    spans = added(outcome.spans_ms for outcome in outcomes)
    total_ms = 0.0
    for waiting, working in ROUNDS:
        waited_ms = sum(ms for name, ms in spans.items() if name.endswith(waiting))
        worked_ms = sum(ms for name, ms in spans.items() if name.startswith(working))
        total_ms += min(worked_ms, waited_ms or math.inf)
    return total_ms / 1e3


def _cpu_s(outcomes: Sequence[Outcome]) -> float:
    return sum(o.counts.get(name, 0) for o in outcomes for name in ("cpu_us", "map_cpu_us")) / 1e6


def of_all(times: Mapping[str, TaskTime]) -> TaskTime:
    """The tasks of all subqueries together."""
    return TaskTime(
        max((one.wall_s for one in times.values()), default=0.0),
        sum(one.at_work_s for one in times.values()),
        sum(one.work_s for one in times.values()),
        max((one.instances for one in times.values()), default=0),
    )


class SpeedUpFold(Fold):
    """The serial time of a run, and what more instances could bring; grows with the subqueries.

    The first batch, which often loads and compiles, does not count.
    """

    def __init__(self) -> None:
        self._total: dict[str, TaskTime] | None = None

    def add(self, value: Mapping[str, TaskTime]) -> None:
        if self._total is None:
            self._total = {}
            return
        self._total |= {
            name: one.after(self._total.get(name, NO_TIME)) for name, one in value.items()
        }

    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        if not self._total:
            return {name: None}
        total = dict(self._total)
        parts = {subquery: figures(one) for subquery, one in total.items()}
        return {name: {**figures(of_all(total)), "subqueries": parts}}


def figures(time: TaskTime) -> dict[str, Any]:
    """As JSON has them."""
    found = time.speed_up
    return {
        "serial_s": round(found.serial_s, 6),
        "serial_time": round(found.serial_s / time.wall_s, 4) if time.wall_s else 0.0,
        "work_s": round(found.work_s, 6),
        "serial_share": round(found.serial_share, 4),
        "instances": time.instances,
        "now": round(found.at(max(time.instances, 1)), 3),
        "limit": None if math.isinf(found.limit) else round(found.limit, 3),
    }


def _line(found: Mapping[str, Any]) -> str:
    """Of the run; with several subqueries also of each, when it alone gets more instances."""
    whole = found["speed_up"]
    instances, parts = whole["instances"], whole["subqueries"]
    alone, now, unit = "", "more instances are", " as fast"
    if instances > 1:
        alone = f" ({number_text(whole['serial_share'], 'share')} with one instance)"
        now = f"{instances} instances are at most {whole['now']:.1f} times as fast as one, more"
        unit = ""
    lines = [
        f"serial {number_text(whole['serial_time'], 'share')} of the time{alone}: "
        f"{now} {_limit_text(whole)}{unit}",
        *(f"{name} alone {_limit_text(one)}" for name, one in parts.items() if len(parts) > 1),
    ]
    return "; ".join(lines)


def _limit_text(one: Mapping[str, Any]) -> str:
    limit = one["limit"]
    return "without a limit" if limit is None else f"at most {limit:.1f} times"


def _whole(view: RunView) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = view.summary.folds["speed_up"].as_dict("", ())[""]
    return found


def _serial_time(view: RunView) -> Samples:
    whole = _whole(view)
    return [] if whole is None else [MetricSample((), whole["serial_time"])]


def _serial_share(view: RunView) -> Samples:
    parts = (_whole(view) or {"subqueries": {}})["subqueries"]
    return by("subquery", ((name, one["serial_share"]) for name, one in parts.items()))


METRICS = (
    RunMetric(
        "speed_up",
        task_times,
        "serial",
        over=SpeedUpFold,
        where=Where.SUMMARY | Where.STATUS,
        line=_line,
        exports=(
            gauge(
                "serial_time_ratio",
                "Share of the time of this run, but for its first batch, in which no task was at "
                "work.",
                _serial_time,
            ),
            gauge(
                "serial_share_ratio",
                "Share of the work for each subquery that one instance alone would spend outside "
                "its tasks: more instances do not speed it up.",
                _serial_share,
                ["subquery"],
            ),
        ),
    ),
)
