"""The history of mappings: short in manifests, whole with its files, whatever was killed."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import _MockFileSystem

from tests.driver.scene import COUNTS, drain, loop_of, memory, plan_of, rows_of, table
from tests.state.faulty import Crash, Steps, faulty
from tests.state.mapping import mappings
from tidegate.elastic.request import Request, Scale
from tidegate.errors import StateError
from tidegate.sink.memory import MemorySink
from tidegate.state import epoch_log
from tidegate.state.epoch_log import logged, shortened
from tidegate.state.inspect import describe, inspect
from tidegate.state.leftover import CleanedFiles
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

EMPTY = Manifest(-1, mappings(0), 0)
KEPT, MOVED = 8, 4


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest with few epochs, for tests to be quick."""
    assert epoch_log.MOVED < epoch_log.KEPT <= 64
    monkeypatch.setattr(epoch_log, "KEPT", KEPT)
    monkeypatch.setattr(epoch_log, "MOVED", MOVED)


def epoch(number: int) -> dict[str, Any]:
    return {"subquery": "aggregate", "epoch": number, "batch": number, "instances": 1}


def switch(store: Store, before: Manifest) -> Manifest:
    """A batch with which an epoch begins."""
    number = before.batch + 1
    epochs = (*before.epochs, epoch(number))
    manifest = shortened(store, replace(before, batch=number, epochs=epochs))
    store.publish(manifest)
    store.retire(before, manifest)
    return manifest


def history(store: Store, manifest: Manifest) -> list[int]:
    return [e["epoch"] for e in itertools.chain(logged(store, manifest), manifest.epochs)]


def run(store: Store, switches: int) -> Manifest:
    manifest = store.latest() or EMPTY
    for _ in range(manifest.batch + 1, switches):
        manifest = switch(store, manifest)
    return manifest


def test_a_manifest_has_the_newest_and_files_have_the_others(store: Store) -> None:
    manifest = EMPTY
    for number in range(3 * KEPT):
        manifest = switch(store, manifest)
        assert len(manifest.epochs) <= KEPT
        assert history(store, manifest) == list(range(number + 1))
    files = [e.name for e in store.files.list("epoch")]
    assert files == [f"epoch/{n:08d}.0.json" for n in range(0, manifest.epochs_logged, MOVED)]
    assert store.latest() == manifest
    assert store.clean() == CleanedFiles()
    assert history(store, manifest) == list(range(3 * KEPT))


def test_a_batch_that_begins_very_many_epochs_is_short_too(store: Store) -> None:
    many = tuple(epoch(n) for n in range(3 * KEPT + 1))
    manifest = shortened(store, replace(EMPTY, epochs=many))
    assert len(manifest.epochs) <= KEPT
    assert history(store, manifest) == list(range(3 * KEPT + 1))


def test_most_batches_write_no_file_of_the_history() -> None:
    steps = Steps()
    store = Store.open((faulty(_MockFileSystem(), steps), "ckpt"))
    store.create({})
    steps.kinds.clear()
    run(store, 4 * KEPT)
    files = len(store.files.list("epoch"))
    assert steps.kinds["create"] == 4 * KEPT + files
    assert files * MOVED <= 4 * KEPT


def test_killed_at_any_step_nothing_is_missing_or_there_twice() -> None:
    """The batch that moves epochs into a file, stopped before each change to the store."""
    found = set()
    for step in itertools.count():
        fs = faulty(_MockFileSystem(), Steps())
        store = Store.open((fs, "ckpt"))
        store.create({})
        before = run(store, KEPT)
        fs.handler.steps = Steps(step)
        try:
            switch(store, before)
        except Crash:
            fs.handler.steps = Steps()
        else:
            break
        again = store.handle().open()
        latest = again.latest()
        assert latest is not None
        found.add(latest.epochs_logged)
        again.clean()
        assert again.unreferenced(again.kept()) == []
        assert history(again, latest) == list(range(latest.batch + 1))
        assert history(again, run(again, KEPT + MOVED + 3)) == list(range(KEPT + MOVED + 3))
    assert found == {0, MOVED}
    assert step >= 6


def test_what_a_crash_left_is_removed_where_the_switch_does_not_come_again(store: Store) -> None:
    before = run(store, KEPT)
    shortened(store, replace(before, epochs=(*before.epochs, epoch(KEPT))))
    assert inspect(store)["unreferenced"][0]["name"] == "epoch/00000000.0.json"
    assert store.clean().epochs == 1
    assert store.files.list("epoch") == []


@pytest.mark.parametrize("damage", ["missing", "flipped", "moved"])
def test_damage_is_found_by_who_asks_for_it_and_stops_no_run(store: Store, damage: str) -> None:
    manifest = run(store, 2 * KEPT)
    name = f"epoch/{MOVED:08d}.0.json"
    data = store.read(name)
    store.delete(name)
    if damage != "missing":
        other = store.read("epoch/00000000.0.json") if damage == "moved" else data[:-9] + b"?" * 9
        store.write(name, other)
    with pytest.raises(StateError, match=name):
        history(store, manifest)
    (problem,) = inspect(store, verify=True)["verified"]["problems"]
    assert name in problem
    store.clean()
    assert len(run(store, 2 * KEPT + 3).epochs) <= KEPT


def test_what_is_shown_of_a_long_history(store: Store) -> None:
    manifest = run(store, KEPT + 1)
    state = inspect(store)["state"]
    assert state["epochs_logged"] == MOVED
    assert state["epochs"] == list(manifest.epochs)
    lines = describe(store).splitlines()
    assert f"epochs, after {MOVED} that are in epoch/" in lines
    assert f"  epoch {MOVED}, batch {MOVED}, instances 1, subquery aggregate" in lines


def test_a_run_that_switches_again_and_again(tmp_path: Path) -> None:
    source, sink = memory(), MemorySink()
    place = (_MockFileSystem(), "checkpoint")
    loop = loop_of(plan_of(COUNTS), [source], place, sink, instances=1)
    count = KEPT + MOVED + 3
    for second in range(count):
        if second == KEPT + 2:  # a restart on the way
            loop.close()
            loop = loop_of(plan_of(COUNTS), [source], place, sink, instances=None)
        source.append(table((second, "a", 1)))
        loop.controls.ask(Request(Scale(1 + second % 2)))
        assert loop.step() is not None
        assert len(loop.manifest.epochs) <= KEPT
    source.end()
    drain(loop)
    loop.close()
    assert history(loop.store, loop.manifest)[:count] == list(range(count))
    said = loop.summary.as_dict()
    assert (said["epochs_logged"], len(said["epochs"])) == (2 * MOVED, count - 2 * MOVED)
    assert f"{2 * MOVED} earlier epochs are in the checkpoint" in loop.summary.text().splitlines()
    plain = MemorySink()
    every = memory(*((second, "a", 1) for second in range(count)), end=True)
    loop_of(plan_of(COUNTS), [every], str(tmp_path), plain).run()
    assert rows_of(sink) == rows_of(plain)
