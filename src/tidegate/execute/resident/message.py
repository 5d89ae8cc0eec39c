"""The messages between a crew and its workers, and their encoding.

They are pickles. That is safe only because both ends of a connection first prove that they know the
same secret (`channel`): no one else's bytes are unpickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.execute.work import TaskWork

Task = Callable[[TaskWork, int], Any]
"""The function that a worker calls, with its `TaskWork` and its number; it must be importable."""

BEAT = b""
"""A worker sends it every second, so that the driver can tell a hung worker from a busy one."""

BYE = b"bye"
"""The driver sends it when no more work will come. A connection that ends without it has broken,
and the worker connects again."""


@dataclass(frozen=True)
class Hello:
    """The first message of a worker: its number in the crew, and how to kill it."""

    number: int
    process: int
    attempt: int
    host: str


@dataclass(frozen=True)
class TaskRequest:
    """One task for one worker; `data` are the bytes that it needs and does not have, by key."""

    unit: int
    task: Task
    work: TaskWork
    number: int
    data: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class DropRequest:
    """Names jobs whose parcels a worker may delete; it is not answered."""

    jobs: tuple[str, ...]


class RaisedError(Exception):
    """A task raised an exception that is not ours; `said` is the last line of its traceback.

    The exception itself is not sent: its class may exist in the worker only.
    """

    def __init__(self, said: str, memory: bool) -> None:
        self.said, self.memory = said, memory
        super().__init__(said, memory)

    def __str__(self) -> str:
        return self.said


@dataclass(frozen=True)
class TaskAnswer:
    """The value that a task returned, or its error: one of ours, or a RaisedError."""

    unit: int
    value: Any = None
    error: BaseException | None = None


def packed(message: object) -> bytes:
    """A message as bytes."""
    return pickle.dumps(message, protocol=5)


def unpacked(data: bytes) -> Any:
    """The message in bytes from the other side."""
    return pickle.loads(data)
