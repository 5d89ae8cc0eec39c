"""Streams made of streams, each read twice: the work must not double with every level."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from tests.query.catalog import sql
from tidegate.cli.main import invoke
from tidegate.plan.cut import Cutting
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import OPERATOR_SET, SPARK
from tidegate.query.output import Output
from tidegate.schema import TIME

Row = tuple[int, int, int]
Side = Callable[[Row], Row | None]

VALUES = [(n // 3, n % 7, n) for n in range(40)]
"""Time, a, b; several tuples have one time, and the sides of a union then decide the order."""

SIDES: list[tuple[str, Side]] = [
    ("SELECT a + 1 AS a, b FROM {} WHERE b % 2 = 0", lambda r: (r[0], r[1] + 1, r[2])),
    ("SELECT a, b + 1 AS b FROM {} WHERE b % 3 <> 0", lambda r: (r[0], r[1], r[2] + 1)),
]
HELD: list[Callable[[Row], bool]] = [lambda r: r[2] % 2 == 0, lambda r: r[2] % 3 != 0]


def levels(count: int, first: str = "s0") -> str:
    """Scripts of as many streams, each a union of two reads of the one before."""
    lines = []
    for level in range(1, count + 1):
        before = first if level == 1 else f"s{level - 1}"
        query = " UNION ALL ".join(text.format(before) for text, _ in SIDES)
        lines.append(f"CREATE STREAM s{level} AS {query};")
    return "\n".join(lines)


def expected(count: int) -> list[Row]:
    """Time by time, the rows of one side after those of the other, level by level."""
    result: list[Row] = []
    for time in sorted({t for t, _, _ in VALUES}):
        rows = [r for r in VALUES if r[0] == time]
        for _ in range(count):
            rows = [
                row
                for holds, (_, side) in zip(HELD, SIDES, strict=True)
                for r in rows
                if holds(r) and (row := side(r)) is not None
            ]
        result += rows
    return result


def run(text: str, folder: Path, *options: str) -> list[Row]:
    rows = pa.table(
        {
            "ts": pa.array([t for t, _, _ in VALUES], pa.int64()).cast(TIME),
            "a": [a for _, a, _ in VALUES],
            "b": [b for _, _, b in VALUES],
        }
    )
    pyarrow.parquet.write_table(rows, folder / "s0.parquet")
    (folder / "q.sql").write_text(f"CREATE STREAM s0 FROM '{folder}/s0.parquet' TIME ts;\n{text}")
    out = folder / "out"
    assert (
        invoke(["run", str(folder / "q.sql"), "--master", "none", "--out", str(out), *options]) == 0
    )
    found = [pyarrow.parquet.read_table(p) for p in sorted(out.glob("batch=*/*.parquet"))]
    table = pa.concat_tables(found)
    times = table["ts"].cast(pa.int64()).to_pylist()
    return list(zip(times, table["a"].to_pylist(), table["b"].to_pylist(), strict=True))


@pytest.mark.parametrize("options", [(), ("--batch-rows", "7", "--instances", "2")])
def test_rows_and_their_order_are_those_of_every_path(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    text = f"{levels(5)} SELECT a, b FROM s5"
    assert len(expected(5)) > len(VALUES)
    assert run(text, tmp_path, *options) == expected(5)


def test_the_plan_grows_with_the_levels() -> None:
    def size(count: int) -> tuple[int, int]:
        script = levels(count, "calls_ab")
        first = "CREATE STREAM calls_ab AS SELECT fare AS a, fare AS b FROM calls;"
        node = sql(f"{first} {script} SELECT a, b FROM s{count}")
        plan = lower(node)
        return sum(len(s.prefixes) for s in plan.subqueries), len(
            explain((Output(None, node),), plan).splitlines()
        )

    small, large = size(12), size(24)
    assert all(2 * few >= many for few, many in zip(small, large, strict=True))
    assert large[0] < 100


def test_what_is_read_a_few_times_has_no_unit_of_its_own() -> None:
    node = sql(
        "CREATE STREAM v AS SELECT fare FROM calls UNION ALL SELECT tip FROM rides;"
        "SELECT fare FROM v UNION ALL SELECT fare + 1 AS fare FROM v"
    )
    assert not Cutting.of([node], OPERATOR_SET).shared
    assert len(lower(node).subqueries) == 1


def test_columns_said_by_two_of_the_level_before_do_not_double(tmp_path: Path) -> None:
    count = 24
    lines = [
        f"CREATE STREAM s{n} AS SELECT a - b AS a, a + b AS b FROM s{n - 1};"
        for n in range(1, count + 1)
    ]
    rows = [(t, a, b) for t, a, b in VALUES]
    for _ in range(count):
        rows = [(t, a - b, a + b) for t, a, b in rows]
    assert run(f"{' '.join(lines)} SELECT a, b FROM s{count}", tmp_path) == rows


def test_a_thousand_streams_in_a_row(tmp_path: Path) -> None:
    lines = [f"CREATE STREAM s{n} AS SELECT a + 1 AS a, b FROM s{n - 1};" for n in range(1, 1001)]
    found = run(f"{' '.join(lines)} SELECT a, b FROM s1000", tmp_path)
    assert found == [(t, a + 1000, b) for t, a, b in VALUES]


def test_what_needs_spark_reads_the_streams_itself() -> None:
    text = f"{levels(4, 'ab')} SELECT hex(b) AS h FROM s4 UNION ALL SELECT hex(a) AS h FROM s4"
    node = sql(f"CREATE STREAM ab AS SELECT fare AS a, fare AS b FROM calls; {text}")
    plan = lower(node, lambda texts, _: [pa.bool_() if "%" in t else pa.string() for t in texts])
    (subquery,) = plan.subqueries
    assert {p.engine for p in subquery.prefixes} == {SPARK}
