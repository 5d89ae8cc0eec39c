"""Reads a table of a lakehouse as a stream: its log lists the files, each of which is a source.

Files are read as those of a folder, but the log of the table lists them, commit by commit. Each
listing adds a source without rows, whose name carries the version up to which the log was listed.
So the manifest has that version beside the files that are not consumed yet, and a restart continues
there, whatever has become of earlier files.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from tidegate import schedule
from tidegate.arrival import BEFORE
from tidegate.batch import MAX_US
from tidegate.connector import Connector, ListedSource, Source
from tidegate.errors import SourceError
from tidegate.remote.lake.uri import LakeUri
from tidegate.schema import check_time
from tidegate.source.columnar import ColumnarFacts, ColumnarSource
from tidegate.source.format import FileUse
from tidegate.source.lake.log import EARLIEST, FROM, LATEST, Added, LakeLog, Start
from tidegate.source.lake.parquet import FORMAT
from tidegate.source.subscription import Subscription
from tidegate.storage import disk

_SIDE_BY_SIDE = 16
"""How many footers are read at once on another file system."""


class LakeConnector(Connector):
    """The files of one table; grows with those that were listed and not let go."""

    several = True
    title: ClassVar[str]
    """The name of the format in messages."""

    @classmethod
    def at(cls, subscription: Subscription) -> LakeConnector:
        """The connector of a URI; SourceError for a wrong URI or a table that cannot be read."""
        kind, remedy = f"a table of {cls.title}", "Leave them out: it has its columns."
        subscription.refuse_reading(kind, remedy)
        uri = LakeUri.parse(subscription.uri, subscription.where, SourceError)
        start = Start(uri.parameters.get(FROM, EARLIEST))
        return cls(cls.log_at(uri), subscription, start)

    @staticmethod
    @abstractmethod
    def log_at(uri: LakeUri) -> LakeLog:
        """The log of the table that a URI names."""

    def __init__(self, log: LakeLog, subscription: Subscription, start: Start) -> None:
        self._log = log
        self._where = subscription.where
        self._time = subscription.time
        self._follow = subscription.follow
        self._start = start
        self.schema: pa.Schema = log.schema
        if self._time is not None:
            check_time(self.schema, self._time, self._where)
        self._files: dict[str, tuple[ColumnarFacts, float]] = {}
        self._again: tuple[str, ...] = ()
        """The names that an earlier run has listed and not consumed."""
        self._version: str | None = None
        """The version up to which the log was listed."""
        self._looks = True
        self._clock = schedule.current().clock
        self._next_at = float("-inf")

    @property
    def types_from(self) -> str:
        return f"as in {self._log.where}"

    @property
    def arrives(self) -> bool:
        return self._follow and self._looks

    def live(self) -> bool:
        return self._follow

    def expected_s(self) -> float | None:
        return self._log.pause_s if self.arrives else None

    def take_as_of_now(self) -> None:
        """List the log once and no more: later commits are for a later run."""
        self._looks = False

    def discover(self) -> Sequence[Source]:
        return self.first_sources(sys.maxsize)

    def first_sources(self, count: int) -> Sequence[Source]:
        if self._version is None:
            self._look(self._log.begin(self._start).paths[:count], BEFORE)
        return [self.open(path) for path in list(self._files)[:count]]

    def resume(self, listed: Sequence[str], unread: Sequence[str]) -> None:
        versions = [name for name in listed if name.startswith(self._mark)]
        if versions:
            self._version = versions[-1].removeprefix(self._mark)
            self._again = tuple(unread)

    def list_new(self) -> Sequence[ListedSource]:
        """The files added since the last look. The first look begins, or continues a run."""
        now, first = self._clock.now(), self._next_at == float("-inf")
        if not first and (now < self._next_at or not self.arrives):
            return []
        self._next_at = now + self._log.pause_s
        again, self._again = self._again, ()
        listed = [self._noted(name) for name in again if name.startswith(self._mark)]
        kept = [self._log.path(name) for name in again if not name.startswith(self._mark)]
        listed += self._look(kept, BEFORE)
        begins = self._version is None
        if self._version is None:
            self._check_start()
            added = self._log.begin(self._start)
        elif self.frozen:
            added = Added(self._version, ())
        else:
            added = self._log.since(self._version)
        self._version = added.version
        listed += self._look(added.paths, BEFORE if first else now)
        # A listing without news adds no name, so that names grow with commits and not with looks.
        if self._time is not None and (begins or added.paths):
            listed.append(self._noted(f"{self._mark}{added.version}"))
        return listed

    def open(self, id: str) -> Source:
        facts, came_at = self._files[id]
        path, constants = self._log.path(id), self._log.constants(id)
        if isinstance(path, disk.RemotePath):
            path = disk.RemotePath(str(path), path.disk, facts.status)
        source: ColumnarSource = facts.open(FileUse(path, self.schema, self._time, constants))
        if self._follow:
            source.follow_arrivals(came_at, self._clock)
        return source

    def open_beyond(self, id: str, extent: int, digest: int) -> tuple[Source, int]:
        source = self.open(id)
        assert isinstance(source, ColumnarSource)
        return source, source.rows_within(extent, digest)

    def let_go(self, id: str) -> tuple[int, int] | None:
        self._files.pop(id, None)
        return None

    def has(self, id: str) -> bool:
        """Whether a name is still needed: a file that waits, or the newest version."""
        return id in self._files or id == f"{self._mark}{self._version}"

    def _check_start(self) -> None:
        """Refuse a run that begins after all commits and does not follow: it would read nothing."""
        if self._start.text == LATEST and not self.arrives:
            raise SourceError(
                self._where,
                "from=latest begins after what is there, and must be followed",
                "a run that takes what there is",
                "Run with --follow, or begin with from=VERSION or from=TIME.",
            )

    @property
    def _mark(self) -> str:
        return f"{self._log.id}@"

    @staticmethod
    def _noted(name: str) -> ListedSource:
        return ListedSource(name, MAX_US, 0)

    def _look(self, paths: Sequence[str], came_at: float) -> list[ListedSource]:
        """Read the footers of files, for their numbers of rows and least times."""
        found: dict[str, ColumnarFacts] = {}
        wanted = iter(paths)

        def some() -> None:
            for path in wanted:
                found[str(path)] = FORMAT.facts(path, f"{self._where}, file {path}", self._time)[0]

        if any(disk.is_remote(path) for path in paths):
            begun = [
                schedule.current().start(f"tidegate-look-{n}", some)
                for n in range(min(_SIDE_BY_SIDE, len(paths)))
            ]
            schedule.wait(begun)
            for done in begun:
                done.result()
        else:
            some()
        listed = []
        for path in map(str, paths):
            facts = found[path]
            self._files[path] = (facts, came_at)
            listed.append(ListedSource(path, facts.low_us, facts.extent, False, facts.digest))
        return listed
