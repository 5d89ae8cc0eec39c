"""The suite of results elsewhere, on an S3 server, which copies what it cannot rename."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.s3.server import Server
from tests.sink.test_remote import ROWS, Sinks, opened, written
from tests.sink.test_remote import TestRemoteSink as _Sink
from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError
from tidegate.sink.folder.remote import RemoteSink
from tidegate.sink.receipt import Part
from tidegate.sink.registry import of


@pytest.fixture
def folder(server: Server, path: str) -> Path:
    return server.folder / path


@pytest.fixture
def sinks(location: str) -> Sinks:
    return lambda *more: RemoteSink(location, *more)


class TestRemoteSink(_Sink):
    pass


def test_between_copying_and_deleting(
    sinks: Sinks, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is in place, and aside too: the next start makes away with what is aside."""
    sink = opened(sinks)
    receipts = written(sink, 0, Part(0), Part(1))
    with monkeypatch.context() as patch:
        patch.setattr("obstore.delete", _die)
        with pytest.raises(KeyboardInterrupt):
            sink.publish(BatchId(0), receipts)
    aside = [folder / str(receipt.more["file"]) for receipt in receipts]
    assert all(path.exists() for path in aside)
    again = opened(sinks, newest=0, owner=1)
    found = again.verify(BatchId(0), receipts)
    assert (found.published, found.parts, found.problems) == (True, 2, ())
    again.publish(BatchId(0), receipts)
    assert not any(path.exists() for path in aside)


def _die(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_bucket_that_is_not_there(location: str) -> None:
    sink = of(location.replace("//bucket/", "//another/"))
    assert isinstance(sink, RemoteSink)
    with pytest.raises(OptionError, match=r"^s3://another/.* got NoSuchBucket: .* Check the name"):
        opened(lambda: sink)


def test_credentials_that_are_wrong(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(OptionError, match=r"got SignatureDoesNotMatch: .* Give credentials that"):
        opened(lambda: RemoteSink(location))


def test_a_server_that_is_gone(sinks: Sinks, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(sinks)
    writer = sink.begin(BatchId(0))
    monkeypatch.setattr("obstore.put", _refuse)
    with pytest.raises(SinkError, match="must be written before it is committed; got no answer"):
        writer.write(Part(0), ROWS)


def _refuse(*arguments: object) -> None:
    raise OSError("no answer from http://127.0.0.1:1")
