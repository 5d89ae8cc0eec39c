"""The base of operators that look at the tuples of one key at a time, such as DISTINCT ON and OVER.

A tuple goes to the instance that owns the bucket of its key. So the total work is the same for any
number of instances.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.collect.trigger import TriggerOrder
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.keyed_state import deal_by_key
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Operator,
    Result,
    Share,
    Traits,
    plain_names,
    together,
)
from tidegate.operate.port import Port
from tidegate.route.hash import BY_HASH
from tidegate.state.segment.segment import Segment


@dataclass(frozen=True)
class KeyedStep:
    """What `KeyedOperator.advance` makes of a batch.

    `rows` makes the rows of one port. `touched` are the tuples that the work was for: their number
    by bucket is the work by bucket.
    """

    rows: Callable[[Port], pa.Table]
    touched: pa.Table
    segments: Mapping[str, tuple[Segment, ...]]


class KeyedOperator(Operator):
    """Derive from it as a frozen dataclass.

    The rows come in the total order of the tuples, unless `order` says otherwise.
    """

    partitioner = BY_HASH
    order = TriggerOrder("ts, input, source, position")
    traits = Traits(deals_ahead=True)

    @property
    @abstractmethod
    def key_names(self) -> Sequence[str]:
        """The columns of the key; none for one key that all tuples have."""

    @property
    @abstractmethod
    def task(self) -> str:
        """What an instance does, as a plan says it."""

    @abstractmethod
    def advance(self, work: InstanceWork, tuples: pa.Table | None) -> KeyedStep | None:
        """Read the state of the keys, look at the tuples, and write the state.

        `tuples` come in any order and have their `bucket` and `group`; None where none arrived.
        Gives None where there is nothing to do.
        """

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        return deal_by_key(work, plain_names(tuples), self.key_names)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        tuples = together(arrived)
        step = self.advance(work, tuples)
        if step is None:
            return Result(tuple(port.carried.empty_table() for port in work.ports), 0)
        work.spans.mark("instance write")
        rows = tuple(step.rows(port) for port in work.ports)
        work.spans.mark("instance finish")
        count = 0 if tuples is None else tuples.num_rows
        touched = rows_by_bucket([step.touched], work.mapping.buckets)
        return Result(rows, count, step.segments, bucket_work=touched)

    def details(self, texts: Mapping[str, str]) -> list[str]:
        by = ", ".join(texts.get(name, name) for name in self.key_names)
        return [f"by {by or 'nothing'}", f"{self.task}: one task per instance, shuffle by bucket"]
