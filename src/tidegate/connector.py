"""The base classes of inputs: `Connector` stands for a URI, `Source` for one physical stream of it.

A new kind of input derives from both, overrides what is marked so and inherits the rest. The gate
and the driver call these methods and ask no connector of which kind it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.arrival import ArrivalTimes
from tidegate.batch import MIN_US
from tidegate.errors import SourceError, near

if TYPE_CHECKING:
    from tidegate.state.store import Store

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
    def of_range(table: pa.Table, start: int, stop: int) -> Rows:
        """A table whose rows are those of the positions [start, stop)."""
        return Rows(table, np.arange(start, stop, dtype=np.int64))

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


class Reader(ABC):
    """Positions [start, stop) of one source that a task can read, on any host; picklable."""

    start: int
    stop: int

    @property
    def input_file(self) -> str | None:
        """A file that it reads and that every host must see; asked before the first batch.

        Default: None, it needs no file.
        """
        return None

    @abstractmethod
    def read(self, columns: Sequence[str]) -> Rows:
        """The named columns in the order asked for, in normalised types."""


@dataclass(frozen=True)
class OuterReader(Reader):
    """A reader that changes the rows another one reads of the same positions."""

    inner: Reader
    start: int
    stop: int

    @property
    def input_file(self) -> str | None:
        return self.inner.input_file


class ListedSource(NamedTuple):
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


class Source(ABC):
    """One physical stream on the driver; positions never change their row.

    The gate calls, in one thread: at a restart `check` with what `mark` gave before, and `start`,
    else `begin`; then for each batch `extend`, `times` and `ended` as far as it looks, `reader` and
    `absent` for what the batch takes, `confirm` before the commit and `mark` for its manifest, and
    `answered` after it.
    `extent` and `untaken` are asked at any time between, by who watches. Abstract methods must be
    there; the others have defaults.
    """

    id: str
    """Stable across restarts: the URI, with the file's place in it for folders."""

    schema: pa.Schema
    """Normalised; see `tidegate.schema`."""

    arrivals: ArrivalTimes | None = None
    """When its tuples arrived; None where all of them were there from the first."""

    first = 0
    """The position it begins with; read when it joins, after `begin` or `start`."""

    promised_us = MIN_US
    """A time that its tuples are not below; read when it joins for the first time."""

    newest_before_us = MIN_US
    """The newest event time before `first`, of a source whose beginning another one has given;
    read when it joins for the first time."""

    pieced = False
    """Whether event times are decoded by pieces (row groups, blocks of text); only then the gate
    asks for `piece_end` and `low_us`."""

    @abstractmethod
    def extend(self, rows: int) -> int:
        """Make at least `rows` positions known where they exist; how many are known now."""

    @abstractmethod
    def ended(self) -> bool:
        """Whether nothing beyond the known positions will ever come."""

    @abstractmethod
    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        """Event times of known positions in microseconds UTC, and which of them are valid.

        Invalid where the time is NULL, cannot be read or is out of range (`schema.event_times`).
        Only the time column is looked at: a row that is unreadable for another column still has
        its time here.
        """

    @abstractmethod
    def reader(self, start: int, stop: int) -> Reader:
        """A reader of the known positions [start, stop)."""

    def begin(self) -> None:
        """Find where to begin, because no earlier run has read of its URI. Default: nothing."""
        return None

    def start(self, position: int | None) -> None:
        """Begin at a position, because those before it are not needed any more.

        None where a run with other sources of the URI has begun without it: begin with the oldest
        row there is. Refuses where rows from there on are gone. Default: nothing to do.
        """
        return None

    def absent(self, start: int, stop: int) -> int:
        """How many of the positions of a range, read for the first time, have no row at all.

        Default: none.
        """
        return 0

    def outside(self, start: int, stop: int) -> int:
        """How many of those `absent` have a row that is left to another source of the stream.

        Default: none.
        """
        return 0

    def breaks(self, start: int, stop: int) -> Sequence[int] | None:
        """The positions inside (start, stop) where a reader may begin and none decodes twice.

        Default: None, any position.
        """
        return None

    def piece_end(self, position: int) -> int:
        """Where the piece ends that holds a known position; asked where `pieced`."""
        raise NotImplementedError(f"{self.id} has no pieces")

    def low_us(self, position: int) -> int:
        """A time that nothing from a known position to the end of its piece is below.

        Default: MIN_US, which says that this is not known, or that some of it has no time.
        """
        return MIN_US

    def extent(self, position: int) -> tuple[int, int, str] | None:
        """How much lies before a position, how much there is, and in which unit (rows or bytes).

        Default: None, not known.
        """
        return None

    def untaken(self, position: int) -> tuple[int, str] | None:
        """How much has come by now from a position on, in rows or bytes. Default: not known."""
        return None

    def place_of(self, position: int) -> Mapping[str, Any]:
        """Where the row of a position stands, for people and as JSON. Default: id and position."""
        return {"source": self.id, "position": position}

    def mark(self, position: int) -> Mapping[str, Any] | None:
        """What tells later whether the tuples before a position, which is not 0, are the same.

        Goes to the manifest as JSON. Default: None, nobody else can change this source.
        """
        return None

    def check(self, saved: Mapping[str, Any], position: int, again: bool) -> None:
        """Refuse a source in which the tuples before a position are not those of a mark.

        `again` says that it will be read on, or once more. Default: all is well.
        """
        return None

    def holds(self, saved: Mapping[str, Any]) -> bool:
        """Whether all that a mark tells of is in it, also what is not read yet; may cost a pass."""
        return True

    def answered(self, position: int) -> None:
        """Let go of what is held of the tuples before a position: a commit has answered them.

        Nobody asks for them in this run any more. Default: of when they arrived.
        """
        if self.arrivals is not None:
            self.arrivals.drop(position)

    def confirm(self) -> None:
        """Refuse a source whose last tuple turned out not to be whole; before a commit."""
        return None


class Connector(ABC):
    """All sources that one URI stands for, or one object of the program.

    The driver calls, in this order: `for_run` for objects of the program, `take_as_of_now` in a run
    with --available-now, and `legs`; then of each of these `attach` once, `tell`; for every batch
    `discover` (or `list_new` and `open` where there are `several`, at a restart after `resume`),
    `live`, and after the commit `committed`, and `forget` or `let_go`; between batches
    `expected_s`, `arriving` and `unseen_rows`; at the end `close` and `tell_no_more`. A look at the
    columns calls the constructor and reads `schema`, no more. Only `discover` and `live` must be
    there; SourceError from any of them ends the run with its words.
    """

    schema: pa.Schema
    """Of all its sources; normalised."""

    several = False
    """Whether it may stand for many sources that are listed first and opened in their turn."""

    once = False
    """Whether it delivers each source once: then `forget` is called, and nobody reads it for a
    look at the first rows."""

    frozen = False
    """Whether what the first run lists is all there ever is: a restart passes over other sources,
    and refuses those that are needed and have changed. Asked where `several`."""

    @property
    def types_from(self) -> str:
        """Where the types of the columns come from, for people. Default: nothing to say."""
        return ""

    @property
    def arrives(self) -> bool:
        """Whether tuples arrive while they are read, so that latency and backlog are measured.

        Asked once, when it is let in. Default: they do not.
        """
        return False

    @abstractmethod
    def discover(self) -> Sequence[Source]:
        """The sources known now; called again while live, new ones appear at the end."""

    def first_sources(self, count: int) -> Sequence[Source]:
        """The first of the sources known now, for a look at some rows. Default: by `discover`."""
        return self.discover()[:count]

    @abstractmethod
    def live(self) -> bool:
        """Whether more sources, or more rows than the known sources have now, may come."""

    def beginning(self, rows: int) -> Connector:
        """The first rows in the order of their times, for a preview; live where there are more.

        At least `rows` where there are so many. Default: itself, of which no more is read.
        """
        return self

    def legs(self) -> Sequence[Connector]:
        """The connectors that are let in for it, in this order. Default: itself."""
        return (self,)

    def for_run(self, use: int) -> Connector:
        """A connector of the same input for one run; `use` counts its places in the query.

        Default: itself, which any number of runs may read.
        """
        return self

    def take_as_of_now(self) -> None:
        """Give what there is when the run starts, and nothing newer, and stay live for all that.

        Raises SourceError where that means nothing. Default: it does so anyhow.
        """
        return None

    def attach(self, store: Store, follow: bool, available_now: bool = False) -> None:
        """Begin to read for a run, with its checkpoint to keep files in. Default: nothing."""
        return None

    def close(self) -> None:
        """Stop; when it returns nothing is read or written any more. Default: nothing."""
        return None

    def tell(self, listener: Callable[[], None]) -> None:
        """Call this, in any thread, after something has come that `discover` and `extend` show.

        Default: never; the driver asks again after `expected_s`.
        """
        return None

    def tell_no_more(self, listener: Callable[[], None]) -> None:
        """Do not call this listener any more."""
        return None

    def expected_s(self) -> float | None:
        """In how many seconds something more may be there. Default: None, not known."""
        return None

    def arriving(self) -> bool:
        """Whether some of what was there at the start of the run has not come yet."""
        return False

    def unseen_rows(self) -> int | None:
        """The rows of whole sources that came since the last `discover`. Default: not known."""
        return None

    def committed(self, positions: Mapping[str, int]) -> None:
        """A manifest was committed in which open sources, by id, are read up to these positions.

        For those who watch from outside: a restart asks the manifest. Default: nothing.
        """
        return None

    def forget(self, ids: Sequence[str]) -> None:
        """Drop sources that a committed manifest has consumed; called where `once`."""
        return None

    def resume(self, listed: Sequence[str], unread: Sequence[str]) -> None:
        """Go on after the sources that earlier runs have listed; called before `list_new`, if any.

        `unread` are those that were not consumed: they have to be listed again, whatever else is.
        `listed` are all that the manifest still knows, in their order. Default: nothing, all that
        is there is listed each time.
        """
        return None

    def list_new(self) -> Sequence[ListedSource]:
        """The sources that were not listed before, in order; asked where `several`."""
        raise NotImplementedError("only a connector of several sources lists them")

    def open(self, id: str) -> Source:
        """A source that was listed, as it was then; asked where `several`."""
        raise NotImplementedError("only a connector of several sources opens them")

    def open_beyond(self, id: str, extent: int, digest: int) -> tuple[Source, int]:
        """A source that has more than it had, and the position of its first tuple beyond that.

        `extent` and `digest` are those it was listed with; refuses one that is another one now.
        """
        raise NotImplementedError("only a connector of several sources opens them")

    def let_go(self, id: str) -> tuple[int, int] | None:
        """Forget a consumed source; its extent and digest where they changed since it was listed.

        Called where `several`. Default: nothing is kept.
        """
        return None

    def has(self, id: str) -> bool:
        """Whether a source that was listed is still there. Default: it is."""
        return True


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
