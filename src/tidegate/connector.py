"""The base classes of inputs: a `Connector` stands for a URI, a `Source` for one physical stream of
it.

To add a kind of input, derive from both, write the abstract methods and override the others where
the default does not fit. The gate and the driver call only these methods; they never ask which kind
of connector they have.
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
    """The readable rows of a range of positions, in order, and the unreadable rows beside them.

    `seq[i]` is the position of row i of `table`. `len(seq)` is the number of rows even when no
    column was asked for. Which columns are asked for never changes which rows are readable.
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
        """Concatenates pieces in order. `schema` is used only when there are no pieces."""
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
    """Positions [start, stop) of one source, for a task to read on any host; picklable."""

    start: int
    stop: int

    @property
    def input_file(self) -> str | None:
        """A file that every host must see, checked before the first batch. Default: none."""
        return None

    @abstractmethod
    def read(self, columns: Sequence[str]) -> Rows:
        """The named columns in the order asked for, in normalised types."""


@dataclass(frozen=True)
class OuterReader(Reader):
    """A reader that changes the rows which its inner reader gives for the same positions."""

    inner: Reader
    start: int
    stop: int

    @property
    def input_file(self) -> str | None:
        return self.inner.input_file


class ListedSource(NamedTuple):
    """A source that was found but is not open yet: what is known without reading its rows.

    No row that has a time is before `low_us`: MIN_US when that is unknown or a row may have no
    time, MAX_US when there are no rows. `extent` is the size in a unit of the source's own; when it
    has grown since the source was read, there is more to read. `grows` says that rows may be added
    while it is read. `digest` tells it from another source of the same extent.
    """

    id: str
    low_us: int
    extent: int
    grows: bool = False
    digest: int = 0


class Source(ABC):
    """One physical stream, on the driver. A position never changes its row.

    The gate calls, in one thread: at a restart `check` with what `mark` returned earlier, then
    `start`; in a first run `begin` instead. Then, for each batch: `extend`, `times` and `ended` as
    far as it looks ahead; `reader` and `absent` for the positions that the batch takes; `confirm`
    before the commit; `mark` for the manifest; `answered` after the commit. Monitoring may call
    `extent` and `untaken` at any time between. Abstract methods must be written; the others have
    defaults.
    """

    id: str
    """Stable across restarts: the URI, and for a folder also the file's path in it."""

    schema: pa.Schema
    """Normalised; see `tidegate.schema`."""

    arrivals: ArrivalTimes | None = None
    """When its tuples arrived; None if all of them were there from the start."""

    first = 0
    """The first position to read; used when the source joins, after `begin` or `start`."""

    promised_us = MIN_US
    """No tuple of the source is earlier than this; read when it joins for the first time."""

    newest_before_us = MIN_US
    """The newest event time before `first`, when another source has given the tuples before it;
    read when it joins for the first time.
    """

    pieced = False
    """Whether event times are decoded in pieces (row groups, blocks of text). The gate calls
    `piece_end` and `low_us` only then.
    """

    @abstractmethod
    def extend(self, rows: int) -> int:
        """Makes at least `rows` positions known, if there are so many; returns how many are."""

    @abstractmethod
    def ended(self) -> bool:
        """Whether nothing beyond the known positions will ever come."""

    @abstractmethod
    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        """Event times of known positions in microseconds UTC, and which of them are valid.

        A time is invalid when it is NULL, unreadable or out of range (`schema.event_times`). Only
        the time column counts: a row that is unreadable because of another column still has its
        time here.
        """

    @abstractmethod
    def reader(self, start: int, stop: int) -> Reader:
        """A reader of the known positions [start, stop)."""

    def begin(self) -> None:
        """Finds where to begin in a first run of its URI. Default: does nothing."""
        return None

    def start(self, position: int | None) -> None:
        """Begins at a position because the rows before it are no longer needed. Default: does
        nothing.

        `position` is None when an earlier run read other sources of the URI but not this one: begin
        with the oldest row. Raises if rows from there on are gone.
        """
        return None

    def absent(self, start: int, stop: int) -> int:
        """How many positions of a range, read for the first time, have no row. Default: none."""
        return 0

    def outside(self, start: int, stop: int) -> int:
        """How many `absent` positions have a row that another source reads. Default: none."""
        return 0

    def breaks(self, start: int, stop: int) -> Sequence[int] | None:
        """Positions inside (start, stop) where readers may be split without decoding anything
        twice; None (the default) for any position.
        """
        return None

    def piece_end(self, position: int) -> int:
        """Where the piece that contains a known position ends; called only if `pieced`."""
        raise NotImplementedError(f"{self.id} has no pieces")

    def low_us(self, position: int) -> int:
        """A lower bound of the event times from a known position to the end of its piece; MIN_US
        (the default) if it is unknown or some row has no time.
        """
        return MIN_US

    def extent(self, position: int) -> tuple[int, int, str] | None:
        """How much lies before a position, how much there is in all, and the unit (rows or bytes);
        None (the default) if that is not known.
        """
        return None

    def untaken(self, position: int) -> tuple[int, str] | None:
        """How much is available from a position on, in rows or bytes. Default: not known."""
        return None

    def place_of(self, position: int) -> Mapping[str, Any]:
        """Where the row of a position is, as JSON for people. Default: id and position."""
        return {"source": self.id, "position": position}

    def mark(self, position: int) -> Mapping[str, Any] | None:
        """Something by which `check` can tell later that the tuples before `position` are
        unchanged.

        It goes into the manifest as JSON; `position` is not 0. Default: None, nobody else can
        change this source.
        """
        return None

    def check(self, saved: Mapping[str, Any], position: int, again: bool) -> None:
        """Raises if the tuples before a position are not those that `saved`, a mark, describes.
        `again` says that the source will be read further, or once more. Default: accepts.
        """
        return None

    def holds(self, saved: Mapping[str, Any]) -> bool:
        """Whether the source contains all that a mark describes; may cost a full pass."""
        return True

    def answered(self, position: int) -> None:
        """Frees what is held for the tuples before a position; a commit has answered them and
        nobody asks for them again in this run. Default: frees their arrival times.
        """
        if self.arrivals is not None:
            self.arrivals.drop(position)

    def confirm(self) -> None:
        """Raises if the last tuple read turned out to be incomplete; called before a commit."""
        return None


class Connector(ABC):
    """All the sources that one URI, or one object of the program, stands for.

    The driver calls, in this order: `for_run` (for objects of the program), `take_as_of_now` (in a
    run with --available-now) and `legs`. Then for each leg: `attach` and `tell` once; for every
    batch `discover`, or `list_new` and `open` where `several` is set (after `resume` at a restart),
    and `live`; after the commit `committed`, and `forget` or `let_go`; between batches
    `expected_s`, `arriving` and `unseen_rows`; at the end `close` and `tell_no_more`. Code that
    only wants the columns calls the constructor and reads `schema`. Only `discover` and `live` must
    be written. A SourceError from any of these ends the run with its text.
    """

    schema: pa.Schema
    """The schema of all its sources; normalised."""

    several = False
    """Whether it may have many sources, which are listed first and opened later, one by one."""

    once = False
    """Whether it delivers each source once: `forget` is called, and previews do not read it."""

    frozen = False
    """Whether the list of the first run is final: a restart ignores new sources, and refuses
    sources that it still needs if they have changed. Read only if `several`.
    """

    @property
    def types_from(self) -> str:
        """Where the column types come from, for people. Default: empty."""
        return ""

    @property
    def arrives(self) -> bool:
        """Whether tuples arrive while the run reads, so that latency and backlog are measured; read
        once, when the connector joins the gate. Default: no.
        """
        return False

    @abstractmethod
    def discover(self) -> Sequence[Source]:
        """The sources known now; called again while `live`. New sources are appended at the end."""

    def first_sources(self, count: int) -> Sequence[Source]:
        """The first `count` sources known now, for a preview. Default: those of `discover`."""
        return self.discover()[:count]

    @abstractmethod
    def live(self) -> bool:
        """Whether more sources may come, or more rows than the known sources have now."""

    def beginning(self, rows: int) -> Connector:
        """A connector of the first rows in time order, for a preview; still live if there are more.

        It has at least `rows` rows if the input does. Default: the connector itself, of which the
        preview reads no more than it needs.
        """
        return self

    def legs(self) -> Sequence[Connector]:
        """The connectors that join the gate in its place, in this order. Default: only itself."""
        return (self,)

    def for_run(self, use: int) -> Connector:
        """A connector of the same input for one run; `use` numbers its places in the query.
        Default: itself, if any number of runs may read it.
        """
        return self

    def take_as_of_now(self) -> None:
        """Limits the input to what exists when the run starts; the connector may stay live until it
        is read.

        Raises SourceError if that makes no sense for this input. Default: it does so anyhow.
        """
        return None

    def attach(self, store: Store, follow: bool, available_now: bool = False) -> None:
        """Starts reading for a run, whose checkpoint may keep files. Default: does nothing."""
        return None

    def close(self) -> None:
        """Stops; after it returns nothing is read or written any more. Default: does nothing."""
        return None

    def tell(self, listener: Callable[[], None]) -> None:
        """Registers a listener to call, from any thread, when `discover` or `extend` would show
        more. Default: never calls it; the driver looks again after `expected_s`.
        """
        return None

    def tell_no_more(self, listener: Callable[[], None]) -> None:
        """Unregisters a listener."""
        return None

    def expected_s(self) -> float | None:
        """In how many seconds more input may be there. Default: None, not known."""
        return None

    def arriving(self) -> bool:
        """Whether some of the input that existed at the start of the run has not come yet."""
        return False

    def unseen_rows(self) -> int | None:
        """Rows in whole sources that came since the last `discover`. Default: not known."""
        return None

    def committed(self, positions: Mapping[str, int]) -> None:
        """Reports a committed manifest: open sources, by id, are read up to these positions. This
        is for observers outside; a restart reads the manifest. Default: does nothing.
        """
        return None

    def forget(self, ids: Sequence[str]) -> None:
        """Drops sources that a committed manifest has consumed; called only if `once`."""
        return None

    def resume(self, listed: Sequence[str], unread: Sequence[str]) -> None:
        """Continues after the sources that earlier runs have listed; called before the first
        `list_new`.

        `listed` are all the sources in the manifest, in their order. `unread` are those not
        consumed yet: `list_new` must list them again. Default: does nothing; `list_new` lists
        everything each time.
        """
        return None

    def list_new(self) -> Sequence[ListedSource]:
        """The sources not listed before, in order; called only if `several`."""
        raise NotImplementedError("only a connector of several sources lists them")

    def open(self, id: str) -> Source:
        """Opens a listed source as it was when listed; called only if `several`."""
        raise NotImplementedError("only a connector of several sources opens them")

    def open_beyond(self, id: str, extent: int, digest: int) -> tuple[Source, int]:
        """Opens a consumed source that has grown; also returns the position of its first new tuple.

        `extent` and `digest` are those of its listing. Raises if it is a different source now.
        """
        raise NotImplementedError("only a connector of several sources opens them")

    def let_go(self, id: str) -> tuple[int, int] | None:
        """Forgets a consumed source; returns its extent and digest if they changed since it was
        listed.

        Called only if `several`. Default: nothing is kept.
        """
        return None

    def has(self, id: str) -> bool:
        """Whether a listed source still exists. Default: it does."""
        return True


def joined_times(parts: Sequence[tuple[Int64s, Bools]]) -> tuple[Int64s, Bools]:
    """Concatenates times and their validity; a single part is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def check_columns(columns: Sequence[str], schema: pa.Schema, where: str) -> None:
    """Raises for column names that the schema does not have."""
    known = set(schema.names)
    for name in columns:
        if name not in known:
            raise SourceError(
                where,
                "columns to read must be there",
                f"column {name}",
                near(name, schema.names),
            )
