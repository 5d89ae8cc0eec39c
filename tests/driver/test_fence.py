"""A driver that was paused while another took its checkpoint over, where no lock is between."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import _MockFileSystem

from tests.driver.scene import COUNTS, drain, loop_of, memory, plan_of, rows_of
from tidegate.batch import BatchId
from tidegate.driver.loop import Loop
from tidegate.errors import CheckpointError, FencedError
from tidegate.sink.folder.files import FileSink
from tidegate.sink.memory import MemorySink
from tidegate.sink.receipt import Receipt
from tidegate.state.files import RemoteFiles
from tidegate.state.inspect import inspect
from tidegate.state.lock import Lock
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.storage.durable import Due

ROWS = [(second, key, second) for second in range(60) for key in "abc"]
BATCHES = 9
STEPS = [
    "before gate",
    "after gate",
    "after operate",
    "before commit",
    "after commit",
    "after publish",
]


class Published(MemorySink):
    """Notes which batches were published, by a name for their run."""

    def __init__(self, log: list[tuple[str, int]], name: str) -> None:
        super().__init__()
        self.log = log
        self.name = name

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        self.log.append((self.name, int(batch)))
        super().publish(batch, receipts)


def reference() -> list[tuple[Any, ...]]:
    sink = MemorySink()
    place = (_MockFileSystem(), "checkpoint")
    loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], place, sink).run()
    return rows_of(sink)


@pytest.mark.parametrize("rest", [1, BATCHES], ids=["by a batch", "to the end"])
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_was_paused_publishes_nothing_that_is_not_committed(
    step: str, rest: int
) -> None:
    """It is paused at a step of its third batch, while another goes on from the second or third.

    The other cuts batches of another size. Where it goes on to the end, the number of the manifest
    that the first wants to write has been taken, retired and is free again.
    """
    place = (_MockFileSystem(), "checkpoint")
    log: list[tuple[str, int]] = []
    zombie_sink, sink = Published(log, "zombie"), Published(log, "other")
    others: list[Loop] = []

    def pause(reached: str, batch: int) -> None:
        if (reached, batch) != (step, 2):
            return
        source = memory(*ROWS, end=True)
        other = loop_of(plan_of(COUNTS), [source], place, sink, batch_rows=13)
        others.append(other)
        for _ in range(rest):
            other.step()

    source = memory(*ROWS, end=True)
    # Large enough that each of its batches has a window to publish.
    zombie = loop_of(
        plan_of(COUNTS), [source], place, zombie_sink, observer=pause, batch_rows=40, instances=1
    )
    with pytest.raises(FencedError) as caught:
        zombie.run()
    (other,) = others
    assert "another run that took it over: owner 1, host " in str(caught.value)
    assert "since" in str(caught.value)
    drain(other)
    other.close()
    assert other.manifest.finished

    committed = 2 if step in ("after commit", "after publish") else 1
    assert [b for name, b in log if name == "zombie"] == list(range(committed + 1))
    assert next(b for name, b in log if name == "other") == committed  # once more, at the start
    assert rows_of(zombie_sink) + rows_of(sink) == reference()
    facts = inspect(Store.open(place), verify=True)
    assert facts["verified"]["problems"] == []
    assert facts["owner"]["number"] == 1


@pytest.mark.parametrize("step", STEPS[:4])
def test_what_fails_because_another_took_over_is_told_as_that(step: str, tmp_path: Path) -> None:
    """The other run has removed the staged files of the first, which seemed to have no disk."""
    place = (_MockFileSystem(), "checkpoint")

    def pause(reached: str, batch: int) -> None:
        if (reached, batch) == (step, 2):
            other = FileSink(str(tmp_path))
            loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], place, other).run()

    sink = FileSink(str(tmp_path))
    source = memory(*ROWS, end=True)
    paused = loop_of(plan_of(COUNTS), [source], place, sink, observer=pause, batch_rows=40)
    with pytest.raises(FencedError, match="another run that took it over: owner 1"):
        paused.run()


def test_no_file_is_written_by_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where both cut the same batches, so that only the owner tells their files apart."""
    place = (_MockFileSystem(), "checkpoint")
    written: dict[str, set[str]] = {"zombie": set(), "other": set()}
    who = "zombie"
    create = RemoteFiles.create

    def noted(files: RemoteFiles, name: str) -> Any:
        written[who].add(name)
        return create(files, name)

    def pause(reached: str, batch: int) -> None:
        nonlocal who
        if (reached, batch) == ("after gate", 2):
            who = "other"
            other = loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], place, batch_rows=20)
            other.run()
            who = "zombie"

    monkeypatch.setattr(RemoteFiles, "create", noted)
    source = memory(*ROWS, end=True)
    zombie = loop_of(plan_of(COUNTS), [source], place, observer=pause, batch_rows=20)
    with pytest.raises(FencedError):
        zombie.run()
    batches = [{name.split("/")[-1][:8] for name in names} for names in written.values()]
    assert "00000002" in batches[0] & batches[1]
    assert written["zombie"] & written["other"] == set()


def test_what_a_paused_driver_deletes_is_not_of_the_new_one() -> None:
    """It has begun, and is paused before it deletes what a crash left: files of the other stay."""
    place = (_MockFileSystem(), "checkpoint")
    loop_of(plan_of(COUNTS), [memory(*ROWS[:30])], place).step()
    zombie = Store.open(place)
    newest = zombie.latest()
    assert newest is not None
    zombie.enter(newest, {})
    sink = MemorySink()
    other = loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], place, sink, batch_rows=40)
    assert other.step() is not None
    zombie.clean()
    drain(other)
    other.close()
    assert inspect(Store.open(place), verify=True)["verified"]["problems"] == []


def test_of_two_first_starts_at_the_same_time_one_begins(tmp_path: Path) -> None:
    """The second finds the checkpoint made between its look and its lock."""
    first: list[Loop] = []

    class Quick(MemorySink):
        def open(self, opening: Any) -> None:
            if not first:
                first.append(loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path))
                first[0].step()
                first[0].close()
            super().open(opening)

    with pytest.raises(CheckpointError, match="another run that has begun with it just now"):
        loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path, Quick())
    assert first[0].manifest.batch == 0
    assert Store.open(tmp_path).latest() == first[0].manifest


def test_the_newest_manifest_is_read_when_the_checkpoint_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was still at work when the next one looked commits before that has the lock."""
    source = memory(*ROWS)
    running = loop_of(plan_of(COUNTS), [source], tmp_path, batch_rows=20)
    running.step()
    take = Lock.take

    def late(lock: Lock) -> None:
        if running.manifest.batch == 0:
            running.step()
            running.close()
        take(lock)

    monkeypatch.setattr(Lock, "take", late)
    again = loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path)
    assert again.manifest.batch == 1
    again.close()


@pytest.mark.parametrize("remote", [False, True])
def test_two_queries_of_one_process_on_a_checkpoint(
    tmp_path: Path, remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a cell of a notebook is run twice."""
    if remote:  # as that of an object store
        monkeypatch.setattr("tidegate.state.files.LocalFiles.local", False)
    one = loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path)
    one.step()
    with pytest.raises(CheckpointError, match=r"this very process .*query\.stop\(\)"):
        loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path)
    source = memory(*ROWS)
    one.close()
    again = loop_of(plan_of(COUNTS), [source], tmp_path)
    assert again.manifest.batch == 0
    again.close()


def test_two_runs_of_one_process_that_enter_in_the_same_second_are_two_owners() -> None:
    """Both find the checkpoint without a manifest, and only one of them can put the first."""
    place = (_MockFileSystem(), "checkpoint")
    Store.open(place).create({})
    first, stores = Manifest(-1, {}, 0), [Store.open(place), Store.open(place)]
    put = stores[1].files.put_new

    def overtaken(name: str, data: bytes, due: Due | None = None) -> bool:
        """Between the look of the second and its put comes the first."""
        stores[1].files.put_new = put
        assert stores[0].enter(first, {}).owner == 1
        return put(name, data, due)

    stores[1].files.put_new = overtaken
    assert stores[1].enter(first, {}).owner == 2


def test_the_first_run_of_a_checkpoint_deletes_nothing_of_one_that_took_over() -> None:
    """It stands still between making the checkpoint and clearing away what crashes left."""
    place = (_MockFileSystem(), "checkpoint")
    sink, stores, clean = MemorySink(), list[Store](), Store.clean

    def stand_still(store: Store) -> None:
        stores.append(store)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "clean", stand_still)
        first = loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], place, MemorySink())

    def go_on(reached: str, batch: int) -> None:
        if (reached, batch) == ("before commit", 0):
            clean(stores[0])

    source = memory(*ROWS, end=True)
    other = loop_of(plan_of(COUNTS), [source], place, sink, observer=go_on, batch_rows=40)
    other.run()
    assert rows_of(sink) == reference()
    with pytest.raises(FencedError):
        first.run()
