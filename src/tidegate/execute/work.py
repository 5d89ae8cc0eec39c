"""The bytes that the driver gives to tasks: left in a file, or sent to a worker that stays.

Both kinds have a short text form, so that the work of one task can name another's.
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
"""The newest `_KEPT` byte strings that the driver sent to this process, by key, oldest first."""


class SentWork:
    """Bytes that a worker got with this request or an earlier one, named by their key."""

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
    """The key of bytes: their SHA-256."""
    return hashlib.sha256(data).hexdigest()


def keep_sent(key: str, data: bytes) -> None:
    """Keep bytes that the driver sent; drops the oldest beyond `_KEPT`."""
    _sent.pop(key, None)
    _sent[key] = data
    while len(_sent) > _KEPT:
        del _sent[next(iter(_sent))]


def work_of(text: str) -> TaskWork:
    """The work whose text form this is."""
    if text.startswith(_SENT_MARK):
        return SentWork(text.removeprefix(_SENT_MARK))
    return LeftFile.of(text)
