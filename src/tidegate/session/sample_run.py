"""Runs the first rows of a query to see how much processor time each subquery takes."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.driver.metrics import BatchReport
from tidegate.driver.options import RunOptions
from tidegate.errors import UnavailableError
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
    """The rows and batches of a sample, and the loads in the order of the subqueries."""

    rows: int
    batches: int
    loads: tuple[SampleLoad, ...]


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
    reports = _run(plan, rows, _BATCHES)
    loads = {s.name: SampleLoad(s.name, 0, 0) for s in plan.subqueries}
    for report in reports:
        for name, counts in zip(report.subqueries, report.instance_counts, strict=True):
            cpu_us = counts["cpu_us"] + counts["map_cpu_us"]
            loads[name] = loads[name].with_more(counts["taken"], cpu_us)
    return SampleRun(sum(r.rows_in for r in reports), len(reports), tuple(loads.values()))


def _run(plan: Plan, rows: int, batches: int) -> list[BatchReport]:
    sinks = {target.name: NothingSink() for target in plan.targets}
    options = RunOptions(instances=1, batch_rows=-(-rows // batches))
    loop = prepare(plan, Place(NO_SPARK), sinks, options)
    reports: list[BatchReport] = []
    try:
        while sum(r.rows_in for r in reports) < rows and (report := loop.step()) is not None:
            reports.append(report)
    finally:
        loop.close()
    return reports
