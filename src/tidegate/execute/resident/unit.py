"""What a crew knows of the work it is asked for, and of the workers that have come."""

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
    """A unit of work has lost TRIES workers, the last of them on a host."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(host)


@dataclass(eq=False)
class WorkUnit:
    """A task that somebody waits for."""

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
    """A worker that has come; `has` are the keys of what it was sent, the newest last.

    `silent_s` is for how long nothing was heard of it.
    """

    channel: Channel
    hello: Hello
    unit: WorkUnit | None = None
    silent_s: float = 0.0
    has: dict[str, None] = field(default_factory=dict)
