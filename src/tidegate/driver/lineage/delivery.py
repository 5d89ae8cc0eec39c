"""Hands lineage events to a file or a server beside the query, which waits for neither."""

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
"""So many events wait at most; a RUNNING event that finds as many is left out."""

PATIENCE_S = 5.0
"""How long the end of a run waits for events that are on their way."""

_TIMEOUT_S = 5.0
_PAUSES_S = (0.5, 2.0)
"""How long it waits before each further try."""

_AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server after which the same may be tried again."""

_log = logging.getLogger(__name__)


class Receiver(Protocol):
    """A place that takes events. `place` is what messages call it."""

    place: str

    def send(self, event: bytes) -> None:
        """Take one event, a JSON text on one line. Raises OSError where it did not."""


class FileReceiver:
    """Appends events to a file, one on each line; each is on the disk when `send` returns."""

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
    """A server has refused an event, and would do so again."""


class HttpReceiver:
    """Posts events to a server; a redirect is not followed, because it would get the key too."""

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
    """Sends events in their order, in a thread of its own; holds MOST_WAITING of them and one.

    Nothing here fails or delays a batch: what cannot be sent is logged and counted as lost.
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
        """Whether the event before was lost: then one try is enough, until one is sent."""
        self._late = threading.Event()
        self._thread: Future[None] | None = None

    def counts(self) -> dict[str, int]:
        """For the summary: the events that were sent, and those that were not."""
        return {"sent": self.sent, "lost": self.lost}

    def post(self, event: Mapping[str, Any], dispensable: bool = False) -> None:
        """Have an event sent; a dispensable one is left out where too many wait."""
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
        """Send what waits, but wait no longer than this; what is left then is lost."""
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
    """A thread that does not keep the process; None where Python is ending."""
    try:
        return schedule.current().start("tidegate-lineage", work, daemon=True)
    except RuntimeError:
        return None
