"""How many pairs a join without an index compares, from the first rows of its streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import TaskError
from tidegate.microsecond import SECOND_US
from tidegate.operate.join.spec import SCAN, Extent, JoinSpec
from tidegate.operate.kernels.expression import evaluate
from tidegate.plan.physical import ARROW, Prefix
from tidegate.plan.sample import RawRows
from tidegate.query.definition import StreamDef

TESTED, EVALUATED = 1_000_000_000, 10_000_000
"""What a core compares in a second: by compiled tests of bounds, and by evaluating a predicate
(`docs/performance.md`, rounded down)."""


@dataclass(frozen=True)
class Comparisons:
    """Pairs to compare in a second of event time, once the windows are full.

    `rates` are the tuples that either side brings in that time. `capacity` is what a core does in
    a second.
    """

    rates: tuple[float, float]
    extents: tuple[Extent, Extent]
    capacity: int

    @property
    def per_second(self) -> float:
        held = [_held(*side) for side in zip(self.rates, self.extents, strict=True)]
        return self.rates[0] * held[1] + self.rates[1] * held[0]

    @property
    def text(self) -> str:
        """For `explain`."""
        left, right = (f"{rate:,.0f}" for rate in self.rates)
        return (
            f"about {self.per_second:,.0f} a second of event time with full windows, at {left} "
            f"tuples a second on the left and {right} on the right in the first rows"
        )

    @property
    def warning(self) -> str | None:
        """What to say where a core cannot keep up."""
        if self.per_second <= self.capacity:
            return None
        return (
            f"no index fits the condition, so every pair in the windows is compared; expect "
            f"{self.text}, where a core makes about {self.capacity:,}. Add an equality or a band "
            f"to the condition, or shorten the windows; explain tells which part has no index."
        )


def comparisons_of(
    spec: JoinSpec,
    prefixes: tuple[Sequence[Prefix], Sequence[Prefix]],
    streams: Sequence[StreamDef],
    rows: RawRows | None,
) -> Comparisons | None:
    """What a join without an index compares; None for others, and where it cannot be told.

    A join without any condition puts out every pair that it looks at: it has nothing to find.
    """
    if spec.method != SCAN or rows is None or not (spec.predicate or spec.function):
        return None
    left, right = (_side_rate(side, streams, rows) for side in prefixes)
    if left is None or right is None:
        return None
    capacity = TESTED if spec.intervals else EVALUATED
    return Comparisons((left, right), (spec.left.extent, spec.right.extent), capacity)


def _side_rate(
    prefixes: Sequence[Prefix], streams: Sequence[StreamDef], rows: RawRows
) -> float | None:
    """The tuples that a side brings in a second of event time; None where it cannot be told."""
    total = 0.0
    for prefix in prefixes:
        if prefix.engine != ARROW or not isinstance(prefix.origin, int):
            return None
        raw = rows(streams[prefix.origin], list(dict.fromkeys((*prefix.columns, prefix.time))))
        rate = None if raw is None else _rate(prefix, raw)
        if rate is None:
            return None
        total += rate
    return total


def _rate(prefix: Prefix, raw: pa.Table) -> float | None:
    times = raw.column(prefix.time)
    if not pa.types.is_timestamp(times.type) or times.null_count == len(times):
        return None
    us = times.drop_null().cast(pa.timestamp("us", times.type.tz)).cast(pa.int64()).to_numpy()
    span, rows = int(us.max()) - int(us.min()), max(raw.num_rows, 1)
    try:
        for condition in prefix.where:
            raw = raw.filter(evaluate(condition, raw))
    except TaskError:
        return None
    kept = raw.num_rows / rows
    return kept * (len(us) - 1) * SECOND_US / span if span else None


def _held(rate: float, extent: Extent) -> float:
    """The tuples of a full window."""
    if extent.rows is not None:
        return extent.rows
    assert extent.range_us is not None
    return rate * extent.range_us / SECOND_US
