"""Encodes what a crew and its workers send each other.

What is pickled here comes from the other side of a connection whose two ends have proved to know
the same secret (`channel`), and from nobody else.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.execute.work import TaskWork

Task = Callable[[TaskWork, int], Any]
"""What a worker is asked to call: a function of a module, by what was left for it and a number."""

BEAT = b""
"""What a worker sends now and then, so that one that stands still is told from one that works."""

BYE = b"bye"
"""What the driver sends when no more work will come. A connection that ends without it has broken,
and the worker has to come again."""


@dataclass(frozen=True)
class Hello:
    """The first message of a worker: its place in the crew, and how to get rid of it."""

    number: int
    process: int
    attempt: int
    host: str


@dataclass(frozen=True)
class TaskRequest:
    """One task for one worker. `data` is what it needs and has not been sent before, by key."""

    unit: int
    task: Task
    work: TaskWork
    number: int
    data: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class DropRequest:
    """Jobs whose parcels a worker need not hold any more; not answered."""

    jobs: tuple[str, ...]


class RaisedError(Exception):
    """What a task raised that is no error of ours: the last line of its traceback.

    The exception itself stays where it was raised: its class may be nowhere else.
    """

    def __init__(self, said: str, memory: bool) -> None:
        self.said, self.memory = said, memory
        super().__init__(said, memory)

    def __str__(self) -> str:
        return self.said


@dataclass(frozen=True)
class TaskAnswer:
    """What a task returned, or why it did not: an error of ours, or a RaisedError."""

    unit: int
    value: Any = None
    error: BaseException | None = None


def packed(message: object) -> bytes:
    """A message as bytes."""
    return pickle.dumps(message, protocol=5)


def unpacked(data: bytes) -> Any:
    """The message in bytes of the other side."""
    return pickle.loads(data)
