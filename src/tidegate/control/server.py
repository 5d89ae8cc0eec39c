"""The control socket of a running query, between other processes of its user and the query.

A thread of its own waits for questions and answers them one by one; whoever asks has five seconds
to do it. It holds nothing that a batch needs, and ends with the run.
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
from tidegate.control.address import FOLDER, SOCKET, Address
from tidegate.control.message import receive, send
from tidegate.errors import RunError, TidegateError, UserError
from tidegate.state.epoch import time_of

_log = logging.getLogger(__name__)

LONGEST_PATH = 103
"""Bytes of the path of a socket, on every system."""

_PATIENCE_S = 5.0

Answer = Callable[[Mapping[str, Any]], Any]
"""What is done with a question; gives JSON values, or raises a TidegateError."""


class ControlServer:
    """Listens from when it is made, answers once `start` is called, and is gone after `close`."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._thread: Future[None] | None = None
        self._folder = _private_folder()
        self.address = Address.here(os.path.join(self._folder, SOCKET), time_of(utc_now()))
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listening.bind(self.address.socket)
            os.chmod(self.address.socket, 0o600)
            self._listening.listen(8)
            self._ear, self._mouth = socket.socketpair()
        except BaseException:
            self._listening.close()
            self._remove()
            raise

    def start(self) -> None:
        """Answer from now on."""
        # A daemon, so that a program whose main thread has ended is not kept alive by it.
        self._thread = schedule.current().start("tidegate-control", self._serve, daemon=True)

    def close(self) -> None:
        """Answer no more; waits for the answer at hand. May be called again."""
        if self._listening.fileno() < 0:
            return
        self._mouth.close()  # wakes the thread
        if self._thread is not None:
            self._thread.exception()
        self._listening.close()
        self._ear.close()
        self._remove()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._ear, selectors.EVENT_READ)
            while all(key.fileobj is self._listening for key, _ in selector.select()):
                try:
                    asking, _ = self._listening.accept()
                except OSError as error:  # who asked is gone, or too many files are open
                    _log.debug("control socket: %s", error)
                    continue
                with asking:
                    self._attend(asking)

    def _attend(self, asking: socket.socket) -> None:
        """One question and its answer; nothing that goes wrong with them ends the thread."""
        asking.settimeout(_PATIENCE_S)
        try:
            send(asking, self._answered(asking))
        except OSError as error:
            _log.debug("control socket: %s", error)

    def _answered(self, asking: socket.socket) -> dict[str, Any]:
        try:
            check_peer(peer_of(asking))
            return {"done": self._answer(receive(asking))}
        except TidegateError as error:
            return {"error": error.to_dict()}
        except OSError as error:
            raise error
        except Exception as error:
            _log.exception("control socket: a question could not be answered")
            failure = RunError("control socket", "must answer", f"{type(error).__name__}: {error}")
            return {"error": failure.to_dict()}

    def _remove(self) -> None:
        with suppress(OSError):  # somebody may have cleaned the folder of temporary files
            os.unlink(self.address.socket)
        with suppress(OSError):
            os.rmdir(self._folder)


def peer_of(connection: socket.socket) -> int | None:
    """The user at the other end; None where the system does not say, and file modes must do."""
    kind = getattr(socket, "SO_PEERCRED", None)
    if kind is None:
        return None
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, kind, size))
    return int(user)


def check_peer(user: int | None) -> None:
    """Refuse other users; root may do what it likes anyway."""
    own = os.geteuid()
    if user not in (None, own, 0):
        raise UserError(
            "tidegate ctl",
            "must be run by the user of the query",
            f"user {user}",
            f"Run it as user {own}.",
        )


def _private_folder() -> str:
    """A new folder for this user alone, with a path that leaves room for a socket."""
    places = [None, "/tmp", "/var/tmp"]
    for place in places:
        with suppress(OSError):
            folder = tempfile.mkdtemp(prefix=FOLDER, dir=place)
            if len(os.fsencode(os.path.join(folder, SOCKET))) <= LONGEST_PATH:
                return folder
            os.rmdir(folder)
    raise OSError(f"no folder for temporary files has a path of less than {LONGEST_PATH} bytes")
