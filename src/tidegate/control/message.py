"""The protocol between two processes: each message is one line of JSON.

A question is `{"command": name, ...arguments}`. Its answer is `{"done": ...}`, or `{"error": ...}`
with an error of the tree in `errors`. Each connection carries one question and one answer.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

from tidegate.errors import RunError

STATUS, POLICY, PAUSE, RESUME, STOP = "status", "policy", "pause", "resume", "stop"
"""Commands that do not change a mapping."""

MOST_ASKED_BYTES = 2 * 2**20
"""The largest question; a mapping of 65,536 buckets takes a third of it."""

MOST_ANSWERED_BYTES = 32 * 2**20
"""The largest answer; a status with timelines and mappings of many subqueries is far smaller."""

_PIECE_BYTES = 1 << 16
_WHERE, _REQUIREMENT = "control socket", "must bring a line of JSON"


class Incoming:
    """A message being received; holds at most `most_bytes`, whatever the other side sends.

    A longer message is read to its end and discarded: a sender that is still sending would not read
    the answer.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = bytearray()
        self._too_long = False

    def read(self, of: socket.socket) -> bool:
        """Reads what has come; True when the message is complete. OSError if reading fails."""
        piece = of.recv(_PIECE_BYTES)
        line, end, _ = piece.partition(b"\n")
        self._too_long |= len(self._bytes) + len(line) > self._most_bytes
        self._bytes = bytearray() if self._too_long else self._bytes + line + end
        return bool(end) or not piece

    def message(self) -> dict[str, Any]:
        """The complete message; RunError if it is not valid."""
        if self._too_long:
            got = f"more than {self._most_bytes:,} bytes"
            raise RunError(_WHERE, _REQUIREMENT, got, "Ask for less at a time.")
        if not self._bytes.endswith(b"\n"):
            raise RunError(_WHERE, _REQUIREMENT, "a connection that ended")
        try:
            message = json.loads(self._bytes)
        except ValueError as error:
            raise RunError(_WHERE, _REQUIREMENT, str(error)) from None
        except RecursionError:
            raise RunError(_WHERE, _REQUIREMENT, "one that is nested too deeply") from None
        if not isinstance(message, dict):
            raise RunError(_WHERE, "must bring an object of JSON", type(message).__name__)
        return message


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as bytes."""
    return json.dumps(message, default=str).encode() + b"\n"


def send(to: socket.socket, message: Mapping[str, Any]) -> None:
    """Sends a message; OSError if the other side is gone or too slow."""
    to.sendall(encoded(message))


def receive(of: socket.socket) -> dict[str, Any]:
    """Waits for the answer of the other side.

    RunError if it sends something else or closes early; OSError if it is too slow.
    """
    incoming = Incoming(MOST_ANSWERED_BYTES)
    while not incoming.read(of):
        pass
    return incoming.message()
