"""Runs the first rows of a query to measure the CPU time of each subquery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate import schedule
from tidegate.driver.options import DEFAULT_BATCH_ROWS, RunOptions
from tidegate.driver.report.metrics import BatchReport
from tidegate.errors import UnavailableError
from tidegate.model.speed_up import SpeedUp
from tidegate.plan.physical import SPARK, Plan
from tidegate.session.launch import prepare
from tidegate.session.place import NO_SPARK, Place
from tidegate.sink.null_sink import NothingSink

DEFAULT_ROWS = 100_000

_BATCHES = 2
"""Two, so that the second reads state of the first; more would measure batches, not tuples."""

_WARM_ROWS = 5_000
"""The rows of a first run that is not counted: it loads and compiles code."""


@dataclass(frozen=True)
class SampleLoad:
    """The work of a subquery in a sample: its input tuples, and the CPU time of its tasks."""

    subquery: str
    tuples: int
    cpu_us: int

    def with_more(self, tuples: int, cpu_us: int) -> SampleLoad:
        return SampleLoad(self.subquery, self.tuples + tuples, self.cpu_us + cpu_us)

    @property
    def cost_us(self) -> float:
        """The CPU time of one tuple."""
        return self.cpu_us / self.tuples if self.tuples else 0.0


@dataclass(frozen=True)
class SampleRun:
    """The rows and batches of a sample, and the loads in the order of the subqueries.

    `speed_up` estimates the gain of more instances, in batches of DEFAULT_BATCH_ROWS.
    """

    rows: int
    batches: int
    loads: tuple[SampleLoad, ...]
    speed_up: SpeedUp


def sample_run(plan: Plan, rows: int = DEFAULT_ROWS) -> SampleRun:
    """Run the first rows of all streams in this process, with one instance per subquery.

    Results and state are dropped.
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
    """The CPU time of all tasks in these counts."""
    return counts["cpu_us"] + counts["map_cpu_us"]


def _mean(reports: Sequence[BatchReport], used_s: float) -> tuple[float, SpeedUp]:
    """The rows of an average batch, and its CPU time outside and inside tasks.

    CPU time, because wall time would include other programs of this machine.
    """
    batches = max(len(reports), 1)
    work_s = sum(_cpu_us(counts) for r in reports for counts in r.instance_counts) / 1e6
    done = SpeedUp(max(used_s - work_s, 0.0) / batches, work_s / batches)
    return sum(r.rows_in for r in reports) / batches, done


def in_large_batches(small: tuple[float, SpeedUp], large: tuple[float, SpeedUp]) -> SpeedUp:
    """Extrapolate a small and a larger batch, given with their rows, to DEFAULT_BATCH_ROWS rows.

    Each time is a fixed part per batch plus a part per row. Two batches of one size cannot separate
    the two; then no part counts as serial.
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
    """The reports of the batches, and their CPU time."""
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
