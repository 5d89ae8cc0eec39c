"""What of a batch has reached the disk before the next step counts on it: files, and names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from tests.crash.scene import SCENES, write_inputs
from tests.driver.durable import DurableDisk
from tidegate.driver.options import RunOptions
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.address import Address
from tidegate.sink.folder.files import FileSink
from tidegate.storage import disk
from tidegate.testing import DiskChange


class Expected:
    """Called ahead of every change of a run; says what must be on the disk by then."""

    def __init__(self, checkpoint: Path, out: Path) -> None:
        self.checkpoint, self.out = checkpoint, out
        self.seen: Counter[str] = Counter()
        self.committed: str | None = None

    def __call__(self, change: DiskChange, disk: DurableDisk) -> None:
        kind = self._kind(change)
        if kind is not None:
            self.seen[kind] += 1
            getattr(self, f"_{kind}")(change, disk)

    def _kind(self, change: DiskChange) -> str | None:
        """What a change means for the run; None where nothing counts on what was before."""
        path, target = Path(change.path), Path(change.target)
        if change.kind in ("replace", "link"):
            if target.parent == self.checkpoint / "manifest":
                return "commit"
            if target.name.startswith("batch="):
                return "publish"
            return None  # what it is part of counts with the commit
        if change.kind == "unlink" and path.parent == self.checkpoint / "manifest":
            return None if path.name.endswith(".tmp") else "retire"
        return None

    def _commit(self, change: DiskChange, disk: DurableDisk) -> None:
        """All that the manifest counts on outlives it: segments, and what waits to be published.

        So do its own bytes: else it may be empty after a crash.
        """
        assert change.path not in disk.unsynced, change
        assert self._lost(disk, self.checkpoint, self.out) == []
        self.committed = change.target

    def _publish(self, change: DiskChange, disk: DurableDisk) -> None:
        """A batch is shown when its manifest is certain: else it would be run again."""
        assert self.committed is not None
        assert self._lost(disk, self.checkpoint) == []

    def _retire(self, change: DiskChange, disk: DurableDisk) -> None:
        """A manifest goes when the newer one is certain, and its batch is in place."""
        lost = self._lost(disk, self.checkpoint / "manifest", self.out)
        assert [p for p in lost if "_staging" not in p] == []

    @staticmethod
    def _lost(disk: DurableDisk, *below: Path) -> list[str]:
        """But for ledgers and the journal: nothing counts on them."""
        kept = ("/_ledger", "/checkpoint/journal")
        return [path for path in disk.lost(*below) if not any(part in path for part in kept)]


def test_what_counts_has_reached_the_disk(tmp_path: Path) -> None:
    """Several outputs with side outputs, joins, windows of tuples, a process, and switches."""
    scene, inputs = SCENES["several"], write_inputs(tmp_path / "inputs")
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    expected = Expected(checkpoint, out)
    watched = DurableDisk(expected)
    outputs = scene.outputs(inputs)
    address = Address.parse(str(out), "--out")
    options = RunOptions(instances=2, buckets=16, batch_rows=scene.batch_rows * 3, switches={1: 3})
    with disk.using(watched):
        loop = prepare(
            plan_for(outputs, Place("none")),
            Place("none"),
            {o.name: FileSink.at(address, o.name) for o in outputs},
            options,
            str(checkpoint),
        )
        loop.run()
    batches = loop.manifest.batch + 1
    assert batches >= 4
    assert expected.seen["commit"] == batches
    assert expected.seen["publish"] >= 3 * batches
    assert expected.seen["retire"] >= batches - 3
    assert Expected._lost(watched, checkpoint, out) == []
    parts = [*out.glob("*/batch=*/part-*.parquet")]
    assert len(parts) >= 3 * batches
    assert loop.manifest.counters["rows_out"] == sum(pq.read_metadata(p).num_rows for p in parts)
