"""Questions and answers between two processes: each is one line of JSON.

A question is `{"command": name, ...arguments}`. Its answer is `{"done": ...}`, or `{"error": ...}`
with an error of the tree in `errors`. One question and one answer are a connection.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

from tidegate.errors import RunError

MOST_BYTES = 32 * 2**20
"""A mapping of 65,536 buckets, and a timeline, are far smaller."""


def send(to: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a message; an OSError where the other side is gone or too slow."""
    to.sendall(json.dumps(message, default=str).encode() + b"\n")


def receive(of: socket.socket) -> dict[str, Any]:
    """The message that the other side sends.

    A RunError where it sends something else, or ends before; an OSError where it is too slow.
    """
    found = bytearray()
    while not found.endswith(b"\n"):
        piece = of.recv(1 << 16)
        if not piece or len(found) + len(piece) > MOST_BYTES:
            got = "a connection that ended" if not piece else f"more than {MOST_BYTES} bytes"
            raise RunError("control socket", "must bring a line of JSON", got)
        found += piece
    try:
        message = json.loads(found)
    except ValueError as error:
        raise RunError("control socket", "must bring a line of JSON", str(error)) from None
    if not isinstance(message, dict):
        raise RunError("control socket", "must bring an object of JSON", type(message).__name__)
    return message
