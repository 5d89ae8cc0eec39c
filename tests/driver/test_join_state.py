"""The state of a join: little more than its live tuples, and good for a run that asks otherwise."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.driver.scene import compacted
from tidegate.batch import ints
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.elastic.request import Request, Scale
from tidegate.operate.join.operator import StreamJoin
from tidegate.operate.join.state import SIDES
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan
from tidegate.query.output import single
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.script import streams_of
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.segment.segment import read_segment

STREAMS = """
CREATE STREAM r FROM 'generator:r?rows={rows}&rate={rate}&domain={domain}' TIME ts;
CREATE STREAM s FROM 'generator:s?rows={rows}&rate={rate}&domain={domain}&seed=1' TIME ts;
"""
BANDS = (
    "SELECT r.x, r.y, s.a, s.b FROM r [RANGE 10 SECONDS] JOIN s [RANGE 5 SECONDS] "
    "ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10"
)
EQUAL = (
    "SELECT r.x, s.b FROM r [RANGE 10 SECONDS] JOIN s [RANGE 5 SECONDS] ON r.x = s.a AND r.y < s.b"
)
EITHER = (
    "SELECT r.x, s.b FROM r [RANGE 10 SECONDS] JOIN s [RANGE 5 SECONDS] "
    "ON r.x = s.a OR r.y BETWEEN s.b - 1 AND s.b + 1"
)
COUNTED = "SELECT r.x, s.b FROM r [ROWS 40] JOIN s [ROWS 20] ON r.x = s.a"


def loop_of(
    sql: str,
    folder: Path,
    batch_rows: int,
    rows: int,
    method: str = "auto",
    routing: str = "round-robin",
    instances: int = 2,
    rate: int = 1000,
    domain: int = 10_000,
    index: int | None = None,
) -> tuple[Loop, MemorySink]:
    script = read_script(STREAMS.format(rows=rows, rate=rate, domain=domain) + sql)
    node = single(bind(script, streams_of(script)))
    plan = lower(node, choices=Choices(JoinOptions(method=method, routing=routing)))
    if index is not None:
        plan = indexed(plan, index)
    sink = MemorySink()
    options = RunOptions(instances=instances, batch_rows=batch_rows)
    return prepare(plan, Place("none"), {None: sink}, options, str(folder)), sink


def indexed(plan: Plan, index: int) -> Plan:
    """The plan with another of the intervals as its index, as other first rows may have it."""
    (subquery,) = plan.subqueries
    join = subquery.operator
    assert isinstance(join, StreamJoin)
    spec = replace(join.spec, index=index)
    return replace(plan, subqueries=(replace(subquery, operator=replace(join, spec=spec)),))


@pytest.mark.parametrize("batch_rows", [2_500, 30_000])
def test_state_is_little_more_than_its_live_tuples(batch_rows: int, tmp_path: Path) -> None:
    loop, _ = loop_of(BANDS, tmp_path, batch_rows, 40_000, rate=2_000)
    held = live = 0
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        if loop.manifest.finished:
            continue
        for side, range_us in zip(SIDES, (10_000_000, 5_000_000)):
            for segment in loop.manifest.operators[f"join/{side}"]:
                rows = read_segment(loop.store, segment)
                needed = ints(rows, "ts") >= loop.manifest.frontier_us - range_us
                held += segment.bytes
                live += rows.filter(needed).combine_chunks().nbytes
    loop.close()
    assert live > 1_000_000
    assert held <= 1.3 * live


WAYS = [
    ("auto", "round-robin", 2),
    ("scan", "round-robin", 3),
    ("auto", "key", 2),
    ("scan", "key", 1),
    ("auto", "round-robin", 1),
]


@pytest.mark.parametrize("first", range(len(WAYS)))
def test_a_run_goes_on_with_another_method_and_another_routing(first: int, tmp_path: Path) -> None:
    """Stored tuples were arranged and dealt for the run before."""
    whole, expected = loop_of(EQUAL, tmp_path / "whole", 4_000, 8_000, domain=300)
    whole.run()
    assert expected.table().num_rows > 1_000
    parts: list[pa.Table] = []
    for turn in range(4):
        method, routing, instances = WAYS[(first + turn) % len(WAYS)]
        loop, sink = loop_of(
            EQUAL, tmp_path / "parts", 4_000, 8_000, method, routing, instances, domain=300
        )
        before = loop.manifest.batch
        loop.step()
        loop.close()
        parts += [sink.batches[b].rows for b in sorted(sink.batches) if b > before]
    assert pa.concat_tables(parts).equals(expected.table())


def test_a_run_goes_on_with_another_index(tmp_path: Path) -> None:
    """The order of stored tuples is that of the index; another one does not find them in it."""
    sizes = {"rows": 4_000, "rate": 1_000, "domain": 400}
    whole, expected = loop_of(BANDS, tmp_path / "whole", 8_000, **sizes, index=0)
    whole.run()
    assert expected.table().num_rows > 1_000
    parts: list[pa.Table] = []
    for index in (0, 1, 0, 1):
        loop, sink = loop_of(BANDS, tmp_path / "parts", 2_000, **sizes, index=index)
        before = loop.manifest.batch
        loop.step()
        loop.close()
        parts += [sink.batches[b].rows for b in sorted(sink.batches) if b > before]
    assert pa.concat_tables(parts).equals(expected.table())


def test_a_run_goes_on_with_a_union_of_indexes_and_without(tmp_path: Path) -> None:
    whole, expected = loop_of(EITHER, tmp_path / "whole", 40_000, 8_000, domain=3_000)
    whole.run()
    assert expected.table().num_rows > 1_000
    parts: list[pa.Table] = []
    for method, instances in (("auto", 2), ("scan", 3), ("auto", 1), ("auto", 3)):
        loop, sink = loop_of(
            EITHER, tmp_path / "parts", 4_000, 8_000, method, "round-robin", instances, domain=3_000
        )
        join = loop.plan.subqueries[0].operator
        assert isinstance(join, StreamJoin)
        assert join.spec.method == ("union" if method == "auto" else "scan")
        before = loop.manifest.batch
        loop.step()
        loop.close()
        parts += [sink.batches[b].rows for b in sorted(sink.batches) if b > before]
    assert pa.concat_tables(parts).equals(expected.table())


@pytest.mark.parametrize("then", [("auto", "key"), ("scan", "round-robin")])
def test_state_of_a_run_before_is_compacted_apart(then: tuple[str, str], tmp_path: Path) -> None:
    """What was arranged or dealt otherwise must not get into one segment with what came since."""
    query = EQUAL.replace("10 SECONDS", "20 SECONDS").replace("5 SECONDS", "20 SECONDS")
    sizes = {"rows": 3_000, "domain": 300, "rate": 400}
    whole, expected = loop_of(query, tmp_path / "whole", 10_000, **sizes)
    whole.run()
    assert expected.table().num_rows > 1_000
    parts: list[pa.Table] = []
    rewritten = 0
    for (method, routing), until in ((("auto", "round-robin"), 9), (then, 10**9)):
        loop, sink = loop_of(
            query, tmp_path / "parts", 250, method=method, routing=routing, **sizes
        )
        before = loop.manifest.batch
        while loop.manifest.batch < until and not loop.manifest.finished:
            loop.step()
            compacted(loop)
            rewritten += sum("compact" in s.name for s in loop.manifest.segments())
        loop.close()
        parts += [sink.batches[b].rows for b in sorted(sink.batches) if b > before]
    assert rewritten > 5
    assert pa.concat_tables(parts).equals(expected.table())


@pytest.mark.parametrize("method", ["auto", pytest.param("scan", marks=pytest.mark.long)])
def test_segments_of_former_owners_are_compacted_into_the_same_output(
    method: str, tmp_path: Path
) -> None:
    loop, sink = loop_of(EQUAL, tmp_path / "many", 200, 3_000, method, domain=300, rate=400)
    whole, expected = loop_of(EQUAL, tmp_path / "one", 50_000, 3_000, method, domain=300, rate=400)
    whole.run()
    rewritten = 0
    while not loop.manifest.finished:
        if loop.manifest.batch % 11 == 10:
            loop.controls.ask(Request(Scale(1 + loop.manifest.batch * 5 % 4)))
        loop.step()
        compacted(loop)
        rewritten += sum("compact" in s.name for s in loop.manifest.segments())
    loop.close()
    assert rewritten > 5
    assert sink.table().equals(expected.table())


@pytest.mark.parametrize(("batch_rows", "rows"), [(3, 100), (37, 400), (1_000, 400)])
def test_windows_of_tuples_keep_as_many_as_they_count(
    batch_rows: int, rows: int, tmp_path: Path
) -> None:
    whole, expected = loop_of(COUNTED, tmp_path / "a", 10_000, rows, domain=20)
    whole.run()
    loop, sink = loop_of(COUNTED, tmp_path / "b", batch_rows, rows, domain=20)
    most = [0, 0]
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        counts = [sum(s.rows for s in loop.manifest.operators[f"join/{n}"]) for n in SIDES]
        most = [max(a, b) for a, b in zip(most, counts)]
    loop.close()
    assert sink.table().equals(expected.table())
    assert most[0] <= 150
    assert most[1] <= 75


def test_another_query_in_the_place_of_a_deleted_checkpoint_sees_its_own_values(
    tmp_path: Path,
) -> None:
    """What is kept of a segment in memory is of one query, also where the file is the same."""
    bands = (
        "FROM r [RANGE 10 SECONDS] JOIN s [RANGE 5 SECONDS] ON r.x BETWEEN s.a - 10 AND s.a + 10"
    )
    queries = [
        f"SELECT r.x, r.y, s.a, s.b {bands} AND r.y BETWEEN s.b - 500 AND s.b + 500",
        f"SELECT r.x, r.y, s.a, s.b {bands} AND r.x + r.y BETWEEN s.b - 500 AND s.b + 500",
    ]
    found = []
    for place in (tmp_path / "same", tmp_path / "same", tmp_path / "fresh"):
        sql = queries[min(len(found), 1)]
        shutil.rmtree(tmp_path / "same", ignore_errors=True)
        loop, sink = loop_of(sql, place, 16_000, 24_000)
        join = loop.plan.subqueries[0].operator
        assert isinstance(join, StreamJoin)
        assert join.spec.index == 0
        loop.run()
        found.append(sink.table())
    assert found[1].num_rows > 100
    assert found[1].equals(found[2])
