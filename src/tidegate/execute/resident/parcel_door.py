"""Hands parcels of a worker's files to workers on other hosts that know the secret of the run.

A question names files and ranges of bytes in them; the answer is an empty message, then the bytes
as they are in the files. The kernel copies them from the file to the socket, and only as fast as
the other side reads: a reader that is slow takes no memory of this process.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import AuthenticationError
from threading import Lock

from tidegate import schedule
from tidegate.execute.resident.channel import Channel, admit
from tidegate.storage import disk

_log = logging.getLogger(__name__)

PATIENCE_S = 60.0
"""How long either side waits for the other to send or to read something."""

MOST_ASKED_BYTES = 16 << 20
"""The largest request; its size grows with the splits of a batch."""

_PROVING = 64
"""The most connections that may prove the secret at a time; more are closed at once."""

_LOOK_S = 1.0

TURNED_AWAY = (AuthenticationError, AssertionError, EOFError, OSError)
"""The errors of a connection whose other side does not know the secret, or is gone."""


class ParcelDoor:
    """Serves ranges of files to other workers, each connection in a thread of its own.

    `path_of` returns the path of a named file, or None if it is gone. Grows with the connections.
    """

    def __init__(
        self,
        door: socket.socket,
        secret: bytes,
        path_of: Callable[[str], str | None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.address: tuple[str, int] = door.getsockname()[:2]
        self._door, self._secret, self._path_of = door, secret, path_of
        self._patience_s = patience_s
        self._lock = Lock()
        self._open: set[socket.socket] = set()
        self._proving = 0
        self._closed = False
        door.settimeout(_LOOK_S)
        self._answering = schedule.current().start("tidegate-door", self._answer, daemon=True)

    def close(self) -> None:
        """Close all connections, even in the middle of an answer; their threads then end."""
        with self._lock:
            self._closed = True
            ends = [self._door, *self._open]
        for end in ends:
            with suppress(OSError):  # the other side has ended it
                end.shutdown(socket.SHUT_RDWR)
        self._answering.exception()
        self._door.close()

    def _answer(self) -> None:
        while not self._closed:
            try:
                knocking, _ = self._door.accept()
            except TimeoutError:
                continue
            except OSError as error:
                if not self._closed:  # has gone again, or this process has too many files open
                    _log.warning("a worker could not come for its parcels: %s", error)
                    schedule.current().clock.sleep(_LOOK_S)
                continue
            if self._proving >= _PROVING:
                knocking.close()
                continue
            with self._lock:
                self._proving += 1
            work = partial(self._serve, knocking)
            schedule.current().start("tidegate-parcels", work, daemon=True)

    def _serve(self, knocking: socket.socket) -> None:
        """Answer one worker until it goes or stays silent; a silent one connects again later."""
        with self._connected(knocking) as end:
            try:
                channel = admit(knocking, self._secret, self._patience_s)
            except TURNED_AWAY as error:
                said = str(error) or type(error).__name__
                _log.warning("somebody who is no worker got no parcels: %s", said)
                return
            finally:
                with self._lock:
                    self._proving -= 1
            with channel, suppress(EOFError, OSError):
                while True:
                    self._give(channel, end, channel.recv_bytes(MOST_ASKED_BYTES))

    @contextmanager
    def _connected(self, knocking: socket.socket) -> Iterator[socket.socket]:
        end = knocking.dup()
        with self._lock:
            self._open.add(end)
            if self._closed:
                end.shutdown(socket.SHUT_RDWR)
        try:
            yield end
        finally:
            with self._lock:
                self._open.discard(end)
            knocking.close()
            end.close()

    def _give(self, channel: Channel, end: socket.socket, asked: bytes) -> None:
        """Send the ranges of files that were asked for, or the name of one that is gone."""
        wanted: list[tuple[str, list[tuple[int, int]]]] = json.loads(asked)
        paths = [self._path_of(name) for name, _ in wanted]
        missing = next((w[0] for w, path in zip(wanted, paths, strict=True) if path is None), "")
        channel.send_bytes(missing.encode())
        if missing:
            return
        for (_, ranges), path in zip(wanted, paths, strict=True):
            assert path is not None
            with disk.current().open(path) as file:
                for start, stop in ranges:
                    _send(end, file.fileno(), start, stop)


def _send(end: socket.socket, file: int, start: int, stop: int) -> None:
    """Send a range of a file; an EOFError, which ends the connection, if the file is shorter."""
    while start < stop:
        sent = os.sendfile(end.fileno(), file, start, stop - start)
        if not sent:
            raise EOFError("a file of parcels is shorter than it was")
        start += sent
