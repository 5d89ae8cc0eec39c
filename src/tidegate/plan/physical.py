"""The plan that the runtime is given: picklable, the product of lowering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.expression.tree import Expr, user_functions
from tidegate.expression.user_function import UserFunction
from tidegate.operate.operator import Operator
from tidegate.operate.port import Port
from tidegate.operate.sieve import Sieve
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.query.definition import StreamDef
from tidegate.query.row_key import NO_KEY, RowKey
from tidegate.query.table import TableDef

if TYPE_CHECKING:
    from tidegate.plan.recorded import RecordedQuery

ARROW = "arrow"
SPARK = "spark"

OPERATOR_SET = "operator-set"
QUERY_CLOUD = "query-cloud"
OPERATOR_CLOUD = "operator-cloud"
STRATEGIES = (OPERATOR_SET, QUERY_CLOUD, OPERATOR_CLOUD)
"""How a query is cut into subqueries: docs/architecture.md has what each means."""


@dataclass(frozen=True)
class Edge:
    """The rows of one port of an earlier subquery, by their numbers in the plan."""

    subquery: int
    port: int


@dataclass(frozen=True)
class Prefix:
    """The stateless work between one input of a subquery and its operator.

    The input is a stream of the plan, by its number, or an edge. `columns` are the columns to read,
    in the input's order: the time column is among them only when an expression uses it. `time` is
    the column with the event time, `offset_us` what is added to it. With the engine "arrow",
    `where` and `outputs` are evaluated over the columns read. With the engine "spark", the SQL
    texts are evaluated over them by Spark, `where` is empty and `outputs` are plain columns: the
    names and types of what Spark returns; `reason` says what only Spark can do. The SQL texts are
    filled for both engines. `sieve` says which tuples are kept where others are shed. Where
    `numbered`, the rows of an edge have numbers that are the same for any cut. `lookups` are the
    tables that tuples are joined to before `where`; then Spark computes `early` columns, over which
    they and all after them are evaluated. `joins` say the same of them, for people and records.
    """

    origin: int | Edge
    name: str
    time: str
    columns: tuple[str, ...]
    where: tuple[Expr, ...]
    outputs: tuple[tuple[str, Expr], ...]
    engine: str
    sql_where: str | None
    sql_outputs: tuple[tuple[str, str], ...]
    reason: str | None = None
    offset_us: int = 0
    sieve: Sieve | None = None
    numbered: bool = False
    lookups: tuple[TableLookup, ...] = ()
    early: tuple[tuple[str, str], ...] = ()
    joins: tuple[str, ...] = ()

    @property
    def multiplies(self) -> bool:
        """Whether several rows may come of one tuple."""
        return any(lookup.multiplies for lookup in self.lookups)

    @property
    def expressions(self) -> list[Expr]:
        """All that kernels evaluate."""
        joined = (e for lookup in self.lookups for e in lookup.expressions)
        return [*joined, *self.where, *(e for _, e in self.outputs)]


@dataclass(frozen=True)
class Subquery:
    """The unit of parallelisation: its inputs with their prefixes, one operator, what follows it.

    `name` is what a person calls it: the stream or output that it makes. `key` is what a checkpoint
    does: its kind, with a number from the second on. `streams` are the definitions of the inputs
    that are streams, None for edges. `fingerprint` is the query's.
    """

    name: str
    prefixes: tuple[Prefix, ...]
    streams: tuple[StreamDef | None, ...]
    operator: Operator
    ports: tuple[Port, ...]
    fingerprint: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if not self.key:
            object.__setattr__(self, "key", self.name)


@dataclass(frozen=True)
class Target:
    """One output of a query: its name, None for the only one, and the port that feeds it.

    `key` says which of its columns tell rows apart.
    """

    name: str | None
    edge: Edge
    key: RowKey = NO_KEY


@dataclass(frozen=True)
class Plan:
    """A query ready to run: its subqueries, each after those whose rows it takes.

    `fingerprint` names the meaning of the query (not its URIs, nor the number of instances, nor how
    a join is done): a checkpoint belongs to it. `recorded` is the same in words, for the
    checkpoint, and `again` lowers the query to a plan that can read the state of a recorded one.
    `tables` are those that streams are joined to.
    """

    streams: tuple[StreamDef, ...]
    subqueries: tuple[Subquery, ...]
    targets: tuple[Target, ...]
    fingerprint: str
    strategy: str = OPERATOR_SET
    recorded: RecordedQuery | None = None
    tables: tuple[TableDef, ...] = field(default=(), repr=False)
    again: Callable[[RecordedQuery], Plan] | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "again": None}

    @property
    def names(self) -> dict[str, str]:
        """What a person calls the subqueries, by what a checkpoint does."""
        return {s.key: s.name for s in self.subqueries}

    @property
    def functions(self) -> tuple[UserFunction, ...]:
        """The user's functions that the kernels call, each once."""
        exprs: list[Expr] = []
        for subquery in self.subqueries:
            for prefix in subquery.prefixes:
                exprs += prefix.expressions
            exprs += subquery.operator.traits.expressions
            for port in subquery.ports:
                exprs += [*port.where, *(e for _, e in port.outputs)]
                exprs += [key.expr for key in port.order]
        return user_functions(exprs)

    @property
    def hold(self) -> bool:
        """Whether tuples wait in the gate until they are ready: one that reads them needs it.

        So does a table that is read again: what it was when a tuple came does not depend on the
        cut.
        """
        reading = (s for s in self.subqueries if any(d is not None for d in s.streams))
        read_again = any(table.refresh_us is not None for table in self.tables)
        return read_again or any(s.operator.traits.waits for s in reading)

    def output_ports(self, subquery: int) -> tuple[int, ...]:
        """The ports of a subquery that an output takes."""
        edges = (t.edge for t in self.targets)
        return tuple(sorted({e.port for e in edges if e.subquery == subquery}))

    def sole_target(self, subquery: int) -> Target | None:
        """The output that alone takes all rows of a subquery, where there is one."""
        origins = (p.origin for s in self.subqueries for p in s.prefixes)
        taken = any(isinstance(o, Edge) and o.subquery == subquery for o in origins)
        mine = [t for t in self.targets if t.edge.subquery == subquery]
        return mine[0] if len(mine) == 1 and not taken else None

    def port(self, edge: Edge) -> Port:
        return self.subqueries[edge.subquery].ports[edge.port]
