"""The physical plan: what lowering makes and the driver runs. It can be pickled."""

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
    from tidegate.plan.compatibility.query_record import RecordedQuery

ARROW = "arrow"
SPARK = "spark"

OPERATOR_SET = "operator-set"
QUERY_CLOUD = "query-cloud"
OPERATOR_CLOUD = "operator-cloud"
STRATEGIES = (OPERATOR_SET, QUERY_CLOUD, OPERATOR_CLOUD)
"""The ways to cut a query into subqueries: the parallelisation strategies of StreamCloud."""


@dataclass(frozen=True)
class Edge:
    """The rows of one port of an earlier subquery; both by their numbers in the plan."""

    subquery: int
    port: int


@dataclass(frozen=True)
class Prefix:
    """The stateless work between one input of a subquery and its operator.

    - `origin` is the input: the number of a stream of the plan, or an edge.
    - `columns` are the columns to read, in the input's order; the time column only if an expression
      uses it. `time` is the column with the event time, `offset_us` is added to it.
    - `engine`: with "arrow", kernels evaluate `where` and `outputs` over the columns read. With
      "spark", Spark evaluates the SQL texts; `where` is then empty, `outputs` are the columns that
      Spark returns, and `reason` says what only Spark can do. Both engines have the SQL texts.
    - `sieve` decides which tuples are kept, if the query sheds.
    - `numbered`: the rows of an edge get numbers that are the same for any cut of batches.
    - `lookups` are the tables that tuples are joined to before `where`. Spark then computes only
      the `early` columns, over which lookups and everything after them are evaluated. `joins` is
      the text of the lookups.
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
        """Whether one tuple may become several rows."""
        return any(lookup.multiplies for lookup in self.lookups)

    @property
    def expressions(self) -> list[Expr]:
        """All expressions that kernels evaluate."""
        joined = (e for lookup in self.lookups for e in lookup.expressions)
        return [*joined, *self.where, *(e for _, e in self.outputs)]


@dataclass(frozen=True)
class Subquery:
    """The unit of parallelisation: inputs with their prefixes, one operator, and its ports.

    `name` is for people: the stream or output that it makes. `key` is its name in a checkpoint: its
    kind, with a number from the second of a kind on. `streams` has the definition of each input
    that is a stream, None for an edge. `fingerprint` is that of the whole query.
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
    """One output of a query: its name (None for the only one) and the edge that feeds it.

    `key` are the columns that identify a row.
    """

    name: str | None
    edge: Edge
    key: RowKey = NO_KEY


@dataclass(frozen=True)
class Plan:
    """A query ready to run; each subquery comes after those whose rows it reads.

    `fingerprint` is a hash of the query's meaning: it leaves out URIs, the number of instances and
    the method of a join. A checkpoint belongs to one fingerprint. `recorded` is the same meaning in
    words, kept in the checkpoint. `again` lowers the query once more, to a plan that can read the
    state of a recorded one. `tables` are those that streams are joined to.
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
        """The names of the subqueries by their keys in a checkpoint."""
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
        """Whether tuples wait in the gate until they are ready.

        They do if an operator that reads streams needs it (`Traits.waits`), or if a table is read
        again: which version of the table a tuple meets must not depend on the cut of batches.
        """
        reading = (s for s in self.subqueries if any(d is not None for d in s.streams))
        read_again = any(table.refresh_us is not None for table in self.tables)
        return read_again or any(s.operator.traits.waits for s in reading)

    def output_ports(self, subquery: int) -> tuple[int, ...]:
        """The ports of a subquery that an output takes."""
        edges = (t.edge for t in self.targets)
        return tuple(sorted({e.port for e in edges if e.subquery == subquery}))

    def sole_target(self, subquery: int) -> Target | None:
        """The output that is the only reader of a subquery's rows; None if there is none."""
        origins = (p.origin for s in self.subqueries for p in s.prefixes)
        taken = any(isinstance(o, Edge) and o.subquery == subquery for o in origins)
        mine = [t for t in self.targets if t.edge.subquery == subquery]
        return mine[0] if len(mine) == 1 and not taken else None

    def port(self, edge: Edge) -> Port:
        return self.subqueries[edge.subquery].ports[edge.port]
