"""What one batch showed of a subquery, as policies see it and costs are estimated from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.model.cost.sample import BatchSample
from tidegate.model.operation import Floats, Operation
from tidegate.route.mapping import Mapping

if TYPE_CHECKING:
    from tidegate.driver.report.observe import MeasuredBatch


START_UP = "the run began"
"""What disturbs the first batch of a run: `Observation.disturbed`."""


@dataclass(frozen=True)
class InstanceLoad:
    """What one instance did in a batch; `cpu_s` has its even part of what map tasks did.

    `pace` is how many times its own CPU time it took by the clock.
    """

    cpu_s: float
    tuples: int
    comparisons: int = 0
    outputs: int = 0
    compared: int = 0
    pace: float = 1.0


@dataclass(frozen=True)
class InputLoad:
    """What one source brought to an input of a subquery in a batch.

    `side` is the side of a join that the input feeds, 0 or 1. `tuples` were read in the batch, and
    `arrived` came since the batch before it, read or not; None where the source is not live, and in
    the first batch of a run. Their event times are in `span_us`, None where there are none. The
    rows of another subquery are an input too, without a source.
    """

    input: int
    stream: str
    source: str | None
    tuples: int
    arrived: int | None = None
    span_us: tuple[int, int] | None = None
    side: int = 0


@dataclass(frozen=True)
class ShedSeen:
    """What a query sheds that may shed more or less: the share now, and the most it may be.

    `error` is what is expected of the newest window in which tuples were shed, and `kept` the share
    of its tuples that were kept; None before there was one.
    """

    share: float
    most: float
    error: float | None = None
    kept: float | None = None


@dataclass(frozen=True)
class BatchCadence:
    """The least time between the starts of two batches, and the most rows that one may have.

    Without `rows` nothing limits them. No result depends on either.
    """

    trigger_s: float = 0.0
    rows: int | None = None


@dataclass(frozen=True)
class SplitSeen:
    """A partitioner on standby: whether it may split keys now, and whether it does."""

    allowed: bool
    splits: bool = False


@dataclass(frozen=True)
class Observation:
    """One batch of one subquery.

    `seconds` is what the batch took, and `period_s` the time from the end of the batch before it to
    its own end: its `seconds` where there was input all the time, and what the query waited for
    input before it. The first batch of a run has waited for nothing. `buckets` has the CPU seconds
    of each bucket, as the instances measured or estimated them; those of an instance's buckets add
    up to its own. `backlog` are the tuples that had arrived and were not taken, None where no
    source is live or their number is not known. `slots` is how many instances can run at once where
    the query runs, None where that is not known.

    `inputs` are what each source brought. `taken` are the tuples that were ready, before any
    filter, and `sides` those of a join's left and right side after it. `operation` says what the
    operator is. `event_s` is the event time that passed, None at either end of the input. `closed`
    are the groups of windows that ended, before any HAVING or LIMIT, None where there are no such
    windows. `map_s` is the CPU time of map tasks, and `others_s` what the instances of other
    subqueries took of the batch, before or after these. `between_s` is the part of the period
    before the batch in which the query did not wait: it looked for input and kept its books.

    `latency_s` is that of the slowest tuple which the batch answered, None where it answered none
    of a live source. `cadence` is that of the batches now, and `own_cadence` what the user asked
    for, None where a policy cannot change it. `split` is None where the partitioner of the subquery
    cannot be changed, and `shed` where the share of the query cannot. `disturbed` says what
    happened in the batch that is no work, as that a task was run again; None where nothing did.
    `limit` is how many instances all subqueries of the query may have together, None where nobody
    limits them. `state_bytes` is what all instances keep after the batch, and `memory_bytes` what
    one process may hold, None where that is not known.
    """

    subquery: str
    batch: int
    seconds: float
    period_s: float
    mapping: Mapping
    instances: tuple[InstanceLoad, ...]
    buckets: Floats
    backlog: int | None = None
    slots: int | None = None
    inputs: tuple[InputLoad, ...] = ()
    sides: tuple[int, ...] = ()
    operation: Operation | None = None
    taken: int = 0
    event_s: float | None = None
    closed: int | None = None
    map_s: float = 0.0
    others_s: float = 0.0
    between_s: float = 0.0
    latency_s: float | None = None
    cadence: BatchCadence = BatchCadence()
    own_cadence: BatchCadence | None = None
    split: SplitSeen | None = None
    shed: ShedSeen | None = None
    disturbed: str | None = None
    limit: int | None = None
    state_bytes: int = 0
    memory_bytes: int | None = None

    @property
    def utilisation(self) -> Floats:
        """The share of the period that each instance was busy; above 1 it falls behind."""
        busy = np.array([load.cpu_s for load in self.instances], np.float64)
        return busy / self.period_s if self.period_s > 0 else busy * np.inf

    def sample(self, slots: int | None = None) -> BatchSample:
        """As an `Estimator` takes it; `slots` where the batch does not know.

        What was between it and the one before is part of it: batches that follow one another have
        it every time. What map tasks did is no work of instances.
        """
        outputs = sum(load.outputs for load in self.instances)
        shared_s = self.map_s / len(self.instances)
        cpu_s = [max(load.cpu_s - shared_s, 0.0) for load in self.instances]
        return BatchSample(
            seconds=round(self.seconds + self.between_s, 6),
            cpu_s=round(sum(cpu_s), 6),
            busiest_s=round(max(cpu_s), 6),
            tuples=self.taken,
            comparisons=sum(load.comparisons for load in self.instances),
            compared=sum(load.compared for load in self.instances),
            outputs=outputs if self.closed is None else self.closed,
            instances=len(self.instances),
            slots=self.slots if slots is None else slots,
            others_s=round(self.others_s, 6),
            event_s=self.event_s,
        )


def observed_of(every: Sequence[MeasuredBatch]) -> tuple[Observation, ...]:
    """All subqueries of one batch in full, with what others took of its time."""
    whole_s = sum(measured.busiest_s for measured in every)
    return tuple(
        replace(one.in_full(), others_s=max(whole_s - one.busiest_s, 0.0)) for one in every
    )
