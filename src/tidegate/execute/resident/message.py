"""What a crew and its workers send each other, as bytes over a connection between two processes.

Connections are those of `multiprocessing.connection`: framed messages, and a shared secret that
both sides prove to have before the first one. What is pickled here comes from the other side of
such a connection only.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.execute.work import Work

Task = Callable[[Work, int], Any]
"""What a worker is asked to call: a function of a module, by what was left for it and a number."""

BEAT = b""
"""What a worker sends now and then, so that one that stands still is told from one that works."""


@dataclass(frozen=True)
class Hello:
    """The first message of a worker: its place in the crew, and how to get rid of it."""

    number: int
    process: int
    attempt: int
    host: str


@dataclass(frozen=True)
class Request:
    """One task for one worker. `data` is what it needs and has not been sent before, by key."""

    unit: int
    task: Task
    work: Work
    number: int
    data: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What a task returned, or why it did not."""

    unit: int
    value: Any = None
    error: BaseException | None = None


def packed(message: object) -> bytes:
    """A message as bytes."""
    return pickle.dumps(message, protocol=5)


def unpacked(data: bytes) -> Any:
    """The message in bytes of the other side."""
    return pickle.loads(data)
