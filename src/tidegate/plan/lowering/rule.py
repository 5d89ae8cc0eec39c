"""Defines the interface of lowering rules: a rule gets a `Context` and yields a `Lowered`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.operate.operator import Operator
from tidegate.operate.port import Port
from tidegate.plan.compatibility.query_record import Record, RecordedSubquery
from tidegate.plan.cut import Unit
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.join.sample import RawRows
from tidegate.plan.physical import Prefix
from tidegate.plan.prefix import Prefixing
from tidegate.plan.pushdown import EarlierRows, Leaf
from tidegate.query.definition import StreamDef
from tidegate.query.table import TableDef
from tidegate.route.hash import BY_HASH
from tidegate.route.partitioner import Partitioner


@dataclass(frozen=True)
class Lowered:
    """The parts of one subquery.

    `lines` are its meaning for the fingerprint; `record` is the same in the words of the query, for
    the checkpoint.
    """

    leaves: tuple[Leaf, ...]
    prefixes: tuple[Prefix, ...]
    operator: Operator
    ports: tuple[Port, ...]
    lines: tuple[str, ...]
    record: Record
    tables: tuple[TableDef, ...] = ()
    """The tables that the operator itself reads."""


@dataclass(frozen=True)
class Choices:
    """Options for operators beyond the query text; they do not change the result.

    One exception: with WITH BALANCE, `partial` decides whether sums and means may be trimmed.

    `rows` returns the first rows of a stream, from which costs are estimated. `partitioner` is for
    aggregates that name none. `again` says who goes on with the state of a checkpoint, by its
    `going_on`; None: `partitioner`. `partial` says who folds tuples into partials: "map",
    "instance", or None to let the functions decide. A tuple may be in at most `max_windows`
    windows; None is no limit.
    """

    join: JoinOptions = field(default_factory=JoinOptions)
    rows: RawRows | None = None
    partitioner: Partitioner = BY_HASH
    again: Partitioner | None = None
    partial: str | None = None
    max_windows: int | None = None


@dataclass(frozen=True)
class Context:
    """What a rule may use: prefixes, options, the streams so far, and the last subquery."""

    front: Prefixing
    choices: Choices
    streams: Sequence[StreamDef]
    newest: Callable[[int], EarlierRows]
    """Returns a port of the subquery that the rule yielded last, as an input of its next one."""
    kept: Callable[[str], RecordedSubquery | None]
    """Returns what a checkpoint recorded of the next subquery of a kind; None without one."""


Rule = Callable[[Unit, Context], Iterator[Lowered]]
"""Yields the subqueries of a unit, mostly one; the last has the ports of the unit."""
