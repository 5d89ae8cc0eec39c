"""Sends lineage events to a file or a server in the background; the query never waits for it."""

from __future__ import annotations

import http.client
import logging
import os
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.json_text import json_text

MOST_WAITING = 16
"""The longest queue. If it is full, a RUNNING event is dropped; other events still enter it."""

PATIENCE_S = 5.0
"""How long the end of a run waits for events that are not sent yet."""

_TIMEOUT_S = 5.0
_PAUSES_S = (0.5, 2.0)
"""Pauses before the second and the third try."""

_AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""HTTP status codes that are worth another try."""

_log = logging.getLogger(__name__)


class Receiver(Protocol):
    """A destination of events. Messages call it by its `place`."""

    place: str

    def send(self, event: bytes) -> None:
        """Deliver one event, JSON text on one line; OSError if it was not delivered."""


class FileReceiver:
    """Appends one line per event to a file; `send` returns after fsync."""

    def __init__(self, path: str) -> None:
        self.place = path

    def send(self, event: bytes) -> None:
        with open(self.place, "ab+") as file:
            # A line that a crash has cut short stays alone.
            torn = file.tell() > 0 and _last_byte(file) != b"\n"
            file.write((b"\n" if torn else b"") + event + b"\n")
            file.flush()
            os.fsync(file.fileno())


class RefusedError(OSError):
    """The server refused an event and would refuse it again."""


class HttpReceiver:
    """Posts events to a server. Redirects are not followed: they would forward the key."""

    def __init__(self, url: str, key: str | None, timeout_s: float = _TIMEOUT_S) -> None:
        self.place = url
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_NoRedirect)

    def send(self, event: bytes) -> None:
        request = urllib.request.Request(self.place, event, self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                answer.read(1)
        except urllib.error.HTTPError as error:
            with error:
                kind = OSError if error.code in _AGAIN else RefusedError
                raise kind(f"status {error.code} {error.reason}") from None
        except http.client.HTTPException as error:
            raise OSError(f"no answer of HTTP: {type(error).__name__}") from error


class EventDelivery:
    """Sends events in order, in its own thread; its queue holds MOST_WAITING and the final one.

    It never fails or delays a batch. Events that cannot be sent are logged and counted as lost.
    """

    def __init__(self, receiver: Receiver, clock: Clock, pauses_s: tuple[float, ...] = _PAUSES_S):
        self.sent = 0
        self.lost = 0
        self._receiver = receiver
        self._clock = clock
        self._pauses_s = pauses_s
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._given = 0
        self._down = False
        """Whether the last event was lost. Then an event gets a single try, until one succeeds."""
        self._late = threading.Event()
        self._thread: Future[None] | None = None

    def counts(self) -> dict[str, int]:
        """For the summary: events sent and events lost."""
        return {"sent": self.sent, "lost": self.lost}

    def post(self, event: Mapping[str, Any], dispensable: bool = False) -> None:
        """Queue an event; a `dispensable` one is dropped if the queue is full."""
        if dispensable and self._waiting.qsize() >= MOST_WAITING:
            self._given += 1
            self._count_lost("too many events that wait")
            return
        if self._thread is None:
            self._thread = _started(self._work)
            if self._thread is None:
                return
        self._given += 1
        self._waiting.put(json_text(event).encode())

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Send the queued events, but wait at most `patience_s`; the rest are lost."""
        if self._thread is None:
            return
        self._waiting.put(None)
        try:
            self._thread.exception(patience_s)
        except TimeoutError:
            self._late.set()
            self.lost = self._given - self.sent
            _log.warning(
                "%s: must take lineage events; got no answer. %d are lost.",
                self._receiver.place,
                self.lost,
            )

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            self._send(event)

    def _send(self, event: bytes) -> None:
        pauses_s = () if self._down else self._pauses_s
        for pause_s in (*pauses_s, None):
            try:
                self._receiver.send(event)
                self.sent, self._down = self.sent + 1, False
                return
            except (OSError, ValueError) as error:
                if self._late.is_set():  # counted already
                    return
                if pause_s is None or isinstance(error, RefusedError):
                    self._down = True
                    self._count_lost(str(error))
                    return
                self._clock.wait(self._late, pause_s)

    def _count_lost(self, why: str) -> None:
        self.lost += 1
        _log.warning(
            "%s: must take lineage events; got %s. The query goes on; %d lost so far.",
            self._receiver.place,
            why,
            self.lost,
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _last_byte(file: Any) -> bytes:
    file.seek(-1, os.SEEK_END)
    return bytes(file.read(1))


def _started(work: Callable[[], None]) -> Future[None] | None:
    """Run `work` in a daemon thread; None if the interpreter is shutting down."""
    try:
        return schedule.current().start("tidegate-lineage", work, daemon=True)
    except RuntimeError:
        return None
