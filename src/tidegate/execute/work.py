"""What the driver hands to tasks: bytes left in a file, or sent to a process that stays.

Either has a short text that stands for it, so that one task's work can name another's.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import pyarrow as pa

from tidegate.errors import RunError
from tidegate.execute.exchange import LeftFile


class TaskWork(Protocol):
    """Bytes for tasks, opened where a task runs."""

    def open(self) -> pa.Buffer: ...


_SENT_MARK = "sent:"
_KEPT = 32
_sent: dict[str, bytes] = {}
"""What this process was sent and may be asked for again, oldest first; of the newest batches."""


class SentWork:
    """Bytes that a worker was sent with a request, or with one before it; known by their key."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __str__(self) -> str:
        return _SENT_MARK + self.key

    def open(self) -> pa.Buffer:
        try:
            return pa.py_buffer(_sent[self.key])
        except KeyError:
            raise RunError(
                f"work {self.key}",
                "must have been sent to this worker",
                "none",
                "Nothing of the batch was committed; run again to continue.",
            ) from None


def key_of(data: bytes) -> str:
    """What bytes are known by."""
    return hashlib.sha256(data).hexdigest()


def keep_sent(key: str, data: bytes) -> None:
    """Keep what was sent, and let go of the oldest."""
    _sent.pop(key, None)
    _sent[key] = data
    while len(_sent) > _KEPT:
        del _sent[next(iter(_sent))]


def work_of(text: str) -> TaskWork:
    """The work that a text stands for."""
    if text.startswith(_SENT_MARK):
        return SentWork(text.removeprefix(_SENT_MARK))
    return LeftFile.of(text)
