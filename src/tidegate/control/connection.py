"""One connection to the control socket: reads a question and writes its answer, piece by piece."""

from __future__ import annotations

import logging
import selectors
import socket
from collections.abc import Callable, Mapping
from typing import Any

from tidegate.control.message import MOST_ASKED_BYTES, Incoming, encoded
from tidegate.errors import RunError, TidegateError

_log = logging.getLogger(__name__)

Answer = Callable[[socket.socket, Mapping[str, Any]], Any]
"""Executes a question; returns JSON values or raises a TidegateError."""


class ControlConnection:
    """Never blocks: `advance` does what is possible now, and is called whenever the socket is
    ready.

    The server closes it at `ends_at` on the clock, whatever its state. Holds one question or one
    answer.
    """

    def __init__(self, with_: socket.socket, answer: Answer, ends_at: float) -> None:
        self.socket = with_
        self.ends_at = ends_at
        self._answer = answer
        self._question = Incoming(MOST_ASKED_BYTES)
        self._reply: memoryview | None = None
        self.socket.setblocking(False)

    @property
    def waits_for(self) -> int:
        """The event that the selector should wait for."""
        return selectors.EVENT_READ if self._reply is None else selectors.EVENT_WRITE

    def advance(self) -> bool:
        """Reads or writes one piece; True when the answer is sent or the other side is gone."""
        try:
            if self._reply is None:
                if not self._question.read(self.socket):
                    return False
                self._reply = memoryview(encoded(self._answered()))
            self._reply = self._reply[self.socket.send(self._reply) :]
        except BlockingIOError:
            return False
        except OSError as error:
            _log.debug("control socket: %s", error)
            return True
        return not self._reply

    def expire(self) -> None:
        """Tells the other side that its question was too slow, if it is still incomplete."""
        if self._reply is None:
            slow = RunError("control socket", "must bring a line of JSON in time", "a part of one")
            try:
                self.socket.send(encoded({"error": slow.to_dict()}))
            except OSError as error:
                _log.debug("control socket: %s", error)

    def _answered(self) -> dict[str, Any]:
        try:
            return {"done": self._answer(self.socket, self._question.message())}
        except TidegateError as error:
            return {"error": error.to_dict()}
        except RecursionError:
            deep = RunError("control socket", "must bring flat JSON", "one that is nested deeply")
            return {"error": deep.to_dict()}
        except Exception as error:
            _log.exception("control socket: a question could not be answered")
            failure = RunError("control socket", "must answer", f"{type(error).__name__}: {error}")
            return {"error": failure.to_dict()}
