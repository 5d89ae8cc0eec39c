"""Reads files as sources: a path, a folder or a glob stands for one source per file."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidegate import schedule
from tidegate.arrival import BEFORE
from tidegate.batch import MIN_US
from tidegate.clock import Clock
from tidegate.connector import Connector, ListedSource, Source
from tidegate.errors import GateError, OptionError, RunError, SourceError
from tidegate.remote.disk import remote_path
from tidegate.remote.scheme import is_remote_uri
from tidegate.schema import check_time
from tidegate.source.format import FileFacts, FileProbe, FileSource, FileUse, Look, NewFile
from tidegate.source.listing import list_files, local_path, name_order, split_glob
from tidegate.source.mark import readable, status_of
from tidegate.source.partition import Partitions
from tidegate.source.registry import check_reading, format_named
from tidegate.source.shape import FileShape, settled
from tidegate.source.subscription import AS_FOUND, Reading, Subscription
from tidegate.source.text.block import BLOCK_BYTES
from tidegate.source.text.compression import NONE, check_whole, packing_of
from tidegate.source.watch import watch_of
from tidegate.storage import disk

HEAD_BYTES = 8 * 2**20
"""How many bytes of a folder's first text file the types of its columns are inferred from."""

SAMPLE_BYTES = 2**20
"""How many bytes of each further text file."""

FINISHED_FILES = 64
"""How many of the text files that no longer count as growing each look checks."""

_AHEAD_FILES = 32
"""How many files of another file system are fetched together to be probed."""

_LOOK_S = 0.01
"""How often a waiting run looks for new local files and for files that have grown."""

_log = logging.getLogger(__name__)


class FilesConnector(Connector):
    """The files of one path, folder or glob; each is a source, named by its path.

    In a followed folder new files become sources behind the others, in the order of their names. A
    text file may grow until a later file appears. Files that cannot be read yet, because somebody
    is writing them, are waited for.

    A caller with many files takes them from `list_new`, opens each with `open` when it is its turn,
    and forgets it with `let_go`. So this grows with the files that were not let go, by a few
    numbers each, and with the names in a followed folder; not with what was read before.
    """

    def __init__(
        self,
        path: str,
        where: str,
        time: str | None,
        follow: bool = False,
        block_bytes: int | None = None,
        clock: Clock | None = None,
        reading: Reading = AS_FOUND,
    ) -> None:
        self._remote = path if isinstance(path, disk.RemotePath) else None
        with readable(path):
            self.several = not disk.is_file(path)
        self._path = path
        self._where = where
        self._time = time
        self._follow = follow
        self._reading = reading
        self._head_bytes = block_bytes or HEAD_BYTES
        self._files: dict[str, FileFacts] = {}
        self._arrived: list[NewFile] = []
        self._growing: FileSource[Any] | None = None
        self._grown: set[str] = set()
        self._finished: deque[tuple[str, int]] = deque(maxlen=FINISHED_FILES)
        self._looks = True
        self._grows = follow and self._remote is None
        """Whether text files may get longer. On other file systems files appear whole."""
        self._unseen: dict[str, tuple[int, int] | None] = {}
        """Files that are not sources yet, with the size and time of change of the last try."""
        self._clock = clock or schedule.current().clock
        self._came_at: dict[str, float] = {}
        """The arrival time of each file of a followed folder that was not let go."""
        self._looked_at = self._clock.now()
        with readable(path):
            watch = watch_of(path, clock, follow)
            self._format, found = list_files(path, where, follow, watch.look)
        self._watch = watch if follow and self.several else None
        check_reading(reading, self._format, where)
        as_written = not self.several or (self._remote is None and disk.is_folder(path))
        root = path if as_written else split_glob(path)[0]
        paths = found if self.several else []
        self._partitions = Partitions.of(root, paths, reading.schema, where)
        if reading.schema is not None:
            own = self._partitions.without(reading.schema)
            self._reading = replace(reading, schema=own)
        self._look = Look(
            where, time, self._reading, self._grows, block_bytes or BLOCK_BYTES, SAMPLE_BYTES
        )
        self._sample_rows = 0
        self._shape, arrived = self._agree(found)
        own = settled(self._shape.schema)
        self.schema = reading.schema or self._partitions.with_own(own)
        if time is not None:
            check_time(self.schema, time, where)
            self._partitions.check_time(time, where)
        self._add(arrived)
        self._single = None if self.several else self._opened(path)

    @staticmethod
    def at(subscription: Subscription) -> FilesConnector:
        """The files of a path or a URI of a file system."""
        uri, where = subscription.uri, subscription.where
        time, follow, reading = subscription.time, subscription.follow, subscription.reading
        if not is_remote_uri(uri):
            return FilesConnector(local_path(uri, where), where, time, follow, reading=reading)
        try:
            return FilesConnector(remote_path(uri), where, time, follow, reading=reading)
        except OptionError as error:
            raise SourceError(where, error.requirement, error.got, error.remedy) from error
        except RunError as error:
            raise SourceError(error.where, error.requirement, error.got, error.remedy) from error

    def discover(self) -> Sequence[Source]:
        """Open all files that were not let go, in order."""
        return self.first_sources(sys.maxsize)

    def first_sources(self, count: int) -> Sequence[Source]:
        if self._single is not None:
            return [self._single]
        self._look_again()
        return [self._opened(path) for path in list(self._files)[:count]]

    def live(self) -> bool:
        return self._follow

    @property
    def arrives(self) -> bool:
        """Whether files or rows may come during the run."""
        return self._follow and self._looks and (self.several or self._growing is not None)

    def expected_s(self) -> float | None:
        """How long to wait before another look; None on other file systems, which limit looks.

        A look at a local file or folder in which nothing happens costs a system call or two.
        """
        return _LOOK_S if self._follow and self._looks and self._remote is None else None

    @property
    def types_from(self) -> str:
        """Where the types of the columns come from, in words."""
        first = self._shape.path
        if self._reading.schema is not None:
            return "declared"
        if not self._format.text:
            return f"as in {first}"
        rows = "row" if self._sample_rows == 1 else f"{self._sample_rows:,} rows"
        return f"inferred from the first {rows} of {first}"

    def take_as_of_now(self) -> None:
        """Stop looking: files and rows that come from now on are for a later run."""
        self._looks = False
        if self._growing is not None:
            self._growing.take_as_of_now()

    def list_new(self) -> list[ListedSource]:
        """The files that were not listed before, in order. Costs O(new files)."""
        self._look_again()
        lows_us = self._lows_us(self._arrived)
        arrived, self._arrived = self._arrived, []
        return [
            ListedSource(a.path, low_us, a.facts.extent, self._is_growing(a.path), a.facts.digest)
            for a, low_us in zip(arrived, lows_us, strict=True)
        ]

    def open(self, id: str) -> Source:
        """Open a listed file as it was when it was listed."""
        return self._opened(id)

    def open_beyond(self, id: str, extent: int, digest: int) -> tuple[Source, int]:
        """Open a file that has grown since it was listed, and the position of its first new row.

        `extent` and `digest` are those it was listed with. Refuses a file that is another one now.
        """
        source = self._opened(id)
        return source, source.rows_within(extent, digest)

    def let_go(self, id: str) -> tuple[int, int] | None:
        """Forget a file that was read; its extent and digest if they are not those listed."""
        facts = self._files.pop(id)
        self._came_at.pop(id, None)
        if id not in self._grown:
            return None
        self._grown.discard(id)
        return facts.extent, facts.digest

    def has(self, id: str) -> bool:
        """Whether a file was there at the last look; True where nothing is followed."""
        return self._watch is None or self._watch.has(id)

    def _opened(self, path: str) -> FileSource[Any]:
        if self._growing is not None and self._is_growing(path):
            return self._growing
        facts, came_at = self._files[path], self._came_at.get(path)
        if self._remote is not None:
            path = disk.RemotePath(path, self._remote.disk, facts.status)
        source = facts.open(self._use(path))
        if came_at is not None:
            source.follow_arrivals(came_at, self._clock)
        return source

    def _use(self, path: str, grows: bool = False) -> FileUse:
        """How to open a file: with those constants from its folders that the stream has."""
        found = self._partitions.constants(path, self._where)
        constants = tuple((name, value) for name, value in found if name in self.schema.names)
        return FileUse(path, self.schema, self._time, constants, grows)

    def _is_growing(self, path: str) -> bool:
        return self._growing is not None and self._growing.path == path

    def _lows_us(self, arrived: Sequence[NewFile]) -> list[int]:
        if self._time is None:
            return [MIN_US] * len(arrived)
        return self._format.lows_us(arrived, self.schema.field(self._time))

    def _agree(self, found: Sequence[str]) -> tuple[FileShape, list[NewFile]]:
        """The common shape of all files at the start; empty text files are left for later."""
        shape: FileShape | None = None
        arrived = []
        for place, path in enumerate(found):
            if place % _AHEAD_FILES == 1:  # the first file is read in other sizes than the rest
                self._fetch_ahead(found[place : place + _AHEAD_FILES])
            probe = self._probe(path, self._head_bytes if shape is None else SAMPLE_BYTES)
            if probe is None:
                self._unseen[path] = None
                continue
            arrived.append(NewFile(path, probe.facts, probe.first))
            if shape is None:
                shape = FileShape(probe.schema, path, self._format.loose, self._format.text)
                self._sample_rows = probe.rows
            else:
                try:
                    shape = shape.joined(probe.schema, path, self._where)
                except SourceError as error:
                    raise self._disagreement(probe, shape, error) from error
        if shape is None:
            raise SourceError(
                self._where,
                self._format.needs,
                f"an empty file {found[0]}" if len(found) == 1 else "empty files only",
                "Write a first row, then start.",
            )
        return shape, arrived

    def _fetch_ahead(self, found: Sequence[str]) -> None:
        """Fetch the bytes that `probe` will read, side by side, on another file system."""
        if self._remote is None:
            return
        edge, said = self._format.edge, self._reading.get("compression")
        plain = [path for path in found if packing_of(path, said) == NONE]
        paths = [path for path in plain if isinstance(path, disk.RemotePath)]
        self._remote.disk.fetch([(path, *edge(path, SAMPLE_BYTES)) for path in paths])

    def _disagreement(self, probe: FileProbe, shape: FileShape, error: SourceError) -> SourceError:
        """The error for a file that does not fit a shape; for text with the line and column."""
        if shape.lacks(probe.schema):
            return error
        fault = self._format.first_fault(probe, settled(shape.schema), SAMPLE_BYTES)
        if fault is None:
            return error
        return SourceError(
            self._where,
            f"columns must have the types they have in {shape.path}",
            f"{probe.path}, {fault}",
            "Declare the columns of the stream to say which types are meant.",
        )

    def _look_again(self) -> None:
        if self._watch is None or not self._looks:
            return
        with readable(self._path):
            came = self._watch.look()
        self._watch.check_steady(self._unseen)
        for path in came:
            if path not in self._files and format_named(path) == self._format:
                self._unseen[path] = None
        arrived = []
        for path in sorted(self._unseen, key=name_order):
            probe = self._probe_unseen(path)
            if probe is not None:
                self._check_not_moved(probe)
                self._partitions.constants(path, self._where)
                try:
                    self._shape.check(probe.schema, path, self._where)
                except SourceError as error:
                    raise self._disagreement(probe, self._shape, error) from error
                arrived.append(NewFile(path, probe.facts, probe.first))
        for path, size_bytes in self._finished:
            check_not_grown(path, size_bytes)
        now = self._clock.now()
        self._add(arrived, (self._looked_at + now) / 2)  # they came between the two looks
        self._looked_at = now

    def _check_not_moved(self, probe: FileProbe) -> None:
        """Refuse the growing file under a new name: it would be read twice."""
        source = self._growing
        if source is not None and source.is_at(probe.path, probe.facts.status.inode):
            raise GateError(
                source.path,
                "a followed file must keep its name",
                f"{probe.path}, which is the same file",
                "Let rotated files have names that do not match; new rows go to a new file.",
            )

    def _add(self, arrived: Sequence[NewFile], came_at: float = BEFORE) -> None:
        """Make files sources. The last text file may grow; this ends the growth of earlier ones."""
        if not arrived:
            return
        self._finish()
        for path, facts, _ in arrived:
            self._files[path] = facts
            self._unseen.pop(path, None)
            if self._follow and self.several:
                self._came_at[path] = came_at
        self._arrived += arrived
        if not self._grows:
            return
        growing = [a for a in arrived if a.facts.may_grow]
        self._finished.extend((a.path, a.facts.status.bytes) for a in growing[:-1])
        for path, facts, _ in growing[-1:]:
            self._growing = facts.open(self._use(path, grows=True))
            self._growing.follow_arrivals(came_at, self._clock)

    def _finish(self) -> None:
        """End the growing file as it is now."""
        source = self._growing
        if source is None:
            return
        facts = source.finish()
        self._growing = None
        self._finished.append((source.path, facts.status.bytes))
        if source.path in self._files:
            self._files[source.path] = facts
            self._grown.add(source.path)

    def _probe(self, path: str, sample_bytes: int) -> FileProbe | None:
        where = self._where if path == self._path else f"{self._where}, file {path}"
        look = replace(self._look, where=where, sample_bytes=sample_bytes)
        return self._format.probe(path, look)

    def _probe_unseen(self, path: str) -> FileProbe | None:
        """Probe a new file of a followed folder; None while somebody still writes it."""
        status = status_of(path)
        if status is None:
            self._unseen.pop(path)
            return None
        tried = status.bytes, status.modified_ns
        if self._unseen[path] == tried:
            return None
        try:
            packing = packing_of(path, self._reading.get("compression"))
            if packing != NONE and self._format.text:
                check_whole(path, packing)
            probe = self._probe(path, SAMPLE_BYTES)
        except SourceError as error:
            probe = None
            level = logging.WARNING if self._unseen[path] is None else logging.DEBUG
            _log.log(level, "waiting for %s: %s", path, error)  # a warning only the first time
        if probe is None:
            self._unseen[path] = tried
        return probe


def check_not_grown(path: str, size_bytes: int) -> None:
    """Refuse a file that grew after its growth was ended: its new rows would be lost."""
    status = status_of(path)
    if status is not None and status.bytes > size_bytes:
        raise GateError(
            path,
            "a followed file must not grow after a later file has appeared",
            f"{status.bytes - size_bytes} more bytes",
            "Follow files that grow side by side as sources of their own, "
            "each by its path; a restart reads on.",
        )
