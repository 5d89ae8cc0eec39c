"""A loss of power at any step of staging and publishing: what is committed is there, or comes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.sink.output import SCHEMA, rows, stage
from tidegate.batch import BatchId
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.folder.batch_ledger import ledger_name, ledger_receipts, ledger_text
from tidegate.sink.folder.files import FileSink
from tidegate.sink.protocol import Keep, Opening
from tidegate.sink.receipt import Receipt
from tidegate.storage import disk
from tidegate.testing.simulation.world import World

BATCHES = 3
STEPS = 200
"""More than a run of so many batches has."""


def output(batch: int) -> BatchOutput:
    late = {"s": rows((1, f"late {batch}", 0.0))} if batch % 2 == 0 else {}
    rejected = pa.table({"_reason": [f"no time {batch}"]}) if batch else None
    return BatchOutput(rows((10, f"row {batch}", 1.0)), late, rejected)


def files_of(batch: int) -> dict[str, bytes]:
    """What a published batch has, by name and with a mark of its contents."""
    folder = f"batch={batch:08d}"
    found = {f"/out/{folder}/part-00000.json": f"row {batch}"}
    if output(batch).late:
        found[f"/out/_late/{folder}/s.json"] = f"late {batch}"
    if output(batch).rejected is not None:
        found[f"/out/_rejected/{folder}/rejected.json"] = f"no time {batch}"
    return {name: mark.encode() for name, mark in found.items()}


class Run:
    """Batches staged, committed and published; the commit is a list that power does not touch."""

    def __init__(self) -> None:
        self.committed: list[list[Receipt]] = []
        self.published = -1
        self.owner = 0

    def __call__(self) -> None:
        self.owner += 1
        newest = BatchId(len(self.committed) - 1) if self.committed else None
        sink = FileSink("/out", "json")
        sink.open(Opening(SCHEMA, None, newest, _NoKeep(), self.owner))
        if newest is not None:
            sink.publish(newest, self.committed[newest])
            self.published = newest
        while len(self.committed) < BATCHES:
            batch = len(self.committed)
            receipts = stage(sink, batch, output(batch))
            disk.current().status("/commit")  # a step between the two
            self.committed.append(receipts)
            sink.publish(BatchId(batch), receipts)
            self.published = batch
        sink.close()


class _NoKeep(Keep):
    """Not used by this sink."""


def live(world: World, run: Callable[[], None], until: int | None) -> int:
    """Run a process, to its end or to a step at which the power goes; how many steps it took."""
    process, future = world.begin("driver", run)
    taken = 0

    def at_step(number: int, name: str) -> None:
        nonlocal taken
        taken = number
        if number == until:
            world.power_loss()

    process.at_step = at_step
    world.schedule.run(future.done)
    if until is None:
        future.result()
    return taken


def check(world: World, run: Run) -> None:
    """All that was published is there as it was, and nothing beside it that a reader would see."""
    seen = [f for f in world.disk.files("/out") if not f.startswith("/out/_staging/")]
    expected = {n: mark for b in range(run.published + 1) for n, mark in files_of(b).items()}
    for name, mark in expected.items():
        assert name in seen, f"{name} is lost"
        assert mark in world.disk.read(name)
    shown = [n for n in seen if n.startswith("/out/batch=")]
    batches = sorted({int(n.partition("batch=")[2][:8]) for n in shown})
    assert batches == list(range(len(batches)))
    assert len(batches) <= len(run.committed)


def test_whatever_is_committed_outlives_a_loss_of_power_at_any_step() -> None:
    """Cut at each step once, and then at any step of the recovery."""
    with World("whole").entered() as world:
        world.disk.put("/commit", b"")
        steps = live(world, Run(), None)
    assert 60 < steps < STEPS
    for step in range(1, steps + 1):
        chance = random.Random(f"power {step}")
        with World(f"power {step}").entered() as world:
            world.disk.put("/commit", b"")
            run = Run()
            live(world, run, step)
            check(world, run)
            if chance.random() < 0.5:
                live(world, run, chance.randrange(1, 40))
                check(world, run)
            live(world, run, None)
            check(world, run)
            files = sorted(world.disk.files("/out"))
            assert [f for f in files if f not in ledgers(world, run)] == sorted(
                n for b in range(BATCHES) for n in files_of(b)
            )


def ledgers(world: World, run: Run) -> list[str]:
    """Those that are there: each is lost as a whole, or as it was written; the newest is."""
    found = [f for f in world.disk.files("/out") if f.startswith("/out/_ledger/")]
    for batch, receipts in enumerate(run.committed):
        name = f"/out/{ledger_name(batch)}"
        data = world.disk.read(name) if name in found else b""
        whole = data == ledger_text(batch, receipts)
        assert whole or ledger_receipts(data) is None
        assert whole or batch < len(run.committed) - 1
    return found


@pytest.mark.parametrize("place", ["/out/_staging", "/out/_staging/batch", "/out", "/out/_late"])
def test_each_sync_of_a_folder_is_needed(place: str) -> None:
    """Else the test above would prove nothing."""
    lost = 0
    for step in range(1, STEPS):
        with World(f"without {place} {step}").entered() as world:
            world.disk.put("/commit", b"")
            synced = world.disk.sync_folder

            def skip(path: str, synced: Callable[[str], None] = synced) -> None:
                path = str(path)
                is_batch = place.endswith("batch") and path.startswith(place)
                if path != place and not is_batch:
                    synced(path)

            world.disk.sync_folder = skip  # type: ignore[method-assign,assignment]
            run = Run()
            live(world, run, step)
            try:
                check(world, run)
                live(world, run, None)
            except Exception:  # as a failed assertion is
                lost += 1
                break
    assert lost, f"nothing is lost without syncing {place}"


@pytest.mark.parametrize("folder", ["/out", "/out/_late", "/out/_rejected"])
@pytest.mark.parametrize("seed", range(8))
def test_what_a_killed_run_has_moved_is_durable_after_the_next_start(
    folder: str, seed: int
) -> None:
    """It is killed between the move and the sync of its name; later batches may have no rows."""
    run, newest = Run(), BatchId(2)
    with World(f"moved {seed}").entered() as world:
        world.disk.put("/commit", b"")
        process, future = world.begin("driver", run)

        def kill(operation: str, path: str) -> None:
            moved = f"{folder}/batch={newest:08d}/" in "".join(world.disk.files(folder))
            if operation == "sync_folder" and path == folder and moved:
                world.kill(process)
                world.schedule.check()

        world.disk.fail = kill
        world.schedule.run(future.done)
        world.disk.fail = lambda operation, path: None
        assert len(run.committed) == BATCHES
        assert run.published < newest
        live(world, run, None)
        world.power_loss()
        check(world, run)
