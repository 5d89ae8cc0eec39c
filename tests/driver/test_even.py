"""Work is shared evenly: whatever the rates of the sources, and whatever the keys.

The three skews of ScaleJoin's evaluation, with a tenth of its rates and a short window, on its
numbers of instances: distinct constant rates, rates that swing, and rates with peaks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.driver.report.metrics import BatchReport
from tidegate.execute.local import LocalRunner
from tidegate.plan.lowering.lower import lower
from tidegate.query.node.node import StreamDef
from tidegate.query.output import single
from tidegate.schema import TIME
from tidegate.sink.call import CallSink
from tidegate.source.memory import MemorySource
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.store import Store

SECONDS = 30
RANGE_S = 10
SCHEMA = pa.schema([("ts", TIME), ("x", pa.int32()), ("y", pa.float64())])
BANDS = "r.x BETWEEN s.x - 10 AND s.x + 10 AND r.y BETWEEN s.y - 10 AND s.y + 10"
EVEN = 0.01
"""The standard deviation that is allowed among instances, as a part of their mean."""

Rates = Sequence[Callable[[np.ndarray], np.ndarray]]
"""Tuples per second of each source, by the second."""


def constant(rate: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda second: np.full(len(second), rate)


def swinging(rate: float, amplitude: float, period_s: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda second: rate + amplitude * np.sin(2 * np.pi * second / period_s)


def peaking(rate: float, peak: float, every_s: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda second: np.where(second % every_s == every_s - 1, peak, rate)


SKEWS: dict[str, tuple[Rates, Rates, int]] = {
    "distinct constant rates": (
        [constant(120)],
        [constant(9), constant(18), constant(27), constant(36)],
        10,
    ),
    "rates that swing": (
        [swinging(40, 30, 20), swinging(30, 20, 13), swinging(25, 24, 31)],
        [swinging(60, 45, 17), swinging(35, 30, 29)],
        12,
    ),
    "rates with peaks": (
        [peaking(20, 200, 11), constant(15), peaking(10, 300, 17), constant(35)],
        [peaking(30, 400, 13), constant(60)],
        14,
    ),
}


def source(draw: np.random.Generator, rate: Callable[[np.ndarray], np.ndarray]) -> pa.Table:
    """Tuples at a rate, values uniform in 1..10 000."""
    seconds = np.arange(SECONDS)
    times = np.concatenate(
        [
            np.sort(draw.integers(s * 1_000_000, (s + 1) * 1_000_000, int(count)))
            for s, count in zip(seconds, rate(seconds), strict=True)
        ]
    )
    count = len(times)
    values = [
        pa.array(times).cast(TIME),
        draw.integers(1, 10_001, count),
        draw.uniform(1, 1e4, count),
    ]
    return pa.table([pa.array(v, f.type) for v, f in zip(values, SCHEMA)], schema=SCHEMA)


def comparisons(batch: BatchReport) -> list[int]:
    """What each instance has compared."""
    return [counts["comparisons"] for counts in batch.instance_counts]


def reports(
    on: str, sides: Sequence[Sequence[pa.Table]], folder: Path, **options: object
) -> list[BatchReport]:
    """The full batches of a join of r and s, from the first on in which the windows are full."""
    names = ("r", "s")
    streams = {n: StreamDef(n, (f"memory:{n}",), "ts", 0, None, SCHEMA) for n in names}
    window = f"[RANGE {RANGE_S} SECONDS]"
    text = f"SELECT r.x AS a, s.x AS b FROM r {window} JOIN s {window} ON {on}"
    connections = []
    for position, tables in enumerate(sides):
        for number, table in enumerate(tables):
            memory = MemorySource(table, time="ts", schema=SCHEMA, id=f"{position}/{number}")
            memory.end()
            connections.append(Connection(position, memory))
    made: list[BatchReport] = []
    loop = Loop(
        lower(single(bind(read_script(text), streams))),
        connections,
        Store.open(str(folder)),
        {None: CallSink(lambda batch, output: None)},
        LocalRunner(),
        RunOptions(**options),  # type: ignore[arg-type]
        on_batch=made.append,
    )
    assert loop.run().finished
    full = [r for r in made if r.rows_in == options["batch_rows"]]
    return [r for r in full if r.frontier_us > RANGE_S * 1_000_000]


def deviation(counts: Sequence[int]) -> float:
    """The standard deviation as a part of the mean."""
    return float(np.std(counts) / np.mean(counts))


@pytest.mark.parametrize("skew", SKEWS)
def test_rates_do_not_matter(skew: str, tmp_path: Path) -> None:
    left, right, instances = SKEWS[skew]
    draw = np.random.default_rng(len(skew))
    sides = [[source(draw, rate) for rate in rates] for rates in (left, right)]
    batches = reports(BANDS, sides, tmp_path, instances=instances, batch_rows=1500)
    assert len(batches) >= 2
    for batch in batches:
        assert len(comparisons(batch)) == instances
        assert deviation(comparisons(batch)) < EVEN, batch


def test_a_key_that_nearly_all_tuples_have_does_not_matter(tmp_path: Path) -> None:
    draw = np.random.default_rng(90)
    sides = []
    for rate in (120, 90):
        table = source(draw, constant(rate))
        keys = np.where(draw.random(len(table)) < 0.9, 7, draw.integers(0, 100, len(table)))
        sides.append([table.set_column(1, "x", pa.array(keys, pa.int32()))])
    on = "r.x = s.x AND abs(r.y - s.y) <= 100"
    batches = reports(on, sides, tmp_path, instances=8, batch_rows=1500)
    assert len(batches) >= 2
    for batch in batches:
        assert deviation(comparisons(batch)) < EVEN, batch
