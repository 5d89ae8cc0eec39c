"""Many who ask at once, some of them slow or silent; and what is said where nobody answers."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidegate import schedule
from tidegate.clock import SystemClock
from tidegate.control.address import ControlAddress, record_path, write_record
from tidegate.control.client import ask
from tidegate.control.message import MOST_ASKED_BYTES, encoded, receive
from tidegate.control.server import MOST_CONNECTIONS, ControlServer
from tidegate.errors import CheckpointError, OptionError, RunError
from tidegate.state.store import Store

LONG_S = 600.0
"""Longer than any test takes: who waits for it fails."""


@contextmanager
def served(
    folder: Path, answer: Callable[[Mapping[str, Any]], Any], patience_s: float = LONG_S
) -> Iterator[ControlServer]:
    """A server that is found by a checkpoint, as that of a run."""
    server = ControlServer(answer, patience_s)
    recorded(folder, server.address)
    server.start()
    try:
        yield server
    finally:
        server.close()


def recorded(folder: Path, address: ControlAddress) -> str:
    """Let clients find an address by a checkpoint; where that is."""
    store = Store.open(str(folder))
    store.make()
    path = record_path(store)
    assert path is not None
    write_record(path, address.of(store))
    return path


def connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    connection.settimeout(LONG_S)
    return connection


def test_a_hundred_at_once_are_all_answered_beside_silent_and_slow_ones(tmp_path: Path) -> None:
    count, together = 100, threading.Barrier(100)

    def asks(number: int) -> Any:
        together.wait(LONG_S)
        return ask(str(tmp_path), {"number": number})

    with served(tmp_path, lambda question: 2 * question["number"]) as server:
        path = server.address.socket
        silent, slow = connected(path), connected(path)
        done = threading.Event()

        def dribble() -> None:
            for byte in encoded({"number": 7})[:-1]:
                slow.sendall(bytes([byte]))
            done.wait(LONG_S)
            slow.sendall(b"\n")

        dribbling = threading.Thread(target=dribble)
        dribbling.start()
        began = time.monotonic()
        with ThreadPoolExecutor(count) as pool:
            assert list(pool.map(asks, range(count))) == [2 * n for n in range(count)]
        assert time.monotonic() - began < LONG_S / 2
        poll = select.poll()  # select() takes no number from 1,024 on
        for connection in (silent, slow):
            poll.register(connection, select.POLLIN)
        assert poll.poll(0) == [], "both are still attended to"
        done.set()
        assert receive(slow) == {"done": 14}
        dribbling.join()
        silent.close()
        slow.close()


def test_one_who_does_not_read_its_answer_delays_nobody(tmp_path: Path) -> None:
    answering = served(tmp_path, lambda question: "x" * question["bytes"])
    with answering as server, connected(server.address.socket) as deaf:
        deaf.sendall(encoded({"bytes": 4_000_000}))
        assert len(ask(str(tmp_path), {"bytes": 2_000_000})) == 2_000_000
        assert receive(deaf) == {"done": "x" * 4_000_000}


def test_who_takes_too_long_is_told_and_makes_room_for_others(tmp_path: Path) -> None:
    with served(tmp_path, lambda question: "here", patience_s=0.05) as server:
        path = server.address.socket
        silent = [connected(path) for _ in range(MOST_CONNECTIONS + 10)]
        silent[-1].sendall(b'{"command"')
        for connection in silent:
            with connection:
                assert receive(connection)["error"]["got"] == "a part of one"


def test_a_question_that_is_too_long_is_read_to_its_end_and_refused(tmp_path: Path) -> None:
    with served(tmp_path, lambda question: "here") as server:
        with connected(server.address.socket) as connection:
            piece = b"x" * 100_000
            for _ in range(MOST_ASKED_BYTES // len(piece) + 10):
                connection.sendall(piece)
            connection.sendall(b"\n")
            assert receive(connection)["error"]["got"] == "more than 2,097,152 bytes"
        with pytest.raises(OptionError, match="a request must have at most 2,097,152 bytes; got"):
            ask(str(tmp_path), {"mapping": "x" * MOST_ASKED_BYTES})
        assert ask(str(tmp_path), {}) == "here"


class Sleepless(SystemClock):
    """A clock that runs ahead when it is to sleep, and does something then."""

    def __init__(self, at_sleep: Callable[[], None] = lambda: None) -> None:
        self.slept = 0
        self._at_sleep = at_sleep
        self._ahead_s = 0.0

    def now(self) -> float:
        return super().now() + self._ahead_s

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        self._ahead_s += 1.0
        self._at_sleep()


@contextmanager
def clock(at_sleep: Callable[[], None] = lambda: None) -> Iterator[Sleepless]:
    made = schedule.Threads()
    made.clock = Sleepless(at_sleep)
    with schedule.using(made):
        yield made.clock


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that listens, with a queue of one, and is that of this process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        path = f"/tmp/tidegate-test-{os.getpid()}-{id(listening):x}"
        listening.bind(path)
        listening.listen(0)
        recorded(tmp_path / "c", ControlAddress.here(path, "now"))
        yield listening
    Path(path).unlink(missing_ok=True)


def test_a_full_queue_is_waited_for(tmp_path: Path, queue: socket.socket) -> None:
    first = connected(queue.getsockname())
    accepted: list[socket.socket] = []

    def attend() -> None:
        accepted.append(queue.accept()[0])
        threading.Thread(target=reply).start()

    def reply() -> None:
        asking, _ = queue.accept()
        with asking:
            asking.recv(1000)
            asking.sendall(encoded({"done": "late"}))

    with clock(lambda: None if accepted else attend()) as ticking:
        assert ask(str(tmp_path / "c"), {}) == "late"
    assert ticking.slept >= 1
    first.close()
    accepted[0].close()


def test_a_queue_that_stays_full_is_no_query_that_has_ended(
    tmp_path: Path, queue: socket.socket
) -> None:
    with (
        connected(queue.getsockname()),
        clock(),
        pytest.raises(RunError, match=f"nothing in 60 s from process {os.getpid()}. Try again"),
    ):
        ask(str(tmp_path / "c"), {})


def test_a_connection_that_ends_is_no_query_that_has_ended(
    tmp_path: Path, queue: socket.socket
) -> None:
    def hang_up() -> None:
        queue.accept()[0].close()

    hanging = threading.Thread(target=hang_up)
    hanging.start()
    with pytest.raises(RunError, match=f"connection that process {os.getpid()} has ended. Try"):
        ask(str(tmp_path / "c"), {})
    hanging.join()


def test_ended_is_said_where_nobody_listens(tmp_path: Path, queue: socket.socket) -> None:
    folder = tmp_path / "c"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = ControlAddress.here(queue.getsockname(), "now")
    queue.close()
    with clock() as ticking, pytest.raises(CheckpointError, match="one whose query has ended"):
        ask(str(folder), {})  # this process lives, and does not listen
    assert ticking.slept > 1
    recorded(folder, replace(here, process=gone.pid))
    with clock() as ticking, pytest.raises(CheckpointError, match="one whose query has ended"):
        ask(str(folder), {})
    assert ticking.slept == 0
    Path(here.socket).unlink()
    with pytest.raises(CheckpointError, match="one whose query has ended"):
        ask(str(folder), {})
    recorded(folder, here)
    with clock(), pytest.raises(CheckpointError, match="one without its socket /tmp/tidegate-test"):
        ask(str(folder), {})


@pytest.mark.parametrize("fields", [{"process": "1"}, {"socket": 7}])
def test_a_record_of_the_wrong_types_is_none(tmp_path: Path, fields: dict[str, Any]) -> None:
    store = Store.open(str(tmp_path))
    store.make()
    recorded(tmp_path, replace(ControlAddress.here("/nowhere", "now"), **fields))
    with pytest.raises(CheckpointError):
        ask(str(tmp_path), {})
