"""The store, one suite over every kind of file system it can be opened on."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, _MockFileSystem

from tests.state.conftest import place
from tests.state.faulty import Steps, faulty
from tests.state.mapping import mappings
from tests.state.rows import rows, triples
from tidegate.errors import CheckpointError, FencedError, StateError
from tidegate.state import files as files_module
from tidegate.state.files import LocalFiles, RemoteFiles
from tidegate.state.handle import StoreHandle
from tidegate.state.leftover import CleanedFiles
from tidegate.state.manifest import Manifest
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store
from tidegate.storage.whole_file import temporary

Location = str | tuple[FileSystem, str]


def segment_of(store: Store, batch: int, value: int = 1) -> Segment:
    return write_segment(store, f"{batch:08d}-0000", rows([(0, batch, value)]), "pane", 0)


def manifest_of(batch: int, *segments: Segment, files: tuple[str, ...] = ()) -> Manifest:
    return Manifest(batch, mappings(*[0] * 8), batch, operators={"a": segments}, files=files)


def run(store: Store, upto: int) -> Manifest:
    """Batches that each live for two batches more, as windows do; the newest manifest."""
    held: list[Segment] = []
    previous = None
    for batch in range(upto + 1):
        held = [*held, segment_of(store, batch)][-3:]
        current = manifest_of(batch, *held)
        store.publish(current)
        store.retire(previous, current)
        previous = current
    assert previous is not None
    return previous


def names(store: Store) -> list[str]:
    folders = ("", "manifest", "segment", "gate", "staged")
    return [entry.name for f in folders for entry in store.files.list(f, recursive=f != "")]


class TestOpen:
    def test_opening_and_asking_changes_nothing(self, location: Location) -> None:
        store = Store.open(location)
        assert (store.meta(), store.latest(), store.clean()) == (None, None, CleanedFiles())
        assert not store.files.is_folder()

    def test_local_places_are_mapped(self, tmp_path: Path) -> None:
        for kind in ("path", "uri", "local", "subtree"):
            assert isinstance(Store.open(place(kind, tmp_path)).files, LocalFiles)
        for kind in ("memory", "memory-subtree", "python"):
            assert isinstance(Store.open(place(kind, tmp_path)).files, RemoteFiles)

    def test_a_path_object_and_a_relative_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert Store.open("x").location == Store.open(tmp_path / "x").location == f"{tmp_path}/x"

    def test_an_escaped_uri(self, tmp_path: Path) -> None:
        Store.open((tmp_path / "a b").as_uri()).create({})
        assert (tmp_path / "a b" / "meta.json").exists()

    @pytest.mark.parametrize(
        ("location", "message"),
        [
            (
                "s4://x",
                r"^checkpoint s4://x: must be a path or of a known scheme; got s4:. Did you m",
            ),
            ("htp://x", "got htp:. There are: file, s3, gs, abfs, hdfs"),
            ("s3:/b/x", "a URI of s3 must have its slashes; got s3:/b/x. Write s3://b/x"),
            ("s3:", "a URI of s3 must have its slashes; got s3:"),
            ("ab:c", r"got ab:. .* A file or folder of this name is ./ab:c"),
            ("hdfs://host:9000/x", "the file system of hdfs:// must be usable here; got "),
        ],
    )
    def test_a_scheme_that_cannot_be_used(
        self, location: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is not made a folder of that name."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(CheckpointError, match=message):
            Store.open(location)
        assert list(tmp_path.iterdir()) == []


class TestHandle:
    def test_a_handle_opens_the_same_files(self, store: Store) -> None:
        store.publish(manifest_of(0, segment_of(store, 0)))
        handle = pickle.loads(pickle.dumps(store.handle()))
        assert handle.open().latest() == store.latest()
        assert handle.open().handle() == handle

    def test_a_handle_of_a_folder_opens_in_another_process(self, tmp_path: Path) -> None:
        store = Store.open((LocalFileSystem(), str(tmp_path)))
        store.create({"q": 1})
        text = pickle.dumps(store.handle()).hex()
        code = f"import pickle; print(pickle.loads(bytes.fromhex('{text}')).open().meta())"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == "{'q': 1}"

    def test_memory_of_another_process_is_an_error(self) -> None:
        handle = StoreHandle("mock:x", token=(-1, 0, "x"))
        with pytest.raises(CheckpointError, match="in the memory of another process"):
            handle.open()

    def test_memory_that_is_gone_is_an_error(self) -> None:
        handle = Store.open((_MockFileSystem(), "x")).handle()
        with pytest.raises(CheckpointError, match="Use a folder or a URI"):
            handle.open()


class TestCreate:
    def test_meta_comes_back(self, store: Store) -> None:
        assert store.meta() == {"fingerprint": "f00d", "buckets": 8}

    def test_the_same_again_is_no_change(self, store: Store) -> None:
        before = store.read("meta.json")
        store.create({"buckets": 8, "fingerprint": "f00d"})
        assert store.read("meta.json") == before

    def test_another_query_is_refused(self, store: Store) -> None:
        with pytest.raises(CheckpointError, match="got the checkpoint of another one"):
            store.create({"fingerprint": "beef"})

    @pytest.mark.parametrize("name", ["manifest/00000000.json", "segment/x.arrow", "staged/a/b"])
    def test_files_without_meta_are_not_taken_over(self, location: Location, name: str) -> None:
        store = Store.open(location)
        store.write(name, b"precious")
        with pytest.raises(CheckpointError, match=r"without meta\.json"):
            store.create({})
        assert store.clean() == CleanedFiles()
        assert store.read(name) == b"precious"

    def test_other_files_in_the_folder_are_left_alone(self, location: Location) -> None:
        store = Store.open(location)
        store.write("notes.txt", b"mine")
        store.write(".other.tmp", b"mine too")
        store.create({})
        assert store.clean() == CleanedFiles()
        assert "notes.txt" in names(store)
        assert ".other.tmp" in names(store)

    def test_a_store_that_contradicts_itself_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It refuses to create what it does not show, as a cache before it may do for a while."""
        store = Store.open((_MockFileSystem(), "ckpt"))
        asked: list[str] = []
        monkeypatch.setattr(store.files, "put_new", lambda name, *_: bool(asked.append(name)))
        with pytest.raises(CheckpointError, match="says both that it exists and that it does not"):
            store.create({})
        assert 1 < len(asked) < 10

    def test_damaged_meta_is_named(self, store: Store) -> None:
        store.write("meta.json", store.read("meta.json").replace(b"f00d", b"f00e"))
        with pytest.raises(StateError, match=r"meta\.json: must be as it was written"):
            store.meta()

    def test_a_checkpoint_of_the_version_before_is_refused_by_name(self, store: Store) -> None:
        before = b'{"checksum":"870d6a16","layout":2,"meta":{"buckets":8,"fingerprint":"f00d"}}\n'
        store.write("meta.json", before)
        with pytest.raises(CheckpointError, match="must be of version 5; got version 2"):
            store.meta()

    def test_a_file_in_place_of_the_folder(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("")
        with pytest.raises(CheckpointError, match="got Not a directory"):
            Store.open(str(tmp_path / "x")).create({})

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        steps = Steps(0, PermissionError(13, "Permission denied"))
        with pytest.raises(CheckpointError, match="must be writable; got Permission denied"):
            Store.open((faulty(_MockFileSystem(), steps), "x")).create({})


class TestPublish:
    def test_the_highest_batch_is_the_latest(self, store: Store) -> None:
        for batch in (0, 1, 9, 10):
            store.publish(manifest_of(batch))
        assert store.latest() == manifest_of(10)
        assert store.numbers() == [0, 1, 9, 10]

    def test_batches_beyond_eight_digits(self, store: Store) -> None:
        for batch in (99_999_999, 100_000_000):
            store.publish(manifest_of(batch))
        assert store.latest() == manifest_of(100_000_000)

    def test_other_files_beside_manifests_are_ignored(self, store: Store) -> None:
        store.publish(manifest_of(3))
        store.write(temporary("manifest/00000004.json"), b"{")
        store.write("manifest/README", b"")
        assert store.latest() == manifest_of(3)

    def test_a_damaged_newest_manifest_is_never_skipped(self, store: Store) -> None:
        run(store, 3)
        name = "manifest/00000003.json"
        store.write(name, store.read(name)[:-20])
        before = names(store)
        for action in (store.latest, store.clean):
            with pytest.raises(StateError) as caught:
                action()
            assert store.files.full(name) in str(caught.value)
        assert names(store) == before

    def test_a_manifest_under_another_number_is_found(self, store: Store) -> None:
        store.write("manifest/00000007.json", manifest_of(6).to_json().encode())
        with pytest.raises(StateError, match="must be of number 7; got that of number 6"):
            store.latest()

    def test_the_same_again_is_no_change_and_another_is_refused(self, store: Store) -> None:
        store.publish(manifest_of(0))
        store.publish(manifest_of(0))
        with pytest.raises(FencedError, match="another run that took it over: owner 0"):
            store.publish(manifest_of(0, files=("gate/x.arrow",)))


class TestRetire:
    def test_two_manifests_and_their_files_are_kept(self, store: Store) -> None:
        run(store, 9)
        assert store.numbers() == [8, 9]
        kept = {f"segment/{batch:08d}-0000.arrow" for batch in (6, 7, 8, 9)}
        assert {entry.name for entry in store.files.list("segment")} == kept
        assert store.clean() == CleanedFiles()

    def test_it_goes_on_after_a_restart_with_or_without_clean(self, store: Store) -> None:
        last = run(store, 4)
        for clean in (False, True):
            store = store.handle().open()
            if clean:
                store.clean()
            current = manifest_of(last.batch + 1, segment_of(store, last.batch + 1))
            store.publish(current)
            store.retire(last, current)
            assert store.numbers() == [last.batch, current.batch]
            last = current
        kept = {segment.path for batch in (5, 6) for segment in store.manifest(batch).segments()}
        assert {entry.name for entry in store.files.list("segment")} == kept

    def test_gate_files_go_with_their_manifest(self, store: Store) -> None:
        manifests = [manifest_of(b, files=(f"gate/{b:08d}.arrow",)) for b in range(4)]
        for previous, current in zip([None, *manifests], manifests):
            store.write(current.files[0], b"run")
            store.publish(current)
            store.retire(previous, current)
        assert [e.name for e in store.files.list("gate")] == [m.files[0] for m in manifests[2:]]

    def test_a_segment_that_comes_back_is_kept(self, store: Store) -> None:
        kept = segment_of(store, 0)
        lists = [(kept,), (), (kept,)]
        previous = None
        for batch, segments in enumerate(lists):
            current = manifest_of(batch, *segments)
            store.publish(current)
            store.retire(previous, current)
            previous = current
        assert triples(read_segment(store, kept)) == [(0, 0, 1)]

    def test_the_first_state_of_a_run_may_be_unpublished(self, store: Store) -> None:
        nothing = manifest_of(-1)
        first = manifest_of(0, segment_of(store, 0))
        store.publish(first)
        assert store.retire(nothing, first) == 0
        second = manifest_of(1)
        store.publish(second)
        assert store.retire(first, second) == 0
        assert store.numbers() == [0, 1]

    def test_a_batch_costs_the_same_however_many_were_done(self) -> None:
        steps = Steps()
        store = Store.open((faulty(_MockFileSystem(), steps), "ckpt"))
        store.create({})
        held: list[Segment] = []
        previous, costs = None, []
        for batch in range(60):
            steps.kinds.clear()
            held = [*held, segment_of(store, batch)][-3:]
            current = manifest_of(batch, *held)
            store.publish(current)
            store.retire(previous, current)
            previous = current
            costs.append(dict(steps.kinds))
        assert costs[10] == costs[-1]
        assert costs[-1]["list"] == 1  # of the manifests, which are three then


class TestClean:
    def test_what_a_crash_left_goes_and_the_rest_stays(self, store: Store) -> None:
        run(store, 3)
        before = names(store)
        leftovers = [
            "segment/00000004-0000.arrow",
            "segment/c-00000003.arrow",
            "gate/00000004.arrow",
            "staged/00000004.arrow",
            "staged/00000002-rows.arrow",
            "staged/00000002/rows/part.parquet",
            temporary("segment/00000004-0001.arrow"),
            temporary("manifest/00000004.json"),
            temporary("staged/00000003.arrow"),
            temporary("meta.json"),
            "manifest/00000000.json",
        ]
        for name in leftovers:
            store.write(name, b"12345")
        kept = ["staged/00000003.arrow", "staged/00000003/rows/part.parquet"]
        for name in kept:
            store.write(name, b"output")
        assert store.clean() == CleanedFiles(
            temporary=4, segments=2, gate=1, staged=3, manifests=1, bytes=5 * len(leftovers)
        )
        assert sorted(names(store)) == sorted(before + kept)
        assert store.clean() == CleanedFiles()

    def test_before_the_first_batch_nothing_counts(self, store: Store) -> None:
        segment_of(store, 0)
        store.write("staged/00000000.arrow", b"output")
        cleaned = store.clean()
        assert (cleaned.segments, cleaned.staged) == (1, 1)
        assert names(store) == ["meta.json"]

    def test_empty_folders_of_staged_batches_go(self, tmp_path: Path) -> None:
        store = Store.open(str(tmp_path))
        store.create({})
        store.write("staged/00000000/deep/part", b"")
        store.clean()
        assert list((tmp_path / "staged").iterdir()) == []

    def test_files_that_are_not_of_a_store_stay(self, store: Store) -> None:
        store.write("segment/notes.txt", b"")
        store.write("manifest/notes.json", b"")
        assert store.clean() == CleanedFiles()

    @pytest.mark.parametrize("damage", ["missing", "short"])
    def test_a_state_that_is_not_whole_stops_before_anything_goes(
        self, store: Store, damage: str
    ) -> None:
        last = run(store, 3)
        segment_of(store, 9)
        path = last.segments()[0].path
        store.delete(path)
        if damage == "short":
            store.write(path, b"short")
        before = names(store)
        with pytest.raises(StateError, match="nothing was changed") as caught:
            store.clean()
        assert caught.value.where == store.files.full(path)
        assert names(store) == before

    def test_a_listed_gate_file_must_be_there(self, store: Store) -> None:
        store.publish(manifest_of(0, files=("gate/x.arrow",)))
        with pytest.raises(StateError, match="no such file"):
            store.clean()

    def test_a_damaged_predecessor_is_named_with_its_own_remedy(self, store: Store) -> None:
        run(store, 3)
        store.write("manifest/00000002.json", b"")
        with pytest.raises(StateError, match="delete this file and restart") as caught:
            store.clean()
        assert caught.value.where == store.files.full("manifest/00000002.json")
        store.delete("manifest/00000002.json")
        store.clean()
        assert store.numbers() == [3]


def test_object_stores_are_written_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their objects appear whole at close; a rename there would be a copy."""
    monkeypatch.setattr(files_module, "ATOMIC_ON_CLOSE", frozenset({"py::faulty"}))
    steps = Steps()
    store = Store.open((faulty(_MockFileSystem(), steps), "ckpt"))
    store.create({})
    segment = segment_of(store, 0)
    store.publish(manifest_of(0, segment))
    assert triples(read_segment(store, segment)) == [(0, 0, 1)]
    assert steps.kinds["move"] == 0
    assert steps.kinds["write"] == steps.kinds["create"] == 3


def test_a_file_system_that_does_not_rename_onto_files(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.state.faulty import FaultyHandler

    def strict(self: FaultyHandler, src: str, dest: str) -> None:
        if self.fs.get_file_info(dest).type.name == "File":
            raise OSError("destination exists")
        self.fs.move(src, dest)

    monkeypatch.setattr(FaultyHandler, "move", strict)
    store = Store.open((faulty(_MockFileSystem(), Steps()), "ckpt"))
    segment_of(store, 0)
    second = segment_of(store, 0, value=2)
    assert triples(read_segment(store, second)) == [(0, 0, 2)]
    assert names(store) == [second.path]
