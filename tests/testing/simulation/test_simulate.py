"""`simulate` finds what is wrong with a sink of one's own, and passes one that is right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.batch import BatchId, from_bytes, to_bytes
from tidegate.sink.protocol import Keep, Opening
from tidegate.sink.receipt import Part, Receipt
from tidegate.storage import disk
from tidegate.testing import SimulationError, simulate

START = datetime(2024, 1, 1, tzinfo=UTC)


def query(session: tg.Session) -> tg.Stream:
    rows = [{"at": START + timedelta(seconds=7 * i), "key": i % 3, "v": i} for i in range(60)]
    source = tg.MemorySource(rows, time="at")
    source.end()
    stream = session.stream(source, time="at", name="rows")
    return stream.window("1 minute").group_by("key").agg(n=tg.count(), v=tg.sum("v"))


@dataclass
class Table:
    """What a database would hold: rows by batch."""

    batches: dict[int, list[dict[str, Any]]]

    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in sorted(self.batches) for row in self.batches[batch]]


class Kept:
    """Puts a batch into the table when it is published, from what it has kept until then."""

    parallel = False
    side_outputs = False
    uri = None

    def __init__(self, table: Table) -> None:
        self.table = table
        self.keep: Keep | None = None
        self.batch = BatchId(-1)

    def open(self, opening: Opening) -> None:
        self.keep = opening.keep

    def begin(self, batch: BatchId) -> Kept:
        self.batch = batch
        return self

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        assert self.keep is not None
        self.keep.write(self.batch, "rows", to_bytes(rows))
        return Receipt("rows", rows.num_rows)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        assert self.keep is not None
        kept = self.keep.read(batch, "rows")
        if kept is not None:
            self.table.batches[batch] = from_bytes(kept).to_pylist()
        elif batch not in self.table.batches:
            raise tg.SinkError("table", "needs the rows of its batch", "none kept")

    def close(self) -> None:
        """Nothing is held open."""


class Hasty(Kept):
    """Shows rows when it is given them, after those that are there."""

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        self.table.batches.setdefault(0, []).extend(rows.to_pylist())
        return Receipt("rows", rows.num_rows)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """It has done so already."""


class Forgetful(Kept):
    """Holds the rows in memory until they are published."""

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        self.rows = rows
        return Receipt("rows", rows.num_rows)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        self.table.batches[batch] = self.rows.to_pylist() if hasattr(self, "rows") else []


def judged(sink: Any, seeds: int = 25) -> int:
    return simulate(
        query,
        place=lambda: Table({}),
        sink=sink,
        read=Table.rows,
        seeds=range(seeds),
        batch_rows=15,
    )


def test_a_sink_that_is_right_passes() -> None:
    assert judged(Kept) >= 35


def test_a_sink_that_publishes_in_write_is_found() -> None:
    with pytest.raises(SimulationError, match=r"seed \d+: driver \d: row \d+ must be") as found:
        judged(Hasty)
    assert 1 <= len(found.value.faults) <= 3
    again = found.value.seed
    with pytest.raises(SimulationError) as once_more:
        simulate(
            query,
            place=lambda: Table({}),
            sink=Hasty,
            read=Table.rows,
            seeds=[again],
            batch_rows=15,
        )
    assert str(once_more.value) == str(found.value), "a seed gives one course"


def test_a_sink_that_holds_what_was_committed_in_memory_is_found() -> None:
    with pytest.raises(SimulationError, match=r"must be|rows"):
        judged(Forgetful)


class OnDisk(Kept):
    """A file of JSON for each batch, moved into place when it is published."""

    sync = True

    def __init__(self, folder: str) -> None:
        super().__init__(Table({}))
        self.folder = folder

    def open(self, opening: Opening) -> None:
        for folder in disk.make_folders(self.folder):
            disk.current().sync_folder(folder.rpartition("/")[0] or "/")

    def begin(self, batch: BatchId) -> OnDisk:
        self.batch = batch
        disk.unlink_if_there(self.path(batch, aside=True))
        return self

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        with disk.current().create(self.path(self.batch, aside=True)) as file:
            for row in rows.to_pylist():
                file.write(json.dumps(row, default=str).encode() + b"\n")
            if self.sync:
                disk.current().sync(file)
        disk.current().sync_folder(self.folder)
        return Receipt("rows", rows.num_rows)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if disk.exists(self.path(batch, aside=True)):
            disk.current().replace(self.path(batch, aside=True), self.path(batch))
            disk.current().sync_folder(self.folder)

    def path(self, batch: int, aside: bool = False) -> str:
        return f"{self.folder}/{'.' if aside else ''}{batch:08d}"


class Unsynced(OnDisk):
    sync = False


def lines(folder: str) -> list[dict[str, Any]]:
    names = disk.current().names(folder) if disk.is_folder(folder) else []
    found = [disk.read(f"{folder}/{name}") for name in sorted(names) if name[0] != "."]
    return [timed(json.loads(line)) for data in found for line in data.splitlines()]


def timed(row: dict[str, Any]) -> dict[str, Any]:
    return {k: datetime.fromisoformat(v) if k.startswith("window") else v for k, v in row.items()}


def test_a_sink_on_the_disk_is_right_when_it_syncs_and_found_when_it_does_not() -> None:
    def run(sink: type[OnDisk]) -> int:
        # What fails on its disk is its own to put into words, and not the point here.
        return simulate(
            query,
            place=lambda: "/results",
            sink=sink,
            read=lines,
            seeds=range(30),
            batch_rows=15,
            kinds=("Kill", "PowerLoss", "Task"),
        )

    assert run(OnDisk) > 50
    with pytest.raises(SimulationError, match="PowerLoss"):
        run(Unsynced)


class Slip(tg.Process):
    """Counts, but forgets in a crash: the count is of the class, not of the object."""

    output: ClassVar = {"n": "bigint"}
    seen: ClassVar[int] = 0

    def on_tuple(self, tuple: Any, keys: Any) -> Any:
        type(self).seen += 1
        yield {"n": type(self).seen}


def slips(session: tg.Session) -> tg.Stream:
    rows = [{"at": START + timedelta(seconds=7 * i), "key": i % 3} for i in range(60)]
    source = tg.MemorySource(rows, time="at")
    source.end()
    Slip.seen = 0
    return session.stream(source, time="at", name="rows").process(Slip, keys="key")


def test_a_process_class_that_keeps_state_elsewhere_is_found() -> None:
    with pytest.raises(SimulationError):
        simulate(
            slips,
            place=lambda: Table({}),
            sink=Kept,
            read=Table.rows,
            seeds=range(20),
            batch_rows=15,
        )
