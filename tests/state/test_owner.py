"""Who owns a checkpoint: numbers that only one run can get, and names that no other run uses."""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.state.mapping import mappings
from tidegate.errors import FencedError, StateError
from tidegate.state.leftover import CleanedFiles
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.storage import disk
from tidegate.storage.durable import Due

FIRST = Manifest(-1, mappings(0), 0)
HOLDER = {"host": "here", "process": 7, "since": "now"}


def commit(store: Store, previous: Manifest, *files: str) -> Manifest:
    """The next batch of a run, with files of its own."""
    for name in files:
        store.write(name, b"rows")
    manifest = replace(previous, batch=previous.batch + 1, files=files)
    store.publish(manifest)
    store.retire(previous, manifest)
    return manifest


def again(store: Store) -> Store:
    return store.handle().open()


class TestPutNew:
    def test_a_name_is_given_once(self, store: Store) -> None:
        assert store.files.put_new("manifest/x", b"one")
        assert not store.files.put_new("manifest/x", b"two")
        assert store.read("manifest/x") == b"one"
        assert [e.name for e in store.files.list("manifest")] == ["manifest/x"]

    def test_folders_are_made(self, store: Store) -> None:
        assert store.files.put_new("owner/deep/x", b"one")
        assert store.read("owner/deep/x") == b"one"

    def test_of_several_at_the_same_time_one_succeeds(self, tmp_path: Path) -> None:
        store = Store.open(tmp_path)
        start = threading.Barrier(8)
        won: list[int] = []

        def put(number: int) -> None:
            start.wait(60)
            if store.files.put_new("meta.json", b"%d" % number):
                won.append(number)

        threads = [threading.Thread(target=put, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(won) == 1
        assert store.read("meta.json") == b"%d" % won[0]
        assert os.listdir(tmp_path) == ["meta.json"]

    def test_a_file_system_whose_files_have_one_name(self, tmp_path: Path) -> None:
        class Fat(disk.SystemDisk):
            def link(self, source: disk.Path, target: disk.Path) -> None:
                raise PermissionError(1, "Operation not permitted")

        store = Store.open(tmp_path)
        with disk.using(Fat()):
            assert store.files.put_new("x", b"one")
            assert not store.files.put_new("x", b"two")
        assert store.read("x") == b"one"
        assert os.listdir(tmp_path) == ["x"]

    def test_an_answer_that_was_lost(self, tmp_path: Path) -> None:
        """The link is there, and an NFS server that is asked again says that it was."""

        class Nfs(disk.SystemDisk):
            def link(self, source: disk.Path, target: disk.Path) -> None:
                super().link(source, target)
                super().link(source, target)

        store = Store.open(tmp_path)
        with disk.using(Nfs()):
            assert store.files.put_new("x", b"one")
            assert not store.files.put_new("x", b"one")


class TestEnter:
    def test_each_run_gets_the_next_number(self, store: Store) -> None:
        owners = []
        for _ in range(3):
            store = again(store)
            manifest = store.enter(FIRST, HOLDER)
            owners.append(manifest.owner)
            assert store.owner == manifest.owner
            assert store.clean().temporary == 0
        assert owners == [1, 2, 3]
        assert store.latest() is None
        assert store.numbers() == [2]

    def test_the_state_stays_and_its_predecessor_with_it(self, store: Store) -> None:
        manifest = FIRST
        for batch in range(4):
            manifest = commit(store, manifest, f"gate/{batch}.arrow")
        other = again(store)
        entry = other.enter(FIRST, HOLDER)
        assert entry == replace(manifest, owner=1, holder=entry.holder)
        assert {**entry.holder, **HOLDER} == entry.holder
        assert other.clean() == replace(CleanedFiles(), manifests=1, bytes=len(manifest.to_json()))
        assert [m.batch for m in other.kept()] == [2, 3]
        assert [e.name for e in other.files.list("gate")] == ["gate/2.arrow", "gate/3.arrow"]
        commit(other, entry, "gate/4.arrow")
        assert [m.batch for m in other.kept()] == [3, 4]
        assert [e.name for e in other.files.list("gate")] == ["gate/3.arrow", "gate/4.arrow"]
        assert other.clean() == CleanedFiles()

    def test_the_run_before_cannot_commit(self, store: Store) -> None:
        manifest = commit(store, FIRST)
        other = again(store)
        other.enter(FIRST, HOLDER)
        before = other.latest()
        with pytest.raises(FencedError):
            store.check_owner()
        with pytest.raises(FencedError) as caught:
            commit(store, manifest)
        assert "another run that took it over: owner 1, host here, process 7, since now" in str(
            caught.value
        )
        other.check_owner()
        assert other.latest() == before

    @pytest.mark.parametrize("batches", range(1, 6))
    def test_nor_when_the_number_is_free_again(self, store: Store, batches: int) -> None:
        """What it leaves under it is older than the newest, and the next start removes it."""
        manifest = commit(store, FIRST)
        other = again(store)
        newest = other.enter(FIRST, HOLDER)
        other.clean()
        for _ in range(batches):
            newest = commit(other, newest)
        with pytest.raises(FencedError):
            commit(store, manifest)
        assert other.latest() == newest
        newest = commit(other, newest)
        third = again(store)
        third.enter(FIRST, HOLDER)
        third.clean()
        assert [m.batch for m in third.kept()] == [newest.batch - 1, newest.batch]
        assert len(third.numbers()) == 2

    def test_a_run_that_is_at_work_goes_on_while_another_enters(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its commits come between what the other reads, and what that writes; one is the last."""
        manifest = commit(store, FIRST, "gate/0.arrow")
        other = again(store)
        listed = other.listed
        left = 3

        def busy() -> object:
            nonlocal manifest, left
            found = listed()
            if left:
                left -= 1
                manifest = commit(store, manifest, f"gate/{manifest.batch + 1}.arrow")
            return found

        monkeypatch.setattr(other, "listed", busy)
        entry = other.enter(FIRST, HOLDER)
        assert (entry.batch, entry.owner) == (3, 1)
        with pytest.raises(FencedError):
            commit(store, manifest)

    def test_a_run_that_is_refused_leaves_it_to_the_one_before(self, store: Store) -> None:
        manifest = commit(store, FIRST, "gate/0.arrow")
        other = again(store)
        other.enter(FIRST, HOLDER)
        other.withdraw()
        manifest = commit(store, manifest, "gate/1.arrow")
        assert store.latest() == manifest

    def test_a_finished_state_has_no_further_owner(self, store: Store) -> None:
        manifest = replace(FIRST, batch=0, finished=True)
        store.publish(manifest)
        other = again(store)
        assert other.enter(FIRST, HOLDER) == manifest
        assert (other.clean(), other.numbers()) == (CleanedFiles(), [0])

    def test_damage_is_told_before_anything_changes(self, store: Store) -> None:
        commit(store, FIRST, "gate/0.arrow")
        store.delete("gate/0.arrow")
        before = store.numbers()
        with pytest.raises(StateError, match=r"gate/0\.arrow: must be there"):
            again(store).enter(FIRST, HOLDER)
        assert store.numbers() == before

    def test_what_was_there_before_is_cleaned_and_nothing_that_came_since(
        self, store: Store
    ) -> None:
        manifest = commit(store, FIRST)
        store.write("segment/00000001.0-x.arrow", b"left")
        other, third = again(store), again(store)
        other.enter(FIRST, HOLDER)
        entry = third.enter(FIRST, HOLDER)
        third.clean()
        commit(third, entry, "gate/1.arrow")
        other.clean()  # it was paused, and does not know
        assert [e.name for e in store.files.list("gate")] == ["gate/1.arrow"]
        assert store.files.list("segment") == []
        with pytest.raises(FencedError):
            commit(store, manifest)

    def test_going_on_from_the_state_before(self, store: Store) -> None:
        """Where the newest batch has to run again, its new manifest comes after all others."""
        manifest = FIRST
        for batch in range(3):
            manifest = commit(store, manifest, f"gate/{batch}.arrow")
        store = again(store)
        store.enter(FIRST, HOLDER)
        before, newest = store.kept()
        state = store.resumed(before)
        assert (store.owner, state.batch) == (2, 1)
        replayed = commit(store, state, "gate/2.2.arrow")
        assert replayed.batch == newest.batch
        assert store.latest() == replayed
        assert replayed.number == newest.number + 1
        with pytest.raises(FencedError):
            commit(again(store), newest)


def test_others_cannot_look_into_a_checkpoint(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = Store.open(tmp_path / "runs" / "checkpoint")
        store.create({})
        store.write("spool/x", b"")
    finally:
        os.umask(before)

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    root = tmp_path / "runs" / "checkpoint"
    assert mode(root.parent) == 0o755
    assert mode(root) == 0o700
    assert {mode(path) for path in root.iterdir() if path.is_dir()} == {0o700}


def test_two_that_enter_at_once_and_are_called_alike_are_two(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later one took the manifest of the other for its own, and both had the same number."""
    one, two = again(store), again(store)
    put = two._run._put

    def overtaken(manifest: Manifest) -> bool:
        monkeypatch.setattr(two._run, "_put", put)
        one.enter(FIRST, HOLDER)
        return put(manifest)

    monkeypatch.setattr(two._run, "_put", overtaken)
    assert two.enter(FIRST, HOLDER).owner == one.owner + 1 == 2
    with pytest.raises(FencedError, match="host here, process 7, since now"):
        commit(one, replace(FIRST, owner=1))


def test_the_first_run_leaves_alone_what_one_that_took_over_writes(tmp_path: Path) -> None:
    """It was paused when it had made the checkpoint and not cleaned it yet."""
    first = Store.open(tmp_path)
    (tmp_path / ".meta.json.1-1-abc.tmp").write_text("of one that was killed")
    assert first.begin({})
    other = Store.open(tmp_path)
    other.enter(FIRST, HOLDER)
    other.write("segment/00000000.1-x.arrow", b"not committed yet")
    assert first.clean() == CleanedFiles(temporary=1, bytes=22)
    assert other.files.exists("segment/00000000.1-x.arrow")


def test_one_that_stood_still_while_another_went_on_enters_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number it was about to take was taken and let go again: it is not what it seems."""
    store = Store.open(tmp_path)
    store.create({"q": 1})
    commit(store, store.enter(FIRST, HOLDER), "gate/a.arrow")
    other, late = again(store), again(store)
    put, gone_on = late._run._put, []

    def after_the_other(manifest: Manifest, due: Due | None = None) -> bool:
        if not gone_on:
            newest = other.enter(FIRST, HOLDER)
            for number in range(4):
                newest = commit(other, newest, f"gate/b{number}.arrow")
            gone_on.append(newest)
        return put(manifest, due)

    monkeypatch.setattr(late._run, "_put", after_the_other)
    entry = late.enter(FIRST, HOLDER)
    (newest,) = gone_on
    assert (entry.batch, entry.owner, entry.files) == (newest.batch, newest.owner + 1, newest.files)
    late.clean()
    assert late.read("gate/b3.arrow") == b"rows"
    with pytest.raises(FencedError):
        commit(other, newest)
    commit(late, entry)
