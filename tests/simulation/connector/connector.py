"""The interface of a connector in simulated courses: how it is reached, filled and read."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import tidegate as tg
from tests.simulation.connector.boundary import BESIDE, KINDS, Boundary
from tidegate.sink.folder.files import FileSink
from tidegate.sink.protocol import Sink
from tidegate.testing.simulation.disk import SimDisk
from tidegate.testing.simulation.world import World

START = datetime(2024, 1, 1, tzinfo=UTC)
SECONDS = (*range(0, 56, 7), 20, *range(56, 168, 7), 70, *range(168, 238, 7))
"""When rows come; two of them are late."""

PARTS, AT_FIRST = 6, 3
"""In which input comes that grows, and how many are there when a course begins."""

ROUTES = "abc"
OUT = "/out"

Found = dict[str, list[str]]
"""By output, and by side output, the rows that a reader sees, in their order."""


def rows(late: bool) -> list[dict[str, Any]]:
    """What a query reads. Without late rows it does not matter how sources share them."""
    seconds = SECONDS if late else sorted(SECONDS)
    return [
        {"at": START + timedelta(seconds=s), "route": ROUTES[i % len(ROUTES)]}
        for i, s in enumerate(seconds)
    ]


def counted(rides: tg.Stream) -> tg.Stream:
    """The query of all courses, in batches of about ten rows."""
    return rides.window("1 minute").group_by("route").agg(n=tg.count())


class Connector(ABC):
    """A sink or a source, with a boundary that its clients are behind while it is `entered`."""

    kinds: Sequence[str] = tuple(kind for kind in KINDS if kind != BESIDE)
    """The faults that its calls meet."""

    asides: frozenset[str] = frozenset()
    """Calls whose answers are only told to people; they need not meet every fault."""

    grows = False
    """Whether the input grows between lives; all but the last take what there is."""

    forgets = False
    """Whether a place can lose what a restart asks it first (`forget`)."""

    def __init__(self) -> None:
        self.boundary = Boundary()

    @abstractmethod
    def entered(self) -> AbstractContextManager[None]:
        """Put the boundary in front of the clients that the package makes, within the block."""

    @abstractmethod
    def place(self) -> Any:
        """A new place for a course."""

    @abstractmethod
    def query(self, session: tg.Session, place: Any) -> tg.Stream:
        """The query; called in each life, as a program would."""

    @abstractmethod
    def sink(self, place: Any) -> Sink:
        """The sink of a life."""

    @abstractmethod
    def read(self, world: World, place: Any) -> Found:
        """What a reader sees, who drops and sorts nothing beyond what users are told to."""

    def disk(self, world: World) -> SimDisk:
        """The disk of the drivers."""
        return world.disk

    def grow(self, place: Any) -> bool:
        """Add a part of the input, between two lives; whether there was one to add."""
        return False

    def beside(self, place: Any) -> None:
        """Write as another writer would, what `read` tells apart."""
        raise NotImplementedError

    def forget(self, place: Any) -> None:
        """Lose what a restart asks first, as a server does by itself after a long time."""
        raise NotImplementedError


class SinkConnector(Connector):
    """A sink under test; the input is in memory, and two of its rows are late."""

    def query(self, session: tg.Session, place: Any) -> tg.Stream:
        source = tg.MemorySource(rows(late=True), time="at")
        source.end()
        return counted(session.stream(source, time="at", name="rides"))


class SourceConnector(Connector):
    """A source under test, which grows from life to life; the output is files on the simulated
    disk."""

    grows = True

    def __init__(self) -> None:
        super().__init__()
        self._left: dict[Any, list[list[dict[str, Any]]]] = {}
        """By place what is to be added."""

    def place(self) -> Any:
        place = self.new_place()
        every = rows(late=False)
        size = -(-len(every) // PARTS)
        self._left = {place: [every[i : i + size] for i in range(0, len(every), size)]}
        for _ in range(AT_FIRST):
            self.grow(place)
        return place

    def grow(self, place: Any) -> bool:
        if self._left[place]:
            self.add(place, self._left[place].pop(0))
            return True
        return False

    @abstractmethod
    def new_place(self) -> Any:
        """Where there is nothing yet."""

    @abstractmethod
    def add(self, place: Any, part: list[dict[str, Any]]) -> None:
        """Put rows behind those that are there."""

    @abstractmethod
    def uri(self, place: Any) -> str:
        """What a stream is told to read."""

    def query(self, session: tg.Session, place: Any) -> tg.Stream:
        return counted(session.stream(self.uri(place), time="at", name="rides"))

    def sink(self, place: Any) -> Sink:
        return FileSink(OUT, "json")

    def read(self, world: World, place: Any) -> Found:
        """Also rows that came as late ones, of which there must be none: what is read again is."""
        parts = sorted(p for p in world.disk.files(OUT) if "/batch=" in p)
        found: Found = {"rows": [], "late": []}
        for path in parts:
            lines = world.disk.read(path).decode().splitlines()
            if "/_late" in path:
                found["late"] += lines
            elif "/_" not in path:
                found["rows"] += [repr(plain(json.loads(line))) for line in lines]
        return found


def plain(row: dict[str, Any]) -> tuple[str, str, int]:
    """A row of the query, whoever has read it: window, route and count."""
    start = row["window_start"]
    if isinstance(start, str):
        start = datetime.fromisoformat(start)
    if start.tzinfo is None:
        start = start.replace(tzinfo=UTC)
    return start.astimezone(UTC).isoformat(), row["route"], row["n"]
