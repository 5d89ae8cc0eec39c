"""The suites of the store, on an S3 server."""

from __future__ import annotations

import pickle
import threading

import pytest

from tests.s3.server import Server
from tests.state.test_owner import TestEnter as _Enter
from tests.state.test_store import TestClean as _Clean
from tests.state.test_store import TestPublish as _Publish
from tests.state.test_store import TestRetire as _Retire
from tests.state.test_store import manifest_of, segment_of
from tidegate.errors import CheckpointError, StateError
from tidegate.state.object_files import ObjectFiles
from tidegate.state.store import Store


class TestPublish(_Publish):
    pass


class TestRetire(_Retire):
    pass


class TestClean(_Clean):
    pass


class TestEnter(_Enter):
    pass


def test_a_name_is_given_once(store: Store) -> None:
    assert store.files.put_new("manifest/x", b"one")
    assert not store.files.put_new("manifest/x", b"two")
    assert store.read("manifest/x") == b"one"


def test_of_several_at_the_same_time_one_succeeds(store: Store, location: str) -> None:
    start = threading.Barrier(8)
    won: list[int] = []

    def put(number: int) -> None:
        files = Store.open(location).files
        start.wait(60)
        if files.put_new("manifest/x", b"%d" % number):
            won.append(number)

    threads = [threading.Thread(target=put, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(won) == 1
    assert store.read("manifest/x") == b"%d" % won[0]


def test_a_server_that_writes_over_objects_is_told_of(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that takes no notice of the condition: then what is there is looked at before."""
    import obstore

    put = obstore.put

    def careless(*arguments: object, mode: object = None) -> object:
        return put(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("tidegate.state.object_files.obstore.put", careless)
    files = store.handle().open().files
    assert files.put_new("manifest/x", b"one")
    assert "If-None-Match has no effect" in caplog.text
    assert not files.put_new("manifest/x", b"two")
    assert files.put_new("manifest/y", b"two")
    assert store.read("manifest/x") == b"one"


def test_a_handle_opens_the_same_objects(store: Store) -> None:
    store.publish(manifest_of(0, segment_of(store, 0)))
    handle = pickle.loads(pickle.dumps(store.handle()))
    assert isinstance(store.files, ObjectFiles)
    assert handle.open().latest() == store.latest()


def test_a_bucket_that_is_not_there(server: Server) -> None:
    uri = server.uri("x").replace("bucket/", "another/")
    with pytest.raises(
        CheckpointError,
        match=r"^s3://another/x: must be readable; got NoSuchBucket: .* Check the name of the buck",
    ):
        Store.open(uri).create({})


def test_keys_that_are_wrong(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(CheckpointError, match=r"meta\.json: must be readable; .* Give credential"):
        Store.open(location).meta()


def test_an_object_that_is_damaged_is_named(store: Store, server: Server, path: str) -> None:
    store.publish(manifest_of(0, segment_of(store, 0)))
    file = server.folder / path / "manifest" / "00000000.json"
    file.write_bytes(file.read_bytes().replace(b'"batch":0', b'"batch":1'))
    with pytest.raises(StateError, match=f"s3://bucket/{path}/manifest/00000000.json: must be as"):
        store.latest()
