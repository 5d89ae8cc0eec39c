"""Runs the first rows of a query to see how much processor time each subquery takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate import schedule
from tidegate.driver.metrics import BatchReport
from tidegate.driver.options import DEFAULT_BATCH_ROWS, RunOptions
from tidegate.errors import UnavailableError
from tidegate.model.speed_up import SpeedUp
from tidegate.plan.physical import SPARK, Plan
from tidegate.session.launch import prepare
from tidegate.session.place import NO_SPARK, Place
from tidegate.sink.nothing import NothingSink

DEFAULT_ROWS = 100_000

_BATCHES = 2
"""So that one reads what another kept; more of them would show the cost of batches, not tuples."""

_WARM_ROWS = 5_000
"""Rows that are run before and not counted: they load and compile what the query uses."""


@dataclass(frozen=True)
class SampleLoad:
    """What a subquery did in a sample: the tuples it took, and the CPU of its tasks."""

    subquery: str
    tuples: int
    cpu_us: int

    def with_more(self, tuples: int, cpu_us: int) -> SampleLoad:
        return SampleLoad(self.subquery, self.tuples + tuples, self.cpu_us + cpu_us)

    @property
    def cost_us(self) -> float:
        """Of one tuple."""
        return self.cpu_us / self.tuples if self.tuples else 0.0


@dataclass(frozen=True)
class SampleRun:
    """The rows and batches of a sample, and the loads in the order of the subqueries.

    `speed_up` is what more instances could bring in batches of DEFAULT_BATCH_ROWS.
    """

    rows: int
    batches: int
    loads: tuple[SampleLoad, ...]
    speed_up: SpeedUp


def sample_run(plan: Plan, rows: int = DEFAULT_ROWS) -> SampleRun:
    """Run the first rows of all streams together, in this process, one instance per subquery.

    Results and state are thrown away.
    """
    reason = next(
        (p.reason for s in plan.subqueries for p in s.prefixes if p.engine == SPARK), None
    )
    if reason is not None:
        raise UnavailableError(
            "sample", "runs without Spark", reason, "Give --instances by your own measurements."
        )
    _run(plan, min(rows, _WARM_ROWS), 1)
    small = _mean(*_run(plan, min(rows, _WARM_ROWS), 1))
    reports, used_s = _run(plan, rows, _BATCHES)
    loads = {s.name: SampleLoad(s.name, 0, 0) for s in plan.subqueries}
    for report in reports:
        for name, counts in zip(report.subqueries, report.instance_counts, strict=True):
            loads[name] = loads[name].with_more(counts["taken"], _cpu_us(counts))
    rows = sum(r.rows_in for r in reports)
    speed_up = in_large_batches(small, _mean(reports, used_s))
    return SampleRun(rows, len(reports), tuple(loads.values()), speed_up)


def _cpu_us(counts: Mapping[str, int]) -> int:
    """What tasks used of a processor."""
    return counts["cpu_us"] + counts["map_cpu_us"]


def _mean(reports: Sequence[BatchReport], used_s: float) -> tuple[float, SpeedUp]:
    """The rows of a mean batch, and what it did with and without its tasks, in CPU time.

    Wall time would have other programs of this machine in it.
    """
    batches = max(len(reports), 1)
    work_s = sum(_cpu_us(counts) for r in reports for counts in r.instance_counts) / 1e6
    done = SpeedUp(max(used_s - work_s, 0.0) / batches, work_s / batches)
    return sum(r.rows_in for r in reports) / batches, done


def in_large_batches(small: tuple[float, SpeedUp], large: tuple[float, SpeedUp]) -> SpeedUp:
    """What a batch of DEFAULT_BATCH_ROWS would be, from a small one and a larger one, with rows.

    Both times have a part that every batch takes and one for each row. Batches of a size do not
    tell them apart, and then nothing is known to be serial.
    """
    (few, small_batch), (many, large_batch) = small, large
    if many <= few:
        return SpeedUp(0.0, large_batch.work_s)
    times = (DEFAULT_BATCH_ROWS - few) / (many - few)

    def extended(small_s: float, large_s: float) -> float:
        return small_s + max(large_s - small_s, 0.0) * times

    return SpeedUp(
        extended(small_batch.serial_s, large_batch.serial_s),
        extended(small_batch.work_s, large_batch.work_s),
    )


def _run(plan: Plan, rows: int, batches: int) -> tuple[list[BatchReport], float]:
    """The reports of the batches, and the CPU time that they took."""
    sinks = {target.name: NothingSink() for target in plan.targets}
    options = RunOptions(instances=1, batch_rows=-(-rows // batches))
    loop = prepare(plan, Place(NO_SPARK), sinks, options)
    clock, reports = schedule.current().clock, list[BatchReport]()
    before_s = clock.cpu()
    try:
        while sum(r.rows_in for r in reports) < rows and (report := loop.step()) is not None:
            reports.append(report)
        return reports, clock.cpu() - before_s
    finally:
        loop.close()
