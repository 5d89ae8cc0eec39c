"""A source of generated rows: `generator:NAME?...` stands for a function of the position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate import schedule
from tidegate.arrival import BEFORE, Floats
from tidegate.clock import Clock
from tidegate.connector import Bools, Connector, Int64s, Reader, Rows, Source, check_columns
from tidegate.errors import SourceError, near
from tidegate.schema import check_time, event_times
from tidegate.source.generate.band import r, s
from tidegate.source.generate.calls import calls
from tidegate.source.generate.packets import packets
from tidegate.source.generate.tasks import tasks
from tidegate.source.generate.taxi import taxi
from tidegate.source.generate.tpch import lineitem, orders
from tidegate.source.generate.trades import trades
from tidegate.source.generate.tweets import tweets
from tidegate.source.pace import Pacing
from tidegate.source.parameter import Parameters, UriParameter
from tidegate.source.subscription import Subscription


class Generator(Protocol):
    """Rows that are a pure function of their position; picklable."""

    @property
    def schema(self) -> pa.Schema:
        """Normalised."""

    @property
    def time(self) -> str:
        """The time column, where a query names none."""

    @property
    def rows(self) -> int: ...

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """The named columns of the positions [start, stop)."""


Make = Callable[[Parameters], Generator]


@dataclass(frozen=True)
class GeneratorInfo:
    """The description of a generator, for lists."""

    name: str
    summary: str
    schema: pa.Schema
    time: str
    parameters: tuple[UriParameter, ...]


_REGISTRY: dict[str, tuple[str, Make]] = {
    "taxi": ("taxi rides (DEBS 2015)", taxi),
    "calls": ("call records of a mobile network (StreamCloud)", calls),
    "tasks": ("task events of a cluster (Google trace)", tasks),
    "packets": ("network packets (DEC trace)", packets),
    "trades": ("stock trades with the average to compare with (hedge join)", trades),
    "r": ("left side of the band-join benchmark (ScaleJoin)", r),
    "s": ("right side of the band-join benchmark (ScaleJoin)", s),
    "tweets": ("short messages with hashtags", tweets),
    "orders": ("TPC-H orders by the time they were placed", orders),
    "lineitem": ("TPC-H lineitems by the time they were shipped", lineitem),
}
"""For each generator a line that describes it, and the function that makes it."""


def register(name: str, make: Make, summary: str = "") -> None:
    """Let `generator:NAME` stand for a generator; `make` takes its parameters from the URI."""
    _REGISTRY[name] = (summary, make)


def names() -> list[str]:
    """The names of all generators, those of this package first."""
    return list(_REGISTRY)


def described(name: str, where: str) -> GeneratorInfo:
    """The rows that a generator makes, and its parameters."""
    parameters = Parameters("", where)
    generator = make_generator(name, parameters)
    parameters.pace()
    own = [p for p in parameters.taken if p.name not in ("pace", "column")]
    pace = [p for p in parameters.taken if p.name in ("pace", "column")]
    summary, _ = _REGISTRY[name]
    return GeneratorInfo(name, summary, generator.schema, generator.time, (*own, *pace))


def make_generator(name: str, parameters: Parameters) -> Generator:
    """The generator of a name; it takes what it wants from the parameters."""
    if name not in _REGISTRY:
        raise SourceError(
            parameters.where, "the generator must be known", name or "no name", near(name, names())
        )
    _, make = _REGISTRY[name]
    return make(parameters)


@dataclass(frozen=True)
class GeneratorReader(Reader):
    """Positions [start, stop), computed in the task that reads them."""

    id: str
    generator: Generator
    start: int
    stop: int

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.generator.schema, self.id)
        table = self.generator.read(columns, self.start, self.stop)
        return Rows.of_range(table, self.start, self.stop)


class RowPace:
    """Rows that come with wall time, at a pace, starting when rows are first asked for."""

    def __init__(self, pacing: Pacing, clock: Clock) -> None:
        self._pacing = pacing
        self._clock = clock
        self._begun_at: float | None = None
        self._first = 0

    def __str__(self) -> str:
        return str(self._pacing)

    def begin(self, rows: int) -> None:
        """Start now, with `rows` rows there already; later calls do nothing."""
        if self._begun_at is None:
            self._begun_at, self._first = self._clock.now(), rows

    def come(self) -> int:
        """How many rows there are now."""
        if self._begun_at is None:
            return 0
        return self._pacing.come(self._first, self._clock.now() - self._begun_at)

    def due_s(self, rows: int) -> float | None:
        """The seconds until there is one row more than `rows`; None before `begin`."""
        if self._begun_at is None:
            return None
        due_s = self._pacing.seconds(self._first, np.array([rows + 1.0]))
        return self._begun_at + float(due_s[0]) - self._clock.now()

    def at(self, positions: Int64s) -> Floats:
        """When rows are due, however late they are read; those there at the start came BEFORE."""
        assert self._begun_at is not None, "rows are known after the first were asked for"
        due_s = self._pacing.seconds(self._first, (positions + 1).astype(np.float64))
        return np.where(positions < self._first, BEFORE, self._begun_at + due_s)

    def drop(self, position: int) -> None:
        """Does nothing: arrivals are computed, not stored."""


class GeneratorSource(Source, Connector):
    """A generator's rows: source and connector in one.

    With a `pace` it is a live stream: rows become known as wall time passes. The rows asked for
    first are known at once, because a restart first asks for the rows up to where it was. The rows
    themselves do not depend on the pace.
    """

    def __init__(
        self,
        id: str,
        generator: Generator,
        time: str | None,
        pace: Pacing | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.id = id
        self.schema = generator.schema
        self._generator = generator
        self._time = generator.time if time is None else time
        clock = clock or schedule.current().clock
        self._pace = None if pace is None else RowPace(pace, clock)
        self.arrivals = self._pace
        """None where all rows are there from the first."""
        self._known = 0 if pace is not None else generator.rows
        check_time(self.schema, self._time, id)

    @staticmethod
    def at(subscription: Subscription) -> GeneratorSource:
        """The source that `generator:NAME?parameter=value&...` stands for."""
        remedy = "Leave them out: a generator says its columns."
        subscription.refuse_reading("a generator", remedy)
        return open_generator(subscription.uri, subscription.where, subscription.time)

    @property
    def arrives(self) -> bool:
        return self._pace is not None

    def discover(self) -> Sequence[GeneratorSource]:
        return [self]

    def live(self) -> bool:
        return not self.ended()

    def expected_s(self) -> float | None:
        """The seconds until the next row is due; None without a pace, or at the end."""
        return None if self._pace is None or self.ended() else self._pace.due_s(self._known)

    def untaken(self, position: int) -> tuple[int, str]:
        """How many rows have come from a position on."""
        come = self._generator.rows if self._pace is None else self._pace.come()
        return max(min(come, self._generator.rows) - position, 0), "rows"

    def extent(self, position: int) -> tuple[int, int, str]:
        """The rows before a position, and all rows there will be."""
        return position, self._generator.rows, "rows"

    def take_as_of_now(self) -> None:
        """Does nothing, except that it refuses a pace: then the rows are not there yet."""
        if self._pace is not None:
            raise SourceError(
                self.id,
                "a source of a run with --available-now must have its rows when the run starts",
                f"pace={self._pace}, which makes them as time goes by",
                "Leave pace out and say how many rows there are, or use --follow.",
            )

    def extend(self, rows: int) -> int:
        if self._pace is not None:
            self._pace.begin(rows)
            self._known = max(self._known, min(self._pace.come(), self._generator.rows))
        return self._known

    def ended(self) -> bool:
        return self._known == self._generator.rows

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        return event_times(self._generator.read([self._time], start, stop).column(0))

    def reader(self, start: int, stop: int) -> GeneratorReader:
        return GeneratorReader(self.id, self._generator, start, stop)


def open_generator(
    uri: str, where: str, time: str | None, clock: Clock | None = None
) -> GeneratorSource:
    """The source of a URI; `clock` is the clock of the run if it is not the machine's."""
    name, _, query = uri.partition(":")[2].partition("?")
    known = f"{where}, generator {name}" if name in _REGISTRY else where
    parameters = Parameters(query, known)
    generator = make_generator(name, parameters)
    pace = parameters.pace()
    parameters.done()
    return GeneratorSource(uri, generator, time, pace, clock)
