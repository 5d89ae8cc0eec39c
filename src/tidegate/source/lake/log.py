"""The interface of a table's log: which files its commits add. `delta` and `iceberg` implement it.

A version is the table's own text for a commit. The files of a commit come in one fixed order, in
every listing: by their names, unless the table has an order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from tidegate.calendar.microsecond import read_us
from tidegate.errors import GateError, SourceError
from tidegate.source.partition import Constants

EARLIEST, LATEST = "earliest", "latest"
FROM = "from"


@dataclass(frozen=True)
class Start:
    """Where a stream begins in a table: with all its rows, or with a commit.

    `earliest` takes all rows, `latest` only later commits. A version begins with that commit, a
    time with the first commit that is not before it.
    """

    text: str = EARLIEST

    @property
    def version(self) -> str | None:
        return self.text if self.text.isdigit() else None

    def time_us(self, where: str) -> int:
        """The text as a time; SourceError where it is none."""
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
    """The name of the table in messages."""

    id: str
    """The prefix of its versions in a checkpoint; the same for every run."""

    schema: pa.Schema
    """Its columns now, normalised."""

    pause_s: float
    """The least pause between two looks, because a look costs requests."""

    @abstractmethod
    def begin(self, start: Start) -> Added:
        """The files with which a new stream begins, and the version for the next `since`."""

    @abstractmethod
    def since(self, version: str) -> Added:
        """The files added after a version. Skips commits that only rewrite the same rows.

        Raises GateError for a commit that changes or removes rows, and SourceError where the log
        does not go back so far.
        """

    @abstractmethod
    def path(self, name: str) -> str:
        """The path of a file, by its text in `Added.paths` of this run or an earlier one."""

    def constants(self, path: str) -> Constants:
        """Columns that a file does not hold itself, with their values. Default: none."""
        return ()

    def _removes(self, version: str, how: str) -> GateError:
        """The error for a commit that does more than add rows."""
        return GateError(
            self.where,
            "rows must only be added to a table that is read as a stream",
            f"version {version}, which is {how}",
            "Start with another checkpoint and another --out: it reads the table as it is then.",
        )

    def _forgotten(self, version: str, got: str) -> SourceError:
        """The error where the log no longer has the commits that are needed."""
        return SourceError(
            self.where,
            f"its log must go back to version {version}",
            got,
            "Keep the log for longer than a query is stopped. Start with another checkpoint and "
            "another --out: it reads the table as it is now.",
        )

    def _unusable(self, requirement: str, got: str) -> SourceError:
        """The error for a table feature that changes how files must be read."""
        remedy = "Rewrite the table without it, or copy the rows to another one."
        return SourceError(self.where, requirement, got, remedy)
