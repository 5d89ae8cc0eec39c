"""States of earlier batches: there for as long as asked, whole, and gone with what they needed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow.fs import _MockFileSystem

from tests.state.faulty import Crash, Steps, faulty
from tests.state.mapping import mappings
from tests.state.rows import rows
from tidegate.errors import CheckpointError
from tidegate.state.archive import archive
from tidegate.state.archive.file import read_archive
from tidegate.state.archive.past import PastStates, batches_text
from tidegate.state.manifest import Manifest
from tidegate.state.name import manifest_name
from tidegate.state.segment.segment import Segment, write_segment
from tidegate.state.store import FOLDERS, Store

KEEP_US, PACKED = 10, 3


class Run:
    """Batches a microsecond apart, whose segments live for a while that is drawn."""

    def __init__(self, store: Store, seed: int = 0, keep_us: int | None = KEEP_US) -> None:
        self.store, self.keep_us = store, keep_us
        self.chance = random.Random(f"archive {seed}")
        if keep_us is not None:
            store.keep(keep_us, PACKED)
        self.newest = store.latest() or Manifest(-1, mappings(0, 1), -1)
        if self.newest.batch >= 0:
            self.newest = store.enter(self.newest, {})
        store.clean()

    def batch(self, ahead_us: int = 0) -> Manifest:
        before, current = self.published(ahead_us)
        self.store.retire(before, current)
        return current

    def published(self, ahead_us: int = 0) -> tuple[Manifest, Manifest]:
        """A batch whose earlier states are still to be retired, and the one before it."""
        number = self.newest.batch + 1
        name = f"{number:08d}.{self.newest.owner}-0"
        held = [s for s in self.newest.operators.get("a", ()) if self.chance.random() < 0.7]
        made = write_segment(self.store, name, rows([(0, number, 1)]), "pane", 0)
        current = replace(
            self.newest,
            batch=number,
            frontier_us=number * 100,
            operators={"a": (*held, made)},
            at_us=1_000 + number + ahead_us if self.keep_us is not None else 0,
        )
        self.store.publish(current)
        before, self.newest = self.newest, current
        return before, current


def check(store: Store, made: list[Manifest], keep_us: int) -> None:
    """All that is to be kept is there whole, and less than two files of the archive beyond it."""
    newest = made[-1]
    past = PastStates(store)
    there = past.batches
    wanted = [m.batch for m in made if newest.at_us - m.at_us <= keep_us]
    assert set(wanted) <= set(there)
    assert len(there) <= keep_us + 3 + 2 * PACKED + 2
    assert there == list(range(there[0], newest.batch + 1))
    for manifest in past.course(there[0], newest.batch):
        was = made[manifest.batch]
        assert replace(manifest, owner=0, holder={}) == replace(was, owner=0, holder={})
        store.check_present(manifest)


def held(store: Store) -> set[str]:
    return {e.name for folder in FOLDERS for e in store.files.list(folder)}


def test_states_are_kept_for_as_long_as_asked(store: Store) -> None:
    run = Run(store)
    made = []
    for _ in range(40):
        made.append(run.batch())
        check(store, made, KEEP_US)
    needed = {name for m in PastStates(store).course(made[-1].batch, 39) for name in m.names()}
    past = PastStates(store)
    for manifest in past.course(past.batches[0], 39):
        needed |= manifest.names()
    assert {name for name in held(store) if name.startswith("segment/")} == needed
    assert store.unreferenced(store.kept()) == []


@pytest.mark.parametrize("seed", range(6))
def test_runs_that_start_and_die_keep_the_same(seed: int, tmp_path: Path) -> None:
    """Also what a run leaves over that no manifest names, and runs that keep nothing."""
    chance = random.Random(f"starts {seed}")
    place, made = str(tmp_path / "c"), list[Manifest]()
    Store.open(place).create({"q": 1})
    for start in range(8):
        run = Run(Store.open(place), seed * 100 + start)
        for _ in range(chance.randrange(8)):
            made.append(run.batch())
            check(run.store, made, KEEP_US)
        spare = f"{run.newest.batch + 1:08d}.{run.newest.owner}-9"
        write_segment(run.store, spare, rows([(0, 1, 1)]), "pane", 0)
    store = Run(Store.open(place), seed).store
    assert store.unreferenced(store.kept()) == []
    check(store, made, KEEP_US)
    Run(Store.open(place), seed, keep_us=None)
    kept = store.kept()
    assert len(store.numbers()) == 2
    assert {n for n in held(store) if n.startswith(("segment/", "archive/"))} == {
        name for manifest in kept for name in manifest.names()
    }


def test_states_before_a_run_that_kept_nothing_go_with_it(tmp_path: Path) -> None:
    """Else a file of the archive would have batches that are not there."""
    place, made = str(tmp_path / "c"), list[Manifest]()
    Store.open(place).create({"q": 1})
    for keep_us in (KEEP_US, None, KEEP_US):
        run = Run(Store.open(place), keep_us=keep_us)
        made += [run.batch() for _ in range(1 if keep_us is None else 2 * PACKED)]
    past = PastStates(run.store)
    assert past.batches == list(range(past.batches[0], made[-1].batch + 1))
    for manifest in past.course(past.batches[0], made[-1].batch):
        run.store.check_present(manifest)


def test_a_clock_that_was_ahead_keeps_nothing_for_longer(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "c"))
    store.create({"q": 1})
    run = Run(store)
    for number in range(40):
        run.batch(ahead_us=10**9 if 6 <= number < 12 else 0)
    assert PastStates(store).batches[0] >= 40 - (KEEP_US + 3 + 2 * PACKED)


@pytest.mark.parametrize("deleted", range(1, 12))
def test_a_start_that_dies_while_it_cleans_leaves_whole_states(
    deleted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that keeps nothing: it deletes the archive and all that only the archive needs."""
    place, left = str(tmp_path / "c"), [deleted]
    Store.open(place).create({"q": 1})
    run = Run(Store.open(place))
    for _ in range(12):
        run.batch()
    delete = Store.delete

    def dying(store: Store, name: str) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise Crash
        return delete(store, name)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "delete", dying)
        with pytest.raises(Crash):
            Run(Store.open(place), keep_us=None)
    store = Run(Store.open(place)).store
    past = PastStates(store)
    for batch in past.batches:
        store.check_present(past.of(batch))


def _crash_everywhere(prepare: Callable[[], tuple[Store, Callable[[Steps], None]]]) -> int:
    for step in itertools.count():
        store, control = prepare()
        run = Run(store)
        made = [run.batch() for _ in range(22)]
        control(Steps(step))
        try:
            for _ in range(PACKED + 1):
                made.append(run.batch())
        except Crash:
            control(Steps())
        else:
            return step
        after = Run(store.handle().open())
        while len(made) <= after.newest.batch:
            made.append(after.newest)
        assert after.store.unreferenced(after.store.kept()) == []
        check(after.store, made, KEEP_US)
        for _ in range(PACKED + 1):
            made.append(after.batch())
            check(after.store, made, KEEP_US)
    raise AssertionError("every step was tried")


def test_a_run_killed_at_any_step_keeps_what_is_to_be_kept() -> None:
    def prepare() -> tuple[Store, Callable[[Steps], None]]:
        fs = faulty(_MockFileSystem(), Steps())
        store = Store.open((fs, "ckpt"))
        store.create({"q": 1})

        def control(steps: Steps) -> None:
            fs.handler.steps = steps

        return store, control

    assert _crash_everywhere(prepare) > 15


def test_a_damaged_file_of_the_archive_lets_its_batches_go(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    store.create({"q": 1})
    run = Run(store)
    for _ in range(12):
        run.batch()
    (first, *_) = sorted(store.files.names("archive"))
    spare = read_archive(store.files, first).spare
    (tmp_path / first).write_bytes(b"{}")
    again = Run(Store.open(str(tmp_path)))
    there = PastStates(again.store)
    assert there.batches == list(range(3, 12))
    assert spare
    assert not any(again.store.has(name) for name in (first, *spare))


@pytest.mark.parametrize("damage", ["cut", "gone"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_batches_before_a_damaged_file_of_the_archive_stay_whole(
    damage: str, number: int, seed: int, tmp_path: Path
) -> None:
    """Whether another file of the archive comes after it, or none."""
    store = Store.open(str(tmp_path))
    store.create({"q": 1})
    run = Run(store, seed, keep_us=1_000)
    for _ in range(12):
        run.batch()
    name = sorted(store.files.names("archive"))[number]
    (tmp_path / name).write_bytes(b"{}") if damage == "cut" else (tmp_path / name).unlink()
    again = Store.open(str(tmp_path))
    Run(again, keep_us=1_000)
    past = PastStates(again)
    assert past.batches == [b for b in range(12) if b not in range(3 * number, 3 * number + 3)]
    for batch in past.batches:
        again.check_present(past.of(batch))


@pytest.mark.parametrize("needed", [1, 2])
def test_a_manifest_that_is_brought_back_without_its_files_is_let_go(
    needed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power may undo that a manifest was deleted, and not that its files were."""
    store = Store.open(str(tmp_path))
    store.create({"q": 1})
    run = Run(store, keep_us=1_000)
    made = []
    for number in range(4):
        monkeypatch.setattr(run.chance, "random", lambda gone=number >= needed: float(gone))
        made.append(run.batch())
    (segment,) = {s.path for s in made[0].operators["a"]}
    assert [segment in m.names() for m in made] == [number < needed for number in range(4)]
    (tmp_path / segment).unlink()
    again = Store.open(str(tmp_path))
    Run(again, keep_us=1_000)
    past = PastStates(again)
    assert past.batches == list(range(needed, 4))
    for batch in past.batches:
        again.check_present(past.of(batch))


def test_states_that_another_run_archives_while_one_starts_stay_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken over from, and had looked before that whether it was."""
    store = Store.open(str(tmp_path))
    store.create({"q": 1})
    run = Run(store, keep_us=1_000)
    for _ in range(4):
        run.batch()
    last = run.published()
    monkeypatch.setattr(store, "check_owner", lambda: None)
    read, archives = archive.sound_manifests, []

    def meanwhile(of: Store, numbers: Iterable[int]) -> list[Manifest]:
        if of is not store and not archives:
            store.retire(*last)
            archives.extend(store.files.names("archive"))
        return read(of, numbers)

    monkeypatch.setattr(archive, "sound_manifests", meanwhile)
    again = Store.open(str(tmp_path))
    Run(again, keep_us=1_000)
    assert archives
    past = PastStates(again)
    assert past.batches == list(range(5))
    for batch in past.batches:
        again.check_present(past.of(batch))


def test_a_state_that_is_not_there_is_refused_with_those_that_are(store: Store) -> None:
    run = Run(store)
    for _ in range(40):
        run.batch()
    past = PastStates(store)
    first = past.batches[0]
    assert 20 < first < 30
    assert past.repeatable == past.batches[1:]
    with pytest.raises(CheckpointError, match=rf"after batch 4; got {first}-39\. Run the query"):
        past.of(4)
    assert past.newest_until(3_100).batch == 31
    assert past.newest_until(3_150).batch == 31
    assert past.newest_until(10**6).batch == 39
    assert [past.newest_until(b * 100).batch for b in past.batches] == past.batches
    with pytest.raises(CheckpointError, match=f"got the oldest after batch {first}, of 1970"):
        past.newest_until(first * 100 - 1)


def test_without_keeping_the_newest_batch_can_run_again(store: Store) -> None:
    run = Run(store, keep_us=None)
    for _ in range(5):
        run.batch()
    assert PastStates(store).batches == [3, 4]
    assert PastStates(store).repeatable == [4]
    assert store.manifest(4).at_us == 0
    assert "at_us" not in store.read(manifest_name(4)).decode()


def test_batches_are_told_in_spans() -> None:
    assert batches_text([]) == ""
    assert batches_text([4]) == "4"
    assert batches_text([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"


def test_only_what_names_say_is_a_segment(store: Store) -> None:
    """The spare files of the archive are those of its batches alone."""
    run = Run(store)
    made = [run.batch() for _ in range(8)]
    (first, *_) = sorted(store.files.names("archive"))
    file = read_archive(store.files, first)
    assert [m.batch for m in file.manifests()] == [0, 1, 2]
    later: set[Segment] = {s for m in made[3:] for s in m.segments()}
    mine: set[Segment] = {s for m in made[:3] for s in m.segments()}
    assert set(file.spare) == {s.path for s in mine - later}
