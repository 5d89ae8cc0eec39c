"""Files as sources, between a path, a folder or a glob and one source per file."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from tidegate.errors import SourceError
from tidegate.schema import check_time
from tidegate.source import csv, json
from tidegate.source.block import BLOCK_BYTES
from tidegate.source.listing import Found, list_files, list_more
from tidegate.source.parquet import probe_parquet
from tidegate.source.protocol import Source
from tidegate.source.shape import Shape
from tidegate.source.text import TextSource, probe_text

SAMPLE_BYTES = 2**20
"""How much of each further text file of a folder is looked at; of the first, a whole block."""

_log = logging.getLogger(__name__)


class Probe(Protocol):
    """A file that was looked at: its columns, and how to open it."""

    @property
    def path(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    def open(self, id: str, schema: pa.Schema, time: str | None, grows: bool) -> Source: ...


class FilesConnector:
    """The files of one path, folder or glob; each is a source, named by its path.

    Followed, new files become sources at the end, in the order of their names; a text file may
    grow until a later file appears. Files that cannot be read yet (being written) are waited for.
    """

    def __init__(
        self,
        path: str,
        where: str,
        time: str | None,
        follow: bool = False,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._path = path
        self._where = where
        self._time = time
        self._follow = follow
        self._block_bytes = block_bytes
        self._sources: dict[str, Source] = {}
        self._waiting: dict[str, tuple[int, int]] = {}
        found = list_files(path, where, follow)
        self._format = found[0].format
        self._shape, probes = self._agree(found)
        self.schema = self._shape.settled()
        if time is not None:
            check_time(self.schema, time, where)
        self._open(probes)

    def discover(self) -> Sequence[Source]:
        if self._follow and not os.path.isfile(self._path):
            self._look_again()
        return list(self._sources.values())

    def live(self) -> bool:
        return self._follow

    def _agree(self, found: Sequence[Found]) -> tuple[Shape, list[Probe]]:
        """The shape of all files there are at the start; empty text files have no say."""
        shape, probes = None, []
        for file in found:
            probe = self._probe(file.path, self._block_bytes if shape is None else SAMPLE_BYTES)
            if probe is None:
                continue
            probes.append(probe)
            if shape is None:
                loose, widens = self._format == "json", self._format != "parquet"
                shape = Shape(probe.schema, file.path, loose, widens)
            else:
                shape = shape.joined(probe.schema, file.path, self._where)
        if shape is None:
            raise SourceError(
                self._where,
                "a header line must be there"
                if self._format == "csv"
                else "a row must be there to tell the columns from",
                f"an empty file {found[0].path}" if len(found) == 1 else "empty files only",
                "Write a first row, then start.",
            )
        return shape, probes

    def _look_again(self) -> None:
        fresh: list[Probe] = []
        for file in list_more(self._path, self._format):
            if file.path in self._sources or not self._changed(file.path):
                continue
            probe = self._probe_waiting(file.path)
            if probe is not None:
                self._shape.check(probe.schema, file.path, self._where)
                fresh.append(probe)
        for source in self._sources.values():
            if isinstance(source, TextSource):
                source.check_finished()
        self._open(fresh)

    def _open(self, probes: Sequence[Probe]) -> None:
        if not probes:
            return
        for source in self._sources.values():
            if isinstance(source, TextSource):
                source.finish()
        for probe in probes:
            grows = self._follow and probe is probes[-1]
            self._sources[probe.path] = probe.open(probe.path, self.schema, self._time, grows)
            self._waiting.pop(probe.path, None)

    def _probe(self, path: str, sample_bytes: int) -> Probe | None:
        where = self._where if path == self._path else f"{self._where}, file {path}"
        if self._format == "parquet":
            return probe_parquet(path, where)
        read_head = csv.read_head if self._format == "csv" else json.read_head
        return probe_text(
            path, read_head, self._time, self._follow, where, self._block_bytes, sample_bytes
        )

    def _probe_waiting(self, path: str) -> Probe | None:
        """Look at a new file of a followed folder; None while it is still being written."""
        try:
            probe = self._probe(path, SAMPLE_BYTES)
        except SourceError as error:
            probe = None
            _log.warning("waiting for %s: %s", path, error)
        if probe is None and os.path.exists(path):
            status = os.stat(path)
            self._waiting[path] = status.st_size, status.st_mtime_ns
        return probe

    def _changed(self, path: str) -> bool:
        """Whether a file that could not be read is another one now."""
        if path not in self._waiting:
            return True
        if not os.path.exists(path):
            return False
        status = os.stat(path)
        return self._waiting[path] != (status.st_size, status.st_mtime_ns)
