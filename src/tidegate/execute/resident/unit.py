"""The records of a crew: the units of work that it was given, and its connected workers."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from tidegate.execute.resident.channel import Channel
from tidegate.execute.resident.message import Hello, Task
from tidegate.execute.work import TaskWork

AskedTask = tuple[Task, TaskWork, int, dict[str, bytes]]
"""A function, its work, a number, and the data that the work needs by key."""


class DiedError(Exception):
    """A unit of work lost TRIES workers; `host` is where the last one died."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(host)


@dataclass(eq=False)
class WorkUnit:
    """A task and the future that somebody waits for; `lost` counts the workers that died of it."""

    id: int
    task: Task
    work: TaskWork
    number: int
    data: dict[str, bytes]
    future: Future[Any]
    later: bool = False
    own: bool = False
    lost: int = 0


@dataclass(eq=False)
class CrewMember:
    """A connected worker.

    `has` are the keys of the bytes that it was sent, newest last. `silent_s` is the time since its
    last message.
    """

    channel: Channel
    hello: Hello
    unit: WorkUnit | None = None
    silent_s: float = 0.0
    has: dict[str, None] = field(default_factory=dict)
