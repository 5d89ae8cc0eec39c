"""What one batch of a subquery did and took: what costs are estimated from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class WorkCounts:
    """What there is to do in a batch or a second, by what costs are for; see `BatchSample`."""

    tuples: float
    compared: float = 0.0
    outputs: float = 0.0

    def plus(self, other: WorkCounts) -> WorkCounts:
        return WorkCounts(
            self.tuples + other.tuples,
            self.compared + other.compared,
            self.outputs + other.outputs,
        )


@dataclass(frozen=True)
class BatchSample:
    """One batch of one subquery, as it was measured.

    `seconds` is the wall time of the batch, `others_s` what the instances of other subqueries took
    of it, which run before or after these. `cpu_s` is the CPU time of all instances together,
    `busiest_s` that of the busiest. `tuples` are those that were read, before any filter.
    `comparisons` are the pairs that a join's definition compares, `compared` those that its method
    did compare: the same for a scan. `outputs` are the rows of its instances, and of an aggregate
    the groups of the windows that closed, also where few of them come out. `slots` is how many
    instances run at once, None where all do, and `event_s` the event time that passed, None where
    that is not known.
    """

    seconds: float
    cpu_s: float
    busiest_s: float
    tuples: int
    comparisons: int = 0
    compared: int = 0
    outputs: int = 0
    instances: int = 1
    slots: int | None = None
    others_s: float = 0.0
    event_s: float | None = None

    @property
    def abreast(self) -> int:
        """How many instances work side by side."""
        return min(self.instances, self.slots or self.instances)

    @property
    def working_s(self) -> float:
        """The part of the batch in which its instances work."""
        return max(self.busiest_s, self.cpu_s / self.abreast)

    @property
    def overhead_s(self) -> float:
        """The part of the batch in which no instance works: reading, dealing, collecting, commit.

        CPU time is counted in larger steps than wall time, so it can be the longer of the two.
        """
        return max(self.seconds - self.others_s - self.working_s, 0.0)


def whole(samples: Sequence[BatchSample], outputs: int) -> BatchSample:
    """One batch of all subqueries of a query, with the rows that leave it.

    Its instances count as one, which works when any of them does.
    """
    working_s = sum(sample.working_s for sample in samples)
    return BatchSample(
        seconds=samples[0].seconds,
        cpu_s=working_s,
        busiest_s=working_s,
        tuples=sum(sample.tuples for sample in samples),
        outputs=outputs,
    )
