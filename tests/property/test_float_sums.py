"""Sums of floats, and rows chosen by them, to the bit: for any cut, instances and partitioner."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver.scene import loop_of
from tests.operate.aggregate.test_split_keys import Scattered
from tests.oracle.function import float_sum, nearest
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.query.definition import StreamDef
from tidegate.query.output import single
from tidegate.schema import TIME
from tidegate.sink.memory import MemorySink
from tidegate.source.memory import MemorySource
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

SCHEMA = pa.schema([("ts", TIME), ("k", pa.string()), ("x", pa.float64())])
PRICES = list(
    zip(
        "aabbbaabbbaa",
        (0.2, 2.2, 0.2, 1.1, 3.3, 3.3, 0.7, 2.2, 0.2, 0.7, 0.2, 1.1),
        strict=True,
    )
)
"""Two groups with the same numbers in another order."""

CANCELLING = [("a", x) for x in (1e16, 1.0, -1e16, 1.0, 0.5)]
WHOLE = 10**6
Rows = Sequence[tuple[str, float]]


def run(
    sql: str, rows: Rows, batch_rows: int, instances: int, scattered: bool = False
) -> list[Any]:
    """The lines of a query over rows a microsecond apart, without the times of windows."""
    node = single(bind(read_script(sql), {"s": StreamDef("s", (), "ts", 0, None, SCHEMA)}))
    plan = lower(node, choices=Choices(partitioner=Scattered()) if scattered else Choices())
    columns = [pa.array(range(len(rows)), TIME), *map(pa.array, zip(*rows, strict=True))]
    source = MemorySource(pa.table(columns, schema=SCHEMA), time="ts", schema=SCHEMA, id="memory")
    source.end()
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        loop = loop_of(
            plan, [source], Path(folder), sink, None, batch_rows=batch_rows, instances=instances
        )
        loop.run()
    return [tuple(line.values())[2:] for line in sink.table().to_pylist()]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("window", ["RANGE 1 SECOND", "ROWS 6"])
def test_rows_chosen_by_a_sum_do_not_depend_on_the_cut(batch_rows: int, window: str) -> None:
    sql = f"SELECT k, SUM(x) AS s FROM s [{window}] GROUP BY k"
    total = math.fsum(x for k, x in PRICES if k == "a")
    both = run(sql, PRICES, batch_rows, 2)
    assert sorted(both) == [("a", total), ("b", total)]
    if window.startswith("RANGE"):
        assert run(f"{sql} ORDER BY s DESC LIMIT 1", PRICES, batch_rows, 1) == [("a", total)]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 4, 5])
def test_what_cancels_leaves_what_is_left(batch_rows: int) -> None:
    sql = "SELECT SUM(x) AS s, AVG(x) AS m FROM s [RANGE 1 SECOND]"
    assert run(sql, CANCELLING, batch_rows, 2) == [(2.5, 0.5)]


CALLS = "SUM(x) AS s, AVG(x) AS m, VAR(x) AS v, STDDEV(x) AS d, COVAR_POP(x, x * x) AS c"
NUMBERS = st.one_of(
    st.floats(), st.sampled_from([1e16, -1e16, 0.1, 5e-324, 1.7e308, math.inf, math.nan])
)


@settings(max_examples=max(10, settings.default.max_examples // 5))
@given(
    st.lists(st.tuples(st.sampled_from("ab"), NUMBERS), min_size=1, max_size=20),
    st.integers(1, 20),
    st.integers(1, 3),
    st.booleans(),
)
def test_any_run_gives_the_same_bits(
    rows: Rows, batch_rows: int, instances: int, scattered: bool
) -> None:
    sql = f"SELECT k, {CALLS}, CORR(x, x * 3) AS r FROM s [RANGE 1 SECOND] GROUP BY k"
    lines = run(sql, rows, WHOLE, 1)
    assert repr(run(sql, rows, batch_rows, instances, scattered)) == repr(lines)
    for key, total, mean, variance, *_ in lines:
        values = [x for k, x in rows if k == key]
        assert repr((total, mean)) == repr((float_sum(values), float_sum(values) / len(values)))
        if len(values) > 1 and all(map(math.isfinite, values)):
            exact = [Fraction(v) for v in values]
            centre = sum(exact, Fraction(0)) / len(exact)
            spread = sum(((v - centre) ** 2 for v in exact), Fraction(0))
            assert variance == nearest(spread / (len(exact) - 1))
