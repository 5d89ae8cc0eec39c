"""Outputs on their way to sinks: the order of calls, receipts in manifests, restarts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.driver.scene import COUNTS, loop_of, memory, plan_of
from tidegate.batch import BatchId
from tidegate.driver.outlet import Outlets, StoreKeep
from tidegate.errors import SinkError
from tidegate.execute.job import Outcome, Piece
from tidegate.sink.protocol import Opening, PartWriter
from tidegate.sink.receipt import Part, Receipt
from tidegate.state.store import Store

Call = tuple[Any, ...]


class Recording:
    """A sink that only remembers how it was called; for one that is made anew after a crash."""

    def __init__(self, calls: list[Call], parallel: bool = False, sides: bool = True) -> None:
        self.calls = calls
        self.parallel = parallel
        self.side_outputs = sides
        self.uri = None
        self.fails = False

    def open(self, opening: Opening) -> None:
        self.calls.append(("open", opening.output, opening.newest))

    def begin(self, batch: BatchId) -> PartWriter:
        self.calls.append(("begin", batch))
        self.batch = batch
        return self

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        self.calls.append(("write", part, rows.num_rows))
        return Receipt(f"{self.batch}/{part.side}{part.number}", rows.num_rows, more={"id": [7]})

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        self.calls.append(("publish", batch, [(r.name, r.rows, r.more) for r in receipts]))
        if self.fails:
            raise SinkError("sink", "is away")

    def close(self) -> None:
        self.calls.append(("close",))


ROWS = [(1, "a", 1), (12, "a", 2), (3, "late", 3), (None, "timeless", 4), (25, "a", 5)]


def test_the_calls_of_a_run_in_their_order(tmp_path: Path) -> None:
    calls: list[Call] = []
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path, Recording(calls))
    loop.run()
    id_ = {"id": [7]}
    assert calls == [
        ("open", None, None),
        ("begin", 0),
        ("write", Part(), 3),
        ("write", Part(side="late", stream="s"), 1),
        ("write", Part(side="rejected"), 1),
        ("publish", 0, [("0/0", 3, id_), ("0/late0", 1, id_), ("0/rejected0", 1, id_)]),
        ("close",),
    ]
    assert [r["name"] for r in loop.manifest.outputs[""]] == ["0/0", "0/late0", "0/rejected0"]


def test_a_sink_without_side_outputs_is_spared_them(tmp_path: Path) -> None:
    calls: list[Call] = []
    sink = Recording(calls, sides=False)
    summary = loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path, sink).run()
    assert [c for c in calls if c[0] == "write"] == [("write", Part(), 3)]
    assert summary.counters["rows_late"] == summary.counters["rows_rejected"] == 1


def test_a_restart_publishes_with_the_receipts_of_the_manifest(tmp_path: Path) -> None:
    calls: list[Call] = []
    source, failing = memory(*ROWS, end=True), Recording(calls)
    failing.fails = True
    with pytest.raises(SinkError, match="is away"):
        loop_of(plan_of(COUNTS), [source], tmp_path, failing, batch_rows=2).run()
    assert [c[0] for c in calls[-2:]] == ["publish", "close"]
    told = calls[-2]
    before = len(calls)
    loop_of(plan_of(COUNTS), [source], tmp_path, Recording(calls), batch_rows=2).run()
    newest = told[1]
    assert calls[before : before + 3] == [("open", None, newest), told, ("begin", newest + 1)]


def test_a_manifest_has_the_receipts_of_its_own_batch_only(tmp_path: Path) -> None:
    loop = loop_of(
        plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path, Recording([]), batch_rows=1
    )
    with_rows = 0
    while (report := loop.step()) is not None:
        names = [r["name"] for r in loop.manifest.outputs[""]]
        counts = (report.rows_out, report.rows_late, report.rows_rejected)
        assert bool(names) == any(counts)
        assert all(n.startswith(f"{loop.manifest.batch}/") for n in names)
        with_rows += bool(names)
    assert loop.manifest.batch + 1 > with_rows > 1
    loop.close()


def test_parts_that_tasks_wrote_are_not_written_again(tmp_path: Path) -> None:
    calls: list[Call] = []
    plan = plan_of(COUNTS)
    outlets = Outlets(plan, {None: Recording(calls, parallel=True)}, Store.open(tmp_path))
    outlets.begin(4)
    writer = outlets.for_tasks(plan.targets[0])
    assert writer is not None
    (port,) = plan.subqueries[0].ports
    piece = Piece.of(port, port.schema.empty_table())
    receipts = tuple(writer.write(Part(n), port.schema.empty_table()) for n in (0, 1))
    before = len(calls)
    outcomes = [Outcome(0, (piece,), receipts=receipts), Outcome(1, (piece,), receipts=())]
    staged = outlets.stage([outcomes])
    assert calls[before:] == []
    assert [r["name"] for r in staged.receipts[""]] == ["4/0", "4/1"]


def test_tasks_get_no_writer_of_a_sink_that_is_not_for_them(tmp_path: Path) -> None:
    plan = plan_of(COUNTS)
    outlets = Outlets(plan, {None: Recording([])}, Store.open(tmp_path))
    outlets.begin(0)
    assert outlets.for_tasks(plan.targets[0]) is None
    assert outlets.for_tasks(None) is None


def test_what_sinks_keep_outlives_a_start_while_its_batch_is_the_newest(tmp_path: Path) -> None:
    loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path, Recording([])).run()
    store = Store.open(tmp_path)
    keep = StoreKeep(store)
    for batch in (0, 1):
        keep.write(BatchId(batch), "mine.bin", b"kept")
    keep.write(BatchId(0), "mine.bin", b"kept anew")
    assert store.clean().staged == 1
    assert keep.read(BatchId(0), "mine.bin") == b"kept anew"
    assert keep.read(BatchId(1), "mine.bin") is None
    keep.delete(BatchId(0), "mine.bin")
    keep.delete(BatchId(0), "mine.bin")
    assert keep.read(BatchId(0), "mine.bin") is None
