"""What the runtime is given to run: the picklable product of lowering, between plan and tasks."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidegate.expression.tree import Expr
from tidegate.operate.aggregate.pane import AggregateSpec
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.process.advance import ProcessSpec
from tidegate.operate.tuple_window.window import TupleSpec
from tidegate.query.definition import StreamDef

ARROW = "arrow"
SPARK = "spark"

DEAL = "deal"
KEY = "key"

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
    filled for both engines.
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


@dataclass(frozen=True)
class OrderKey:
    """One key of the order inside a window; `nulls_first` is always decided here."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Port:
    """The stateless work after an operator for one of those that take its rows, and their shape.

    `where` and `outputs` are over the operator's own columns: window_start, window_end, k*, a*
    of an aggregate; ts, l*, r* of a join; ts and the output of a process. `outputs` are the columns
    after the implicit ones, with which `schema` begins. Rows of a time window that are equal in
    `order` are in the order of their group's key, NULL first. `time` and `offset_us` say when a row
    is, for those that take it.
    """

    schema: pa.Schema
    outputs: tuple[tuple[str, Expr], ...]
    where: tuple[Expr, ...] = ()
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    time: str = "ts"
    offset_us: int = 0


@dataclass(frozen=True)
class AggregatePlan:
    """An aggregate over windows of time."""

    spec: AggregateSpec
    key_names: tuple[str, ...]


@dataclass(frozen=True)
class TuplePlan:
    """An aggregate over windows of tuples."""

    spec: TupleSpec
    key_names: tuple[str, ...]


@dataclass(frozen=True)
class JoinPlan:
    """A join, over what the prefixes put out: l0, l1, ... and r0, r1, ...

    `sides` says by input which side it feeds: 0 left, 1 right. `routing` says where a tuple is
    stored: "deal" in any bucket in turn, "key" in the bucket of its key. `conjuncts` are the
    conditions of the predicate as the query writes them, `reasons` why this method and routing.
    """

    spec: JoinSpec
    sides: tuple[int, ...]
    routing: str
    reasons: tuple[str, ...]
    conjuncts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProcessPlan:
    """The user's own operator."""

    spec: ProcessSpec


Operator = AggregatePlan | TuplePlan | JoinPlan | ProcessPlan


@dataclass(frozen=True)
class Subquery:
    """The unit of parallelisation: its inputs with their prefixes, one operator, what follows it.

    Without an operator it puts the tuples of its inputs into the total order. `streams` are the
    definitions of the inputs that are streams, None for edges. `fingerprint` is the query's.
    """

    name: str
    prefixes: tuple[Prefix, ...]
    streams: tuple[StreamDef | None, ...]
    operator: Operator | None
    ports: tuple[Port, ...]
    fingerprint: str = ""

    @property
    def aggregate(self) -> AggregatePlan | None:
        return self.operator if isinstance(self.operator, AggregatePlan) else None

    @property
    def join(self) -> JoinPlan | None:
        return self.operator if isinstance(self.operator, JoinPlan) else None


@dataclass(frozen=True)
class Target:
    """One output of a query: its name, None for the only one, and the port that feeds it."""

    name: str | None
    edge: Edge


@dataclass(frozen=True)
class Plan:
    """A query ready to run: its subqueries, each after those whose rows it takes.

    `fingerprint` names the meaning of the query (not its URIs, nor the number of instances, nor how
    a join is done): a checkpoint belongs to it.
    """

    streams: tuple[StreamDef, ...]
    subqueries: tuple[Subquery, ...]
    targets: tuple[Target, ...]
    fingerprint: str
    strategy: str = OPERATOR_SET

    @property
    def hold(self) -> bool:
        """Whether tuples wait in the gate until they are ready.

        Aggregates over windows of time fold them as they arrive; all others need their order.
        """
        reading = (s for s in self.subqueries if any(d is not None for d in s.streams))
        return any(s.aggregate is None for s in reading)

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
