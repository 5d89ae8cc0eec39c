"""Keys that a partitioner splits: windows in part at several instances, merged in a second step.

The partitioner here scatters tuples by nothing but their number, so every key is everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import SCHEMA, Row, loop_of, memory, rows_of, table
from tests.operate.aggregate.stream import by_hash
from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.merging import MergeWindows
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.pane.pane import (
    PART,
    AggregateSpec,
    close,
    close_partly,
    finished,
    fold,
)
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.query.definition import StreamDef
from tidegate.query.node.node import Node
from tidegate.query.output import Output, single
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Partitioner, Units
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script


@dataclass(frozen=True)
class Scattered(Partitioner):
    """Unit i of a split goes to bucket i, whatever its key."""

    name: ClassVar[str] = "scattered"
    splits_keys: ClassVar[bool] = True

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        assert units.weights is None or len(units.weights) == units.rows
        return (np.arange(units.rows) % mapping.buckets).astype(np.int32)


def node_of(sql: str) -> Node:
    stream = StreamDef("s", ("memory:s",), "ts", 0, None, SCHEMA)
    return single(bind(read_script(sql), {"s": stream}))


QUERIES = [
    "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k",
    "SELECT k, MAX(v) AS m, FIRST(v) AS f, LAST(v) AS l FROM s [RANGE 7 SECONDS] GROUP BY k "
    "HAVING MAX(v) > 2",
    "SELECT k, MEDIAN(v) AS m, COUNT(DISTINCT v) AS d FROM s [RANGE 10 SECONDS] GROUP BY k "
    "ORDER BY d DESC, k LIMIT 2",
    "SELECT COUNT(*) AS n, MIN(v) AS low FROM s [RANGE 3 SECONDS]",
    "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k) "
    "[RANGE 8 SECONDS]",
]
ROWS: list[Row] = [(t / 3, "abcd"[t * t % 4], (t * 7) % 11) for t in range(90)]


def run(
    node: Node, folder: Path, scattered: bool, batch_rows: int, switches: dict[int, int]
) -> list[Any]:
    plan = lower(node, choices=Choices(partitioner=Scattered()) if scattered else Choices())
    sink, source = MemorySink(), memory(*ROWS, end=True)
    loop_of(plan, [source], folder, sink, batch_rows=batch_rows, switches=switches).run()
    return rows_of(sink)


@pytest.mark.whole
@pytest.mark.parametrize("sql", QUERIES)
def test_split_keys_give_the_same_sequence(sql: str, tmp_path: Path) -> None:
    node = node_of(sql)
    expected = run(node, tmp_path / "hash", False, 1000, {})
    assert expected
    for number, (batch_rows, switches) in enumerate(
        [(1000, {}), (7, {2: 3, 5: 1}), (1, {9: 8, 20: 2})]
    ):
        found = run(node, tmp_path / str(number), True, batch_rows, switches)
        assert found == expected


def test_a_partitioner_that_splits_keys_makes_two_subqueries() -> None:
    node = node_of(QUERIES[2])
    plan = lower(node, choices=Choices(partitioner=Scattered()))
    assert [s.name for s in plan.subqueries] == ["aggregate", "merge"]
    first, second = (s.operator for s in plan.subqueries)
    assert isinstance(first, WindowAggregate)
    assert isinstance(second, MergeWindows)
    assert plan.subqueries[0].ports[0].limit is None
    assert plan.subqueries[1].ports[0].limit == 2, "HAVING, ORDER BY and LIMIT follow the merge"
    assert plan.fingerprint != lower(node).fingerprint
    text = explain([Output(None, node)], plan)
    assert "1 aggregate: aggregate in part over [RANGE 10 seconds] by k" in text
    assert "shuffle by scattered" in text
    assert "2 merge: merge windows by k" in text


SPEC = AggregateSpec(
    PaneWindow(10, 5),
    (("k", pa.string()),),
    (
        Function("s", "sum", ("x",), (pa.int64(),)),
        Function("n", "count"),
        Function("m", "max", ("x",), (pa.int64(),)),
        Function("d", "distinct", ("x",), (pa.int64(),)),
        Function("q", "quantile", ("x",), (pa.int64(),), (0.5,)),
        Function("f", "first", ("x",), (pa.int64(),)),
    ),
)
tuples = st.tuples(st.integers(-20, 40), st.sampled_from(["a", "b", None]), st.integers(0, 5))


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, window=PaneWindow(24, 1))])
@given(st.lists(tuples, max_size=30), st.integers(1, 5), st.integers(-10, 50), st.data())
def test_windows_in_part_are_finished_to_the_whole(
    spec: AggregateSpec,
    rows: list[tuple[int, str | None, int]],
    buckets: int,
    upto: int,
    data: st.DataObject,
) -> None:
    """Wherever the partials are, and in whatever order the parts come."""
    made = pa.table(
        {
            "ts": pa.array([r[0] for r in rows], pa.int64()),
            "src": pa.array([0] * len(rows), pa.int64()),
            "seq": pa.array(range(len(rows)), pa.int64()),
            "k": pa.array([r[1] for r in rows], pa.string()),
            "x": pa.array([r[2] for r in rows], pa.int64()),
        }
    )
    pieces = [fold(spec, made.slice(i, 4), by_hash(1)) for i in range(0, len(rows), 4)]
    whole = close(spec, _panes(pieces, 1, data), MIN_US, upto)
    parts = close_partly(spec, _panes(pieces, buckets, data), MIN_US, upto)
    assert parts.schema == spec.window_schema
    shuffled = data.draw(st.randoms(use_true_random=False)).sample(
        range(parts.num_rows), parts.num_rows
    )
    results, sizes = finished(spec, parts.take(pa.array(shuffled, pa.int64())))
    assert results.equals(whole)
    assert int(sizes.sum()) == parts.num_rows
    assert len(sizes) == whole.num_rows
    if buckets == 1:
        assert set(parts.column(PART).to_pylist()) <= {0}


def _panes(pieces: list[pa.Table], buckets: int, data: st.DataObject) -> pa.Table:
    """Partials with buckets by chance."""
    if not pieces:
        return SPEC.partial_schema.empty_table()
    panes = pa.concat_tables(pieces)
    drawn = data.draw(
        st.lists(st.integers(0, buckets - 1), min_size=panes.num_rows, max_size=panes.num_rows)
    )
    return panes.set_column(0, "bucket", pa.array(drawn, pa.int32()))


def test_the_frontier_of_all_time_closes_everything() -> None:
    rows = table((1, "a", 1), (2, "b", 2))
    made = pa.table(
        {
            "ts": rows.column("ts").cast(pa.int64()),
            "src": pa.array([0, 0]),
            "seq": pa.array([0, 1]),
            "k": rows.column("k"),
            "x": rows.column("v").cast(pa.int64()),
        }
    )
    panes = fold(SPEC, made, by_hash(2))
    parts = close_partly(SPEC, panes, MIN_US, MAX_US)
    assert finished(SPEC, parts)[0].equals(close(SPEC, panes, MIN_US, MAX_US))
