"""What a batch shows of the costs of each subquery, between its report and the estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.metrics import BatchReport
from tidegate.model.sample import Sample


def samples_of(
    report: BatchReport, slots: int | None, previous_us: int = MIN_US
) -> dict[str, Sample]:
    """By subquery what the batch did and took.

    `slots` is how many instances run at once, None where all do. `previous_us` is the frontier
    after the batch before.
    """
    counts: defaultdict[str, list[Mapping[str, int]]] = defaultdict(list)
    for name, of in zip(report.subqueries, report.instance_counts, strict=True):
        counts[name].append(of)
    found = {}
    for name, instances in counts.items():
        cpu_us = [of["cpu_us"] for of in instances]

        def summed(what: str, instances: list[Mapping[str, int]] = instances) -> int:
            return sum(of.get(what, 0) for of in instances)

        found[name] = Sample(
            seconds=round(report.seconds, 6),
            cpu_s=sum(cpu_us) / 1e6,
            busiest_s=max(cpu_us) / 1e6,
            tuples=summed("taken"),
            comparisons=summed("comparisons"),
            compared=summed("compared"),
            outputs=summed("outputs"),
            instances=len(instances),
            slots=slots,
            event_s=_passed_s(previous_us, report.frontier_us),
        )
    working_s = sum(sample.working_s for sample in found.values())
    return {
        name: sample.beside(round(working_s - sample.working_s, 6))
        for name, sample in found.items()
    }


def _passed_s(previous_us: int, frontier_us: int) -> float | None:
    """The event time between two frontiers; None at the start and at the end."""
    known = previous_us != MIN_US and frontier_us != MAX_US
    return (frontier_us - previous_us) / 1e6 if known else None
