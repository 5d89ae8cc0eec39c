"""How many pairs a join compares and puts out, expected from the first rows of its streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.calendar.microsecond import SECOND_US
from tidegate.errors import TaskError
from tidegate.operate.join.spec import SCAN, JoinSpec, WindowExtent
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.plan.join.sample import RawRows, SideSample, read_of
from tidegate.plan.physical import ARROW, Prefix
from tidegate.query.definition import StreamDef

COMPILED, EVALUATED = 1_000_000_000, 10_000_000
"""What a core compares in a second: by compiled tests of bounds and conditions, and by evaluating a
condition that has none (`docs/measured/engine.md`, rounded down)."""


MANY_ROWS = 1_000
"""A join that puts out more rows for a tuple is warned of."""


@dataclass(frozen=True)
class Expected:
    """What a join has to do, in words: lines for `explain`, and what to warn of."""

    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def expected_of(
    spec: JoinSpec,
    prefixes: tuple[Sequence[Prefix], Sequence[Prefix]],
    streams: Sequence[StreamDef],
    rows: RawRows | None,
    sample: SideSample | None,
) -> Expected:
    """What a join compares, where it has no index, and what it puts out; nothing not known."""
    if rows is None:
        return Expected()
    left, right = (_side_rate(side, streams, rows) for side in prefixes)
    if left is None or right is None:
        return Expected()
    capacity = COMPILED if spec.intervals or spec.compiled else EVALUATED
    pairs = Comparisons((left, right), (spec.left.extent, spec.right.extent), capacity)
    lines, warnings = list[str](), list[str]()
    decides = bool(spec.predicate or spec.function)
    if spec.method == SCAN and decides:  # without a condition there is nothing to find
        lines.append(f"comparisons: {pairs.text}")
        warnings += [] if pairs.warning is None else [pairs.warning]
    found = _pass_rate(spec, sample) if decides else 1.0
    if found is not None and left + right:
        each = found * pairs.per_second / (left + right)
        about = f"up to about {each:,.0f} rows for each tuple with full windows"
        lines.append(f"output: {about}, by the first rows of its streams")
        if each > MANY_ROWS:
            warnings.append(
                f"expect {about}: the values of its condition are few. Add a condition, or shorten "
                f"the windows, unless you need them all."
            )
    return Expected(tuple(lines), tuple(warnings))


def _pass_rate(spec: JoinSpec, sample: SideSample | None) -> float | None:
    """The share of pairs that the index finds, as far as a sample tells."""
    if sample is None or spec.method == SCAN:
        return None
    if spec.branches:
        return sample.union_rate(spec.branches)
    return sample.probe_rate(spec.probe)


@dataclass(frozen=True)
class Comparisons:
    """Pairs to compare in a second of event time, once the windows are full.

    `rates` are the tuples that either side brings in that time. `capacity` is what a core does in
    a second.
    """

    rates: tuple[float, float]
    extents: tuple[WindowExtent, WindowExtent]
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


def _side_rate(
    prefixes: Sequence[Prefix], streams: Sequence[StreamDef], rows: RawRows
) -> float | None:
    """The tuples that a side brings in a second of event time; None where it cannot be told."""
    total = 0.0
    for prefix in prefixes:
        if prefix.engine != ARROW or prefix.lookups or not isinstance(prefix.origin, int):
            return None
        raw = rows(streams[prefix.origin], read_of(prefix))
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


def _held(rate: float, extent: WindowExtent) -> float:
    """The tuples of a full window."""
    if extent.rows is not None:
        return extent.rows
    assert extent.range_us is not None
    return rate * extent.range_us / SECOND_US
