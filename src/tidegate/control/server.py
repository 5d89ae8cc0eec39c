"""The control socket of a running query: answers other processes of the same user.

One thread serves all connections, so that a slow or silent client delays no other. A client has
five seconds per question. The thread holds no lock that a batch needs, and ends with the run.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import struct
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from tidegate import schedule
from tidegate.clock import utc_now
from tidegate.control.address import FOLDER, SOCKET, ControlAddress
from tidegate.control.connection import ControlConnection
from tidegate.errors import UserError
from tidegate.state.epoch import time_of

_log = logging.getLogger(__name__)

LONGEST_PATH = 103
"""The longest path of a socket in bytes, on every supported system."""

MOST_CONNECTIONS = 128
"""Connections served at once; the operating system queues others."""

PATIENCE_S = 5.0
"""How long a connection may take from when it is accepted until its answer is sent."""

_PAUSE_S = 0.05
"""The pause after an error in accepting a connection, for example too many open files."""

Answer = Callable[[Mapping[str, Any]], Any]
"""Executes a question; returns JSON values or raises a TidegateError."""


class ControlServer:
    """Listens as soon as it is created, answers after `start`, and is gone after `close`.

    Grows with its connections, at most MOST_CONNECTIONS.
    """

    def __init__(self, answer: Answer, patience_s: float = PATIENCE_S) -> None:
        self._answer = answer
        self._patience_s = patience_s
        self._clock = schedule.current().clock
        self._thread: Future[None] | None = None
        self._folder = _private_folder()
        self.address = ControlAddress.here(os.path.join(self._folder, SOCKET), time_of(utc_now()))
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listening.setblocking(False)
            self._listening.bind(self.address.socket)
            # Nobody else can connect before this either: the folder is open to this user alone.
            os.chmod(self.address.socket, 0o600)
            self._listening.listen(socket.SOMAXCONN)
            self._read_end, self._write_end = socket.socketpair()
        except BaseException:
            self._listening.close()
            self._remove()
            raise

    def start(self) -> None:
        """Starts answering."""
        # A daemon, so that a program whose main thread has ended is not kept alive by it.
        self._thread = schedule.current().start("tidegate-control", self._serve, daemon=True)

    def close(self) -> None:
        """Stops answering, after the answer in progress. May be called again."""
        if self._listening.fileno() < 0:
            return
        self._write_end.close()  # wakes the thread
        if self._thread is not None:
            self._thread.exception()
        self._listening.close()
        self._read_end.close()
        self._remove()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._read_end, selectors.EVENT_READ)
            self._listen(selector, True)
            while self._attend(selector):
                pass
            for connection in _connections(selector):
                connection.socket.close()

    def _attend(self, selector: selectors.BaseSelector) -> bool:
        """Waits for sockets and does what is possible now; False when the run has ended."""
        for key, _ in selector.select(self._until_next_s(selector)):
            if key.fileobj is self._read_end:
                return False
            if key.fileobj is self._listening:
                self._accept(selector)
            elif key.data.advance():
                _end(selector, key.data)
            else:
                selector.modify(key.fileobj, key.data.waits_for, key.data)
        now = self._clock.now()
        for connection in _connections(selector):
            if connection.ends_at <= now:
                connection.expire()
                _end(selector, connection)
        self._listen(selector, len(_connections(selector)) < MOST_CONNECTIONS)
        return True

    def _listen(self, selector: selectors.BaseSelector, wanted: bool) -> None:
        """Accepts new connections, or leaves them in the queue."""
        if wanted == (self._listening in selector.get_map()):
            return
        if wanted:
            selector.register(self._listening, selectors.EVENT_READ)
        else:
            selector.unregister(self._listening)

    def _until_next_s(self, selector: selectors.BaseSelector) -> float | None:
        """How long to wait at most: until the first connection times out."""
        ends = [connection.ends_at for connection in _connections(selector)]
        return max(min(ends) - self._clock.now(), 0.0) if ends else None

    def _accept(self, selector: selectors.BaseSelector) -> None:
        try:
            asking, _ = self._listening.accept()
        except BlockingIOError:  # the other side is gone
            return
        except OSError as error:
            _log.debug("control socket: %s", error)
            self._clock.sleep(_PAUSE_S)
            return
        ends_at = self._clock.now() + self._patience_s
        connection = ControlConnection(asking, self._answered, ends_at)
        selector.register(asking, connection.waits_for, connection)

    def _answered(self, asking: socket.socket, question: Mapping[str, Any]) -> Any:
        check_peer(peer_of(asking))
        return self._answer(question)

    def _remove(self) -> None:
        with suppress(OSError):  # temporary files may have been cleaned up
            os.unlink(self.address.socket)
        with suppress(OSError):
            os.rmdir(self._folder)


def _connections(selector: selectors.BaseSelector) -> list[ControlConnection]:
    return [key.data for key in selector.get_map().values() if key.data is not None]


def _end(selector: selectors.BaseSelector, connection: ControlConnection) -> None:
    selector.unregister(connection.socket)
    connection.socket.close()


def peer_of(connection: socket.socket) -> int | None:
    """The user at the other end; None if the system cannot tell, and file modes must be enough."""
    kind = getattr(socket, "SO_PEERCRED", None)
    if kind is None:
        return None
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, kind, size))
    return int(user)


def check_peer(user: int | None) -> None:
    """Raises for other users than the query's own; root is allowed, as everywhere."""
    own = os.geteuid()
    if user not in (None, own, 0):
        raise UserError(
            "tidegate ctl",
            "must be run by the user of the query",
            f"user {user}",
            f"Run it as user {own}.",
        )


def _private_folder() -> str:
    """A new folder that only this user can enter, with a path short enough for a socket."""
    places = [None, "/tmp", "/var/tmp"]
    for place in places:
        with suppress(OSError):
            folder = tempfile.mkdtemp(prefix=FOLDER, dir=place)
            if len(os.fsencode(os.path.join(folder, SOCKET))) <= LONGEST_PATH:
                return folder
            os.rmdir(folder)
    raise OSError(f"no folder for temporary files has a path of less than {LONGEST_PATH} bytes")
