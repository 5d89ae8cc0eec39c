"""Files as sources, between a path, a folder or a glob and one source per file."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeGuard

from tidegate import disk, schedule
from tidegate.arrival import BEFORE, Together
from tidegate.batch import MIN_US
from tidegate.clock import Clock
from tidegate.errors import GateError, SourceError
from tidegate.schema import check_time
from tidegate.source import csv, json
from tidegate.source.block import BLOCK_BYTES
from tidegate.source.declared import check_fits
from tidegate.source.head import TextProbe, first_times, probe_text, text_edge
from tidegate.source.listing import (
    Found,
    is_of_format,
    list_files,
    name_order,
    packing_of,
    paths_of,
)
from tidegate.source.mark import readable, reused, status_of
from tidegate.source.opening import Opening
from tidegate.source.parquet import (
    ParquetFacts,
    ParquetProbe,
    ParquetSource,
    parquet_edge,
    prober,
)
from tidegate.source.partition import Constants, Partitions, glob_root
from tidegate.source.protocol import Listed, Source
from tidegate.source.reading import AS_FOUND, Reading
from tidegate.source.remote_listing import RemoteWatch, remote_paths
from tidegate.source.shape import Shape
from tidegate.source.text_file import TextFacts, TextSource, check_not_grown
from tidegate.source.unpack import NONE, check_whole
from tidegate.source.watch import Watch

HEAD_BYTES = 8 * 2**20
"""How much of the first text file of a folder is looked at for the types of its columns."""

SAMPLE_BYTES = 2**20
"""How much of each further one."""

FINISHED_FILES = 64
"""Of the text files that no longer count as growing, how many are checked at each look."""

_AHEAD_FILES = 32
"""How many files of another file system are looked at together."""

_LOOK_S = 0.01
"""How often a run that waits looks whether local files have grown, or new ones have come."""

_log = logging.getLogger(__name__)

Facts = ParquetFacts | TextFacts


class _Arrived(NamedTuple):
    """A file that was looked at and not listed yet; `first` is the text of its first row."""

    path: str
    facts: Facts
    first: bytes = b""

    @staticmethod
    def of(probe: ParquetProbe | TextProbe) -> _Arrived:
        first = probe.head.first if isinstance(probe, TextProbe) else b""
        return _Arrived(probe.path, probe.facts(), first)


def _may_grow(facts: Facts) -> TypeGuard[TextFacts]:
    return isinstance(facts, TextFacts) and facts.packing == NONE


class FilesConnector:
    """The files of one path, folder or glob; each is a source, named by its path.

    Followed, new files become sources at the end, in the order of their names; a text file may
    grow until a later file appears. Files that cannot be read yet (being written) are waited for.

    Who reads many files takes them from `arrivals`, opens each with `open` when its turn has come
    and lets go of it with `let_go`. What is kept are a few numbers per file that was not let go,
    and of a followed folder the names in it; not what was read before.
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
        self._block_bytes = block_bytes or BLOCK_BYTES
        self._head_bytes = block_bytes or HEAD_BYTES
        self._files: dict[str, Facts] = {}
        self._arrived: list[_Arrived] = []
        self._growing: TextSource | None = None
        self._grown: set[str] = set()
        self._finished: deque[tuple[str, int]] = deque(maxlen=FINISHED_FILES)
        self._looks = True
        self._grows = follow and self._remote is None
        """Whether text files may get longer; elsewhere than here files are whole from the first."""
        self._unseen: dict[str, tuple[int, int] | None] = {}
        """Files that are no sources yet, with their size and time of change when last tried."""
        self._clock = clock or schedule.current().clock
        self._came_at: dict[str, float] = {}
        """When each file that was not let go came, where it is followed."""
        self._looked_at = self._clock.now()
        self._watch = self._watch_of(clock) if follow and self.several else None
        look = self._all_paths if self._watch is None else self._watch.look
        with readable(path):
            found = list_files(path, where, follow, look)
        self._format = found[0].format
        reading.check(self._format, where)
        paths = [f.path for f in found] if self.several else []
        as_written = not self.several or (self._remote is None and disk.is_folder(path))
        root = path if as_written else glob_root(path)
        self._partitions = Partitions.of(root, paths, reading.schema, where)
        if reading.schema is not None:
            own = self._partitions.without(reading.schema)
            self._reading = replace(reading, schema=own)
        self._sample_rows = 0
        self._shape, arrived = self._agree(found)
        own = self._shape.settled()
        self.schema = reading.schema or self._partitions.with_own(own)
        if time is not None:
            check_time(self.schema, time, where)
            self._partitions.check_time(time, where)
        self._add(arrived)
        self._single = None if self.several else self._opened(path)

    def discover(self) -> Sequence[Source]:
        """The files that were not let go, in order; each is opened when it is taken from here."""
        if self._single is not None:
            return [self._single]
        self._look_again()
        return Opening(self.open, list(self._files))

    def live(self) -> bool:
        return self._follow

    @property
    def arrives(self) -> bool:
        """Whether files or rows may come while they are read."""
        return self._follow and self._looks and (self.several or self._growing is not None)

    def expected_s(self) -> float | None:
        """How long to wait before another look; elsewhere than here, looks are rare by themselves.

        A look at a local file or folder in which nothing happens costs a system call or two.
        """
        return _LOOK_S if self._follow and self._looks and self._remote is None else None

    @property
    def types_from(self) -> str:
        """Where the types of the columns come from, for people."""
        first = self._shape.path
        if self._reading.schema is not None:
            return "declared"
        if self._format not in ("csv", "json"):
            return f"as in {first}"
        rows = "row" if self._sample_rows == 1 else f"{self._sample_rows:,} rows"
        return f"inferred from the first {rows} of {first}"

    def take_as_of_now(self) -> None:
        """Look no more: files and rows that come from now on are for a later run."""
        self._looks = False
        if self._growing is not None:
            self._growing.take_as_of_now()

    def arrivals(self) -> list[Listed]:
        """The files that were not listed before, in order; costs what the new ones cost."""
        self._look_again()
        lows_us = self._lows_us(self._arrived)
        arrived, self._arrived = self._arrived, []
        return [
            Listed(a.path, low_us, a.facts.extent, self._is_growing(a.path), a.facts.digest)
            for a, low_us in zip(arrived, lows_us, strict=True)
        ]

    def open(self, id: str) -> Source:
        """A file that was listed, as it was then."""
        return self._opened(id)

    def open_beyond(self, id: str, extent: int, digest: int) -> tuple[Source, int]:
        """A file that has more than it had, and the position of its first row beyond that.

        `extent` and `digest` are those it was listed with; refuses a file that is another one now.
        """
        source = self._opened(id)
        if not isinstance(source, TextSource):
            raise reused(id, "another file")
        return source, source.rows_within(extent, digest)

    def let_go(self, id: str) -> tuple[int, int] | None:
        """Forget a file that was read; its extent and digest where it has others than listed."""
        facts = self._files.pop(id)
        self._came_at.pop(id, None)
        if id not in self._grown:
            return None
        self._grown.discard(id)
        return facts.extent, facts.digest

    def has(self, id: str) -> bool:
        """Whether a file was there at the last look; always so where nobody looks again."""
        return self._watch is None or self._watch.has(id)

    def _all_paths(self) -> Sequence[str]:
        return paths_of(self._path) if self._remote is None else remote_paths(self._remote)

    def _watch_of(self, clock: Clock | None) -> Watch | RemoteWatch:
        if self._remote is None:
            return Watch(self._path, clock)
        return RemoteWatch(self._remote, clock)

    def _opened(self, path: str) -> ParquetSource | TextSource:
        if self._growing is not None and self._is_growing(path):
            return self._growing
        facts, came_at = self._files[path], self._came_at.get(path)
        if self._remote is not None:
            path = disk.RemotePath(path, self._remote.disk, facts.status)
        source = facts.open(path, self.schema, self._time, self._constants(path))
        if came_at is not None and isinstance(source, TextSource):
            source.follow_arrivals(came_at, self._clock)
        elif came_at is not None:
            source.arrivals = Together(came_at)
        return source

    def _constants(self, path: str) -> Constants:
        """The columns that a file has from its folders, of those the stream has."""
        found = self._partitions.constants(path, self._where)
        return tuple((name, value) for name, value in found if name in self.schema.names)

    def _is_growing(self, path: str) -> bool:
        return self._growing is not None and self._growing.path == path

    def _lows_us(self, arrived: Sequence[_Arrived]) -> list[int]:
        if self._time is None or not arrived:
            return [MIN_US] * len(arrived)
        texts = [(a.facts.format, a.first) for a in arrived if isinstance(a.facts, TextFacts)]
        if texts:
            return first_times(texts, self.schema.field(self._time))
        return [a.facts.low_us for a in arrived if isinstance(a.facts, ParquetFacts)]

    def _agree(self, found: Sequence[Found]) -> tuple[Shape, list[_Arrived]]:
        """The shape of all files there are at the start; empty text files have no say."""
        shape: Shape | None = None
        arrived = []
        for place, file in enumerate(found):
            if place % _AHEAD_FILES == 1:
                self._fetch_ahead(found[place : place + _AHEAD_FILES])
            probe = self._probe(file.path, self._head_bytes if shape is None else SAMPLE_BYTES)
            if probe is None:
                self._unseen[file.path] = None
                continue
            arrived.append(_Arrived.of(probe))
            if shape is None:
                loose, widens = self._format == "json", self._format in ("csv", "json")
                shape = Shape(probe.schema, file.path, loose, widens)
                self._sample_rows = probe.head.rows if isinstance(probe, TextProbe) else 0
            else:
                try:
                    shape = shape.joined(probe.schema, file.path, self._where)
                except SourceError as error:
                    raise self._disagreement(probe, shape, error) from error
        if shape is None:
            raise SourceError(
                self._where,
                "a header line must be there"
                if self._format == "csv"
                else "a row must be there to tell the columns from",
                f"an empty file {found[0].path}" if len(found) == 1 else "empty files only",
                "Write a first row, then start.",
            )
        return shape, arrived

    def _fetch_ahead(self, found: Sequence[Found]) -> None:
        """Elsewhere, have what files are looked at for: one by one, requests take their time."""
        if self._remote is None:
            return
        look = text_edge if self._format in ("csv", "json") else parquet_edge
        said = self._reading.get("compression")
        plain = [f.path for f in found if packing_of(f.path, said) == NONE]
        paths = [path for path in plain if isinstance(path, disk.RemotePath)]
        self._remote.disk.fetch([(path, *look(path, SAMPLE_BYTES)) for path in paths])

    def _disagreement(
        self, probe: ParquetProbe | TextProbe, shape: Shape, error: SourceError
    ) -> SourceError:
        """What to say of a file that is not of a shape: of text, the line and the column."""
        if not isinstance(probe, TextProbe) or shape.lacks(probe.schema):
            return error
        fault = probe.first_fault(shape.settled(), SAMPLE_BYTES)
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
        if isinstance(self._watch, RemoteWatch):
            self._watch.check_steady(self._unseen)
        for path in came:
            if path not in self._files and is_of_format(path, self._format):
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
                arrived.append(_Arrived.of(probe))
        for path, size_bytes in self._finished:
            check_not_grown(path, size_bytes)
        now = self._clock.now()
        self._add(arrived, (self._looked_at + now) / 2)  # as likely before as after
        self._looked_at = now

    def _check_not_moved(self, probe: ParquetProbe | TextProbe) -> None:
        """Refuse the file that grows under a new name: it would be read twice."""
        source = self._growing
        if source is None or not isinstance(probe, TextProbe):
            return
        if source.is_at(probe.path, probe.status.inode):
            raise GateError(
                source.path,
                "a followed file must keep its name",
                f"{probe.path}, which is the same file",
                "Let rotated files have names that do not match; new rows go to a new file.",
            )

    def _add(self, arrived: Sequence[_Arrived], came_at: float = BEFORE) -> None:
        """Make files sources; of text files the last one may grow, those before it no longer."""
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
        texts = [(a.path, a.facts) for a in arrived if _may_grow(a.facts)]
        self._finished.extend((path, facts.size_bytes) for path, facts in texts[:-1])
        for path, facts in texts[-1:]:
            constants = self._constants(path)
            self._growing = facts.open_growing(path, self.schema, self._time, constants)
            self._growing.follow_arrivals(came_at, self._clock)

    def _finish(self) -> None:
        """Let the file that grows end as it is now."""
        source = self._growing
        if source is None:
            return
        source.finish()
        self._growing = None
        self._finished.append((source.path, source.size_bytes))
        if source.path in self._files:
            self._files[source.path] = source.facts()
            self._grown.add(source.path)

    def _probe(self, path: str, sample_bytes: int) -> ParquetProbe | TextProbe | None:
        where = self._where if path == self._path else f"{self._where}, file {path}"
        declared = self._reading.schema
        if self._format in ("parquet", "orc"):
            probe = prober(self._format)(path, where, self._time)
            if declared is None:
                return probe
            check_fits(declared, probe.schema, where)
            return replace(probe, schema=declared)
        packing = packing_of(path, self._reading.get("compression"))
        return probe_text(
            path,
            csv.read_head if self._format == "csv" else json.read_head,
            self._time,
            self._grows and packing == NONE,
            where,
            self._block_bytes,
            sample_bytes,
            self._reading,
            packing,
        )

    def _probe_unseen(self, path: str) -> ParquetProbe | TextProbe | None:
        """Look at a new file of a followed folder; None while it is still being written."""
        status = status_of(path)
        if status is None:
            self._unseen.pop(path)
            return None
        tried = status.bytes, status.modified_ns
        if self._unseen[path] == tried:
            return None
        try:
            packing = packing_of(path, self._reading.get("compression"))
            if packing != NONE and self._format in ("csv", "json"):
                check_whole(path, packing)
            probe = self._probe(path, SAMPLE_BYTES)
        except SourceError as error:
            probe = None
            level = logging.WARNING if self._unseen[path] is None else logging.DEBUG
            _log.log(level, "waiting for %s: %s", path, error)  # once: it may grow for long
        if probe is None:
            self._unseen[path] = tried
        return probe
