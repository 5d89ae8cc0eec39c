"""One subquery lowered, and what the rules that lower operators are given and give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.operate.operator import Operator
from tidegate.operate.port import Port
from tidegate.plan.cut import Unit
from tidegate.plan.method import JoinOptions
from tidegate.plan.physical import Prefix
from tidegate.plan.prefix import Prefixing
from tidegate.plan.pushdown import EarlierRows, Leaf
from tidegate.plan.recorded import Record, RecordedSubquery
from tidegate.plan.sample import RawRows
from tidegate.query.definition import StreamDef
from tidegate.query.table import TableDef
from tidegate.route.hash import BY_HASH
from tidegate.route.partitioner import Partitioner


@dataclass(frozen=True)
class Lowered:
    """The parts of a subquery; `lines` say what it means, for the fingerprint.

    `record` says it in the words of the query, for a checkpoint.
    """

    leaves: tuple[Leaf, ...]
    prefixes: tuple[Prefix, ...]
    operator: Operator
    ports: tuple[Port, ...]
    lines: tuple[str, ...]
    record: Record
    tables: tuple[TableDef, ...] = ()
    """Those that the operator looks into."""


@dataclass(frozen=True)
class Choices:
    """What is asked of operators beyond what the query says; none of it changes the result.

    But for one: with WITH BALANCE, `partial` says whether sums and means may be trimmed.

    `rows` gives the first rows of a stream, from which the best way is estimated. `partitioner` is
    for aggregates that name none themselves. `partial` says who folds tuples into partials, "map"
    or "instance"; None leaves it to the functions. A tuple may be in `max_windows` windows of time,
    or in any number of them.
    """

    join: JoinOptions = field(default_factory=JoinOptions)
    rows: RawRows | None = None
    partitioner: Partitioner = BY_HASH
    partial: str | None = None
    max_windows: int | None = None


@dataclass(frozen=True)
class Context:
    """What a rule works with: prefixes, choices, the streams so far, and what was lowered last."""

    front: Prefixing
    choices: Choices
    streams: Sequence[StreamDef]
    newest: Callable[[int], EarlierRows]
    """A port of the subquery that the rule gave last, as an input of its next one."""
    kept: Callable[[str], RecordedSubquery | None]
    """What a checkpoint has of the next subquery of a kind, where its state is to be read."""


Rule = Callable[[Unit, Context], Iterator[Lowered]]
"""How a unit becomes subqueries, mostly one; the last has the ports of the unit."""
