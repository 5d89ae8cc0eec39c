"""What a source promises, between the formats that hold rows and the gate and tasks that read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import SourceError, near

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Reject:
    """A row that cannot be read: its position, why, and its text as it stands in the input."""

    seq: int
    reason: str
    raw: str


@dataclass(frozen=True)
class Rows:
    """The readable rows of a range of positions, in order, and the unreadable ones beside them.

    `seq[i]` is the position of row i of `table`, and `len(seq)` the number of rows also where no
    column was asked for. Whether a row is readable does not depend on which ones were.
    """

    table: pa.Table
    seq: Int64s
    rejects: tuple[Reject, ...] = ()

    @staticmethod
    def joined(pieces: Sequence[Rows], schema: pa.Schema) -> Rows:
        """Pieces one after the other; `schema` is that of the result where there are none."""
        if len(pieces) == 1:
            return pieces[0]
        if not pieces:
            return Rows(schema.empty_table(), np.empty(0, np.int64))
        return Rows(
            pa.concat_tables([p.table for p in pieces]),
            np.concatenate([p.seq for p in pieces]),
            tuple(r for p in pieces for r in p.rejects),
        )


class Reader(Protocol):
    """A range of positions of one source that a task can read; picklable."""

    @property
    def start(self) -> int: ...

    @property
    def stop(self) -> int: ...

    def read(self, columns: Sequence[str]) -> Rows:
        """The named columns in the order asked for, in normalised types."""


class Source(Protocol):
    """One physical stream on the driver; positions count from 0 and never change their row.

    One that others can change or replace may have `mark`, `check` and `confirm` too, to tell: see
    `tidegate.gate.track.Marked`.
    """

    @property
    def id(self) -> str:
        """Stable across restarts: the URI, with the file's place in it for folders."""

    @property
    def schema(self) -> pa.Schema:
        """Normalised; see `tidegate.schema`."""

    def extend(self, rows: int) -> int:
        """Make at least `rows` positions known where they exist; how many are known now."""

    def ended(self) -> bool:
        """Whether nothing beyond the known positions will ever come."""

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        """Event times of known positions in microseconds UTC, and which of them are valid.

        Invalid where the time is NULL, cannot be read or is out of range (`schema.event_times`).
        Only the time column is looked at: a row that is unreadable for another column still has
        its time here.
        """

    def reader(self, start: int, stop: int) -> Reader:
        """A reader of the known positions [start, stop)."""

    def breaks(self, start: int, stop: int) -> Sequence[int] | None:
        """The positions inside (start, stop) where a reader may begin and none decodes twice.

        None where that is any position.
        """


class Listed(NamedTuple):
    """A source that was found and is not open: what is known of it without reading its rows.

    `low_us` is a time that its first row is not below: MIN_US where that is not known or the row
    has no time, MAX_US where there are no rows. `extent` is how much there is of it, in a unit of
    its own: a source with more than it had when it was read has more to give. One that `grows` may
    get more rows while it is read. `digest` tells it from another of the same extent.
    """

    id: str
    low_us: int
    extent: int
    grows: bool = False
    digest: int = 0


class Connector(Protocol):
    """All sources that one URI stands for."""

    @property
    def schema(self) -> pa.Schema: ...

    def discover(self) -> Sequence[Source]:
        """The sources known now; called again while live, new ones appear at the end."""

    def live(self) -> bool:
        """Whether more sources, or more rows than the known sources have now, may come."""


def joined_times(parts: Sequence[tuple[Int64s, Bools]]) -> tuple[Int64s, Bools]:
    """The times of pieces that follow each other, and which are valid; a single one as it is."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def check_columns(columns: Sequence[str], schema: pa.Schema, where: str) -> None:
    """Refuse names that the schema does not have."""
    known = set(schema.names)
    for name in columns:
        if name not in known:
            raise SourceError(
                where,
                "columns to read must be there",
                f"column {name}",
                near(name, schema.names),
            )
