"""Whole queries, batch by batch: frontiers through operators, and one commit for all of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.driver.scene import SCHEMA, loop_of, memory, plan_of, rows_of, table
from tidegate.batch import BatchId
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.execute.local import LocalRunner
from tidegate.plan.lowering.lower import lower
from tidegate.query.node.node import StreamDef
from tidegate.sink.batch_output import HeldParts
from tidegate.sink.memory import MemorySink
from tidegate.sink.receipt import Part, Receipt
from tidegate.source.memory import MemorySource
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.store import Store

SILENT = """
CREATE STREAM never AS SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k HAVING n > 99;
CREATE STREAM both AS SELECT k, n FROM never UNION ALL SELECT k, v FROM s;
SELECT COUNT(*) AS n FROM both [RANGE 10 SECONDS];
"""
CHAIN = """
CREATE STREAM seconds AS SELECT k, SUM(v) AS v FROM s [RANGE 1 SECOND] GROUP BY k;
CREATE STREAM pairs AS
SELECT a.k, a.v + b.v AS v FROM seconds AS a [RANGE 1 SECOND] JOIN seconds AS b [RANGE 0 SECONDS]
ON a.k = b.k AND a.window_end < b.window_end;
SELECT COUNT(*) AS n, MAX(v) AS v FROM pairs [RANGE 4 SECONDS];
"""
TWO = """
INSERT INTO small SELECT k, SUM(v) AS v FROM s [RANGE 1 SECOND] GROUP BY k HAVING v < 10;
INSERT INTO large SELECT k, MAX(v) AS v FROM s [RANGE 1 SECOND] GROUP BY k HAVING v >= 10;
"""


def test_an_edge_without_rows_moves_the_frontier_of_the_next(tmp_path: Path) -> None:
    sink, source = MemorySink(), memory((1, "a", 1), (5, "b", 2))
    loop = loop_of(plan_of(SILENT), [source], tmp_path, sink)
    loop.step()
    assert rows_of(sink) == []
    source.append(table((12, "a", 3)))
    loop.step()
    assert rows_of(sink) == [(0, 10, 2)], "the window ends with the frontier, not with a tuple"
    loop.close()


def test_a_window_at_the_end_of_a_chain_waits_for_the_frontier_and_no_longer(
    tmp_path: Path,
) -> None:
    """Each batch puts out exactly the windows that end at or before its frontier."""
    sink, source = MemorySink(), memory(*((i / 2, "a", i) for i in range(8)))
    loop = loop_of(plan_of(CHAIN), [source], tmp_path, sink)
    loop.step()
    assert loop.manifest.frontier_us == 3_500_000
    assert rows_of(sink) == []
    source.append(table((3.9, "a", 1)))
    loop.step()
    assert rows_of(sink) == []
    source.append(table((4, "a", 1)))
    loop.step()
    # Sums of seconds are 1, 5, 9 and 14: three pairs of neighbours.
    assert rows_of(sink) == [(0, 4, 3, 23)]
    source.end()
    loop.step()
    assert rows_of(sink) == [(0, 4, 3, 23), (4, 8, 1, 15)]
    loop.close()


def outputs(folder: Path, sinks: dict[str | None, MemorySink], source: MemorySource) -> Loop:
    plan = lower(bind(read_script(TWO), {"s": StreamDef("s", (), "ts", 0, None, SCHEMA)}))
    options = RunOptions(buckets=8, instances=2, batch_rows=3)
    return Loop(
        plan,
        [Connection(0, source)],
        Store.open(folder),
        sinks,
        LocalRunner(),
        options,
    )


def test_a_batch_is_all_outputs_or_none(tmp_path: Path) -> None:
    """A sink that cannot take its rows keeps the others from getting theirs."""

    class NoSpace(HeldParts):
        def write(self, part: Part, rows: pa.Table) -> Receipt:
            raise OSError("no space left")

    class Full(MemorySink):
        def begin(self, batch: BatchId) -> HeldParts:
            return NoSpace() if batch == 2 else super().begin(batch)

    rows = [(i / 2, "ab"[i % 2], 3 * i) for i in range(12)]
    sinks: dict[str | None, MemorySink] = {"small": MemorySink(), "large": Full()}
    with pytest.raises(OSError, match="no space left"):
        outputs(tmp_path, sinks, memory(*rows, end=True)).run()
    assert {name: sorted(s.batches) for name, s in sinks.items()} == {
        "small": [0, 1],
        "large": [],  # the third batch is the first with rows for it
    }
    again: dict[str | None, MemorySink] = {"small": MemorySink(), "large": MemorySink()}
    outputs(tmp_path, again, memory(*rows, end=True)).run()
    for name, wanted in (("small", [0, 3, 6, 9]), ("large", list(range(12, 34, 3)))):
        found = rows_of(sinks[name]) + rows_of(again[name])
        assert [v for *_, v in found] == wanted, name


def test_late_tuples_of_a_stream_that_two_operators_read_are_told_once(tmp_path: Path) -> None:
    sinks: dict[str | None, MemorySink] = {"small": MemorySink(), "large": MemorySink()}
    rows = [(1, "a", 1), (5, "a", 2), (2, "late", 3), (None, "timeless", 4), (6, "a", 50)]
    loop = outputs(tmp_path, sinks, memory(*rows, end=True))
    summary = loop.run()
    assert summary.counters["rows_late"] == 1
    assert summary.counters["rows_rejected"] == 1
    late = [o.late for o in sinks["small"].batches.values() if o.late]
    assert [t["k"].to_pylist() for each in late for t in each.values()] == [["late"]]
    assert not any(o.late for o in sinks["large"].batches.values())
