"""The interface of a table's log: which files its commits add. `delta` and `iceberg` have it.

A version is a text that the table knows a commit by. What a commit adds comes in one order, whoever
lists it and when; within a commit that is by the names of files, unless the table says otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from tidegate.errors import GateError, SourceError
from tidegate.microsecond import read_us
from tidegate.source.partition import Constants

EARLIEST, LATEST = "earliest", "latest"
FROM = "from"


@dataclass(frozen=True)
class Start:
    """Where a stream begins in a table: with all its rows, or with a commit.

    `from=earliest` is all there is; `latest` only what comes later; a version, or a time, begins
    with that commit, or the first one that is not before it.
    """

    text: str = EARLIEST

    @property
    def version(self) -> str | None:
        return self.text if self.text.isdigit() else None

    def time_us(self, where: str) -> int:
        """The time that is meant where it is none of the others."""
        try:
            return read_us(self.text)
        except ValueError as error:
            must = "from must be earliest, latest, a version or a time in ISO 8601"
            remedy = "Write for example from=2024-01-31T12:00:00."
            raise SourceError(where, must, self.text, remedy) from error


class Added(NamedTuple):
    """The files that the commits up to a version have added, in their order."""

    version: str
    paths: Sequence[str]


class LakeLog(ABC):
    """The log of one table. Paths are of this host, or `disk.RemotePath`."""

    where: str
    """How messages name the table."""

    id: str
    """What its versions are noted under in a checkpoint; the same for every run."""

    schema: pa.Schema
    """Its columns now, normalised."""

    pause_s: float
    """How long it is not looked at again at least: a look costs requests."""

    @abstractmethod
    def begin(self, start: Start) -> Added:
        """What a new stream begins with, and the version after which `since` goes on."""

    @abstractmethod
    def since(self, version: str) -> Added:
        """What was added after a version. Commits that only rewrite rows are passed over.

        Raises GateError for one that changes or removes rows, and SourceError where the log does
        not go back so far.
        """

    @abstractmethod
    def path(self, name: str) -> str:
        """A file by the text that it had among `Added.paths`, in this run or an earlier one."""

    def constants(self, path: str) -> Constants:
        """The columns that are not in a file itself, and their values. Default: none."""
        return ()

    def _removes(self, version: str, how: str) -> GateError:
        """What to say of a commit that does more than add rows."""
        return GateError(
            self.where,
            "rows must only be added to a table that is read as a stream",
            f"version {version}, which is {how}",
            "Start with another checkpoint and another --out: it reads the table as it is then.",
        )

    def _forgotten(self, version: str, got: str) -> SourceError:
        """What to say where a log does not have the commits any more that are to be read."""
        return SourceError(
            self.where,
            f"its log must go back to version {version}",
            got,
            "Keep the log for longer than a query is stopped. Start with another checkpoint and "
            "another --out: it reads the table as it is now.",
        )

    def _unusable(self, requirement: str, got: str) -> SourceError:
        """What to say of a feature of tables that changes how files are to be read."""
        remedy = "Rewrite the table without it, or copy the rows to another one."
        return SourceError(self.where, requirement, got, remedy)
