"""Deletions: after publishing, beside the batches, in order, and told where they fail."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from pyarrow.fs import _MockFileSystem

from tests.driver.scene import COUNTS, compacted, drain, loop_of, memory, plan_of, table
from tests.state.faulty import Steps, faulty
from tests.state.mapping import mappings
from tidegate.batch import BatchId
from tidegate.driver.checkpoint.checkpoint import MOST_PENDING, Retirement
from tidegate.driver.loop import Loop
from tidegate.errors import StateError
from tidegate.sink.memory import MemorySink
from tidegate.sink.receipt import Receipt
from tidegate.source.memory import MemorySource
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

FEW = 8
"""Segments that were made before the batches that are counted, and deleted among them."""


def loop_and_source(
    sink: MemorySink | None = None, place: str | None = None
) -> tuple[Loop, MemorySource]:
    source = memory()
    where = (_MockFileSystem(), "checkpoint") if place is None else place
    return loop_of(plan_of(COUNTS), [source], where, sink, instances=1), source


def step(loop: Loop, source: MemorySource, second: int) -> None:
    source.append(table((second, "a", 1)))
    assert loop.step() is not None


class Watching(MemorySink):
    """Notes which manifests there are when a batch is published."""

    def __init__(self) -> None:
        super().__init__()
        self.store: Store | None = None
        self.seen: dict[int, list[int]] = {}

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        assert self.store is not None
        self.seen[batch] = self.store.numbers()
        super().publish(batch, receipts)


def test_a_batch_is_published_before_anything_is_deleted_for_it() -> None:
    sink = Watching()
    loop, source = loop_and_source(sink)
    sink.store = loop.store
    for batch in range(5):
        step(loop, source, 10 * batch)  # closes a window, which is published
        loop.pipeline.checkpoint.retirement.wait()
    assert sink.seen[4] == [2, 3, 4]
    assert loop.store.numbers() == [3, 4]
    loop.close()


class Held:
    """Deletions of a store that wait to be let go."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.threads: dict[str, str] = {}
        self.names: list[str] = []
        delete = store.delete

        def held(name: str) -> bool:
            assert self.go.wait(60)
            self.threads[name] = threading.current_thread().name
            self.names.append(name)
            return delete(name)

        monkeypatch.setattr(store, "delete", held)


def test_batches_go_on_while_files_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, source = loop_and_source()
    held = Held(loop.store, monkeypatch)
    for second in range(MOST_PENDING):
        step(loop, source, second)
    assert loop.store.numbers() == list(range(MOST_PENDING))
    held.go.set()
    source.end()
    drain(loop)
    loop.close()
    assert loop.store.numbers() == [MOST_PENDING - 1, MOST_PENDING]
    manifests = [name for name in held.names if name.startswith("manifest/")]
    assert all(held.threads[name].startswith("tidegate-retire") for name in manifests)
    assert manifests == sorted(manifests)
    assert held.names[0] == manifests[0]
    listed = {s.path for m in loop.store.kept() for s in m.segments()}
    assert {e.name for e in loop.store.files.list("segment")} == listed


def test_a_bounded_number_of_batches_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open((_MockFileSystem(), "ckpt"))
    store.create({})
    held = Held(store, monkeypatch)
    retirement = Retirement(store)
    manifests = [Manifest(b, mappings(0), b) for b in range(3 * MOST_PENDING)]
    for manifest in manifests:
        store.publish(manifest)
    for number, (previous, current) in enumerate(pairwise(manifests)):
        if number == MOST_PENDING:
            assert held.names == []
            held.go.set()  # else the next would wait for ever
        retirement.retire(previous, current)
        assert len(retirement._pending) <= MOST_PENDING
        assert len(held.names) >= number - MOST_PENDING
    retirement.close()
    assert store.numbers() == [m.batch for m in manifests[-2:]]


def refuse(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let deletions fail from now on, until what is returned is called."""
    delete = store.files.delete

    def denied(name: str) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store.files, "delete", denied)
    return lambda: monkeypatch.setattr(store.files, "delete", delete)


def test_a_deletion_that_fails_is_told_by_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, source = loop_and_source(place=str(tmp_path))
    for second in range(2):
        step(loop, source, second)
    loop.pipeline.checkpoint.retirement.wait()
    allow = refuse(loop.store, monkeypatch)
    step(loop, source, 2)
    tried(loop)
    source.append(table((3, "a", 1)))
    with pytest.raises(StateError, match=r"00000000\.json: must be deletable; got Permission"):
        loop.step()
    assert loop.manifest.batch == 2
    allow()
    assert loop.step() is not None  # told once; the state was whole all the time
    loop.close()
    again, _ = loop_and_source(place=str(tmp_path))
    assert [m.batch for m in again.store.kept()] == [2, 3]
    again.close()


def test_a_deletion_that_fails_after_the_last_batch_is_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, source = loop_and_source(place=str(tmp_path))
    for second in range(2):
        step(loop, source, second)
    refuse(loop.store, monkeypatch)
    source.append(table((2, "a", 1)))
    source.end()
    ended: list[str] = []
    loop.on_close(lambda: ended.append("let go"))
    with pytest.raises(StateError, match="Give the right to delete it, and restart"):
        loop.run()
    assert loop.manifest.finished
    assert ended == ["let go"]
    assert Store.open(tmp_path).latest() == loop.manifest


def test_the_first_error_is_the_one_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(MemorySink):
        def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
            if batch == 3:
                held.go.set()  # a deletion fails as well, and is met when all is let go
                raise ConnectionError("the database is away")
            super().publish(batch, receipts)

    loop, source = loop_and_source(Broken(), str(tmp_path))
    held = Held(loop.store, monkeypatch)
    refuse(loop.store, monkeypatch)
    for batch in range(3):
        step(loop, source, 10 * batch)
    source.append(table((30, "a", 1)))
    with pytest.raises(ConnectionError, match="the database is away"):
        loop.run()
    assert held.names[0] == "manifest/00000000.json"


def tried(loop: Loop) -> None:
    """Until the deletion has been tried, and without hearing how it ended."""
    for future in loop.pipeline.checkpoint.retirement._pending:
        future.exception()


def test_a_batch_costs_as_many_changes_to_files_as_ever() -> None:
    steps, source = Steps(), memory()
    place = (faulty(_MockFileSystem(), steps), "checkpoint")
    loop = loop_of(plan_of(COUNTS), [source], place, instances=1)
    costs = []
    for second in range(60):
        before = Counter(steps.kinds)
        step(loop, source, second)
        compacted(loop)
        costs.append(steps.kinds - before)
    loop.close()
    rewrites = sum(cost["create"] - 2 for cost in costs[20:])
    assert all(
        2 <= cost["create"] <= 3 for cost in costs[20:]
    )  # a segment, the manifest, a rewrite
    assert all(cost["move"] == cost["create"] for cost in costs[20:])
    assert sum(cost["delete"] for cost in costs[20:]) <= 40 * 2 + rewrites + FEW
    assert {kind for cost in costs[20:] for kind in cost} == {
        *("create", "write", "move", "info", "delete", "list")
    }
    assert all(cost["list"] == 1 for cost in costs[20:])  # of the manifests, after the commit
