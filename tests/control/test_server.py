"""The control socket by itself: who may ask, what comes back, and what is left behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tidegate.control.address import (
    ControlAddress,
    read_record,
    record_path,
    remove_left,
    remove_record,
    write_record,
)
from tidegate.control.client import ask
from tidegate.control.message import encoded, receive
from tidegate.control.server import LONGEST_PATH, ControlServer
from tidegate.errors import CheckpointError, OptionError, RunError, TidegateError
from tidegate.state.store import Store


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Mapping[str, Any]], Any]], ControlServer]]:
    made: list[ControlServer] = []

    def start(answer: Callable[[Mapping[str, Any]], Any]) -> ControlServer:
        server = ControlServer(answer)
        made.append(server)
        server.start()
        return server

    yield start
    for server in made:
        server.close()


def connected(server: ControlServer) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(120)
    connection.connect(server.address.socket)
    return connection


def answered(server: ControlServer, question: Mapping[str, Any]) -> dict[str, Any]:
    with connected(server) as connection:
        connection.sendall(encoded(question))
        return receive(connection)


def test_questions_are_answered_one_by_one_and_the_socket_goes(serve: Any) -> None:
    server = serve(lambda question: {"twice": 2 * question["number"]})
    path = Path(server.address.socket)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(os.fsencode(path)) <= LONGEST_PATH
    for number in range(3):
        assert answered(server, {"number": number}) == {"done": {"twice": 2 * number}}
    server.close()
    server.close()
    assert not path.parent.exists()


def test_what_is_refused_and_what_fails_is_an_answer_too(
    serve: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(question: Mapping[str, Any]) -> Any:
        if question.get("command") == "scale":
            raise OptionError("scale", "needs at least one instance", "0")
        raise ZeroDivisionError("oh")

    server = serve(answer)
    refused = TidegateError.from_dict(answered(server, {"command": "scale"})["error"])
    assert (type(refused), str(refused)) == (
        OptionError,
        "scale: needs at least one instance; got 0.",
    )
    failed = TidegateError.from_dict(answered(server, {})["error"])
    assert (type(failed), failed.got) == (RunError, "ZeroDivisionError: oh")
    assert "could not be answered" in caplog.text


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        (b"scale 4\n", "Expecting value: line 1 column 1 (char 0)"),
        (b"[1]\n", "list"),
        (b"\xff\n", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b'{"command"', "a connection that ended"),
    ],
)
def test_what_is_no_question_does_no_harm(serve: Any, sent: bytes, got: str) -> None:
    server = serve(lambda question: {})
    with connected(server) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert receive(connection)["error"]["got"] == got
    assert answered(server, {}) == {"done": {}}


def test_who_goes_without_a_word_does_no_harm(serve: Any) -> None:
    server = serve(lambda question: {})
    connected(server).close()
    assert answered(server, {}) == {"done": {}}


def test_another_user_is_refused(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    server = serve(asked.append)
    monkeypatch.setattr("tidegate.control.server.peer_of", lambda connection: 4711)
    refused = TidegateError.from_dict(answered(server, {})["error"])
    assert str(refused) == (
        "tidegate ctl: must be run by the user of the query; got user 4711. "
        f"Run it as user {os.geteuid()}."
    )
    assert asked == []


def test_a_folder_for_temporary_files_with_a_long_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    server = ControlServer(lambda question: {})
    assert not server.address.socket.startswith(str(deep))
    server.close()
    assert list(deep.iterdir()) == []


def test_the_address_is_for_its_user_and_the_newest_run_has_it(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "c"))
    store.make()
    path = record_path(store)
    assert path == str(tmp_path / "c" / "control.json")
    old, new = (
        ControlAddress.here(f"/tmp/tidegate-ctl-x/{name}", "now").of(store) for name in "ab"
    )
    write_record(path, old)
    write_record(path, new)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(tmp_path / "c") == ["control.json"]
    remove_record(path, store, old)
    assert read_record(path, store) == new
    copy = Store.open(str(shutil.copytree(tmp_path / "c", tmp_path / "copy")))
    assert read_record(str(record_path(copy)), copy) is None, "the query runs on the other one"
    remove_record(path, store, new)
    assert read_record(path, store) is None
    Path(path).write_text("{}")
    assert read_record(path, store) is None


def test_the_address_of_a_checkpoint_elsewhere_is_with_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    one, other = (Store.open(f"s3://bucket/{name}") for name in ("one", "other"))
    path = record_path(one)
    assert path is not None
    assert Path(path).parent == tmp_path / "tidegate" / "control"
    assert path != record_path(other)
    with pytest.raises(CheckpointError, match="on the host of the driver, as the user who runs it"):
        ask("s3://bucket/one", {})


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    server = ControlServer(lambda question: {})
    server._listening.close()  # as the system does when a process is killed
    folder = Path(server.address.socket).parent
    assert folder.exists()
    elsewhere = tmp_path / "precious"
    elsewhere.write_text("x")
    remove_left(ControlAddress.here(str(elsewhere), "now"))
    assert elsewhere.exists()
    remove_left(server.address)
    assert not folder.exists()


def test_a_message_that_never_ends() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.sendall(json.dumps({"a": 1}).encode())
        here.shutdown(socket.SHUT_WR)
        with pytest.raises(RunError, match="must bring a line of JSON; got a connection that end"):
            receive(there)
