"""What sources bring to each batch, as a policy sees it: arrivals by source, sides, what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg
from tests.driver.scene import loop_of, memory, plan_of, table
from tidegate import expr, left, right
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.model.observation import Observation
from tidegate.model.operation import Lookback, Operation
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.query.output import Output
from tidegate.source.generator import open_generator
from tidegate.testing import ManualClock

WITHIN = (left.x >= right.a - 10) & (left.x <= right.a + 10)
SCAN = Choices(JoinOptions(method="scan"))


def join_loop(clock: ManualClock, folder: Path, rows: int = 1_000) -> Loop:
    """Two sources of r with 20 and 30 tuples a second, one of s with 100."""
    session = tg.Session(master="none")
    streams = [session.stream(f"generator:{name}?rows=1", time="ts") for name in "rs"]
    pairs = streams[0].where(expr("x <> 5")).join(streams[1], within="10 seconds", on=WITHIN)
    uris = [(0, "r?pace=20"), (0, "r?pace=30&seed=1"), (1, "s?pace=100")]
    sources = [
        Connection(stream, open_generator(f"generator:{uri}&start=1970-01-01", "", "ts", clock))
        for stream, uri in uris
    ]
    plan = lower((Output(None, pairs.node),), choices=SCAN)
    return loop_of(plan, sources, folder, None, clock, batch_rows=rows)


def seen(loop: Loop) -> Observation:
    assert loop.step() is not None
    (found,) = loop.books.load.observed
    return found


def test_arrivals_are_those_since_the_batch_before_by_source_and_side(tmp_path: Path) -> None:
    clock = ManualClock()
    loop = join_loop(clock, tmp_path, rows=100)
    first = seen(loop)
    assert [load.arrived for load in first.inputs] == [None] * 3, "nobody knows since when"
    clock.advance(1)
    second = seen(loop)
    assert [(load.stream, load.side, load.arrived) for load in second.inputs] == [
        ("stream0", 0, 20),
        ("stream0", 0, 30),
        ("stream1", 1, 100),
    ]
    assert len({load.source for load in second.inputs}) == 3
    assert sum(load.tuples for load in second.inputs) == 100, "what was taken is less"
    assert second.backlog == 50
    clock.advance(2)
    third = seen(loop)
    assert [load.arrived for load in third.inputs] == [40, 60, 200]
    assert third.period_s == 2
    low, high = third.inputs[2].span_us or (0, 0)
    assert 0 < low < high < 3e6
    loop.close()


def test_what_the_operator_is_and_what_reached_it_is_told(tmp_path: Path) -> None:
    clock = ManualClock()
    loop = join_loop(clock, tmp_path)
    seen(loop)
    clock.advance(1)
    found = seen(loop)
    window = Lookback(seconds=10.0)
    assert found.operation == Operation("join", "scan", (window, window), (0, 1), everywhere=True)
    assert found.taken == sum(found.sides)
    assert found.sides[1] == pytest.approx(100, abs=5), "all but those that are not ready"
    assert found.event_s == pytest.approx(1.0, abs=0.1)
    assert sum(load.compared for load in found.instances) > 0
    assert found.others_s == 0.0
    loop.close()


def test_rows_of_other_subqueries_are_inputs_without_a_source(tmp_path: Path) -> None:
    source = memory(*((t, "ab"[t % 2], t) for t in range(20)))
    sums = "SELECT k, SUM(v) AS v FROM s [RANGE 1 SECOND] GROUP BY k"
    sql = f"SELECT k, MAX(v) AS v FROM ({sums}) [ROWS 2] GROUP BY k"
    loop = loop_of(plan_of(sql), [source], tmp_path)
    loop.step()
    source.append(table(*((t, "ab"[t % 2], t) for t in range(20, 30))))
    loop.step()
    inner, outer = loop.books.load.observed
    assert [(one.stream, one.tuples, one.arrived) for one in inner.inputs] == [("s", 10, 10)]
    assert [(one.source, one.tuples, one.arrived) for one in outer.inputs] == [(None, 10, 10)]
    assert outer.inputs[0].stream == inner.subquery
    assert inner.operation == Operation("aggregate", range_s=1.0, slide_s=1.0, by_tuple=0.0), (
        "map tasks fold what it gets"
    )
    assert outer.operation == Operation("aggregate")
    loop.close()


def test_of_sources_that_are_not_live_nobody_says_what_arrived(tmp_path: Path) -> None:
    loop = loop_of(plan_of("SELECT k FROM s"), [memory((1, "a", 1), end=True)], tmp_path)
    (load,) = seen(loop).inputs
    assert (load.tuples, load.arrived) == (1, None)
    loop.close()


def test_windows_of_tuples_are_told_too() -> None:
    sql = "SELECT a.v AS x FROM s AS a [ROWS 5] JOIN s AS b [ROWS 7] ON a.k = b.k"
    operation = plan_of(sql).subqueries[0].operator.operation
    assert operation.windows == (Lookback(rows=5), Lookback(rows=7))
    assert operation.method == "hash"
    assert not operation.scans
