"""What the runtime is given to run: the picklable product of lowering, between plan and tasks."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidegate.operate.aggregate import AggregateSpec
from tidegate.operate.join import JoinSpec
from tidegate.operate.kernels.expression import Expr
from tidegate.query.definition import StreamDef

ARROW = "arrow"
SPARK = "spark"

DEAL = "deal"
KEY = "key"


@dataclass(frozen=True)
class Prefix:
    """The stateless work between one input of the query and the gate; one per stream position.

    `columns` are the raw columns to read, in the stream's order: the time column is among them
    only when an expression uses it. With the engine "arrow", `where` and `outputs` are evaluated
    over the raw columns. With the engine "spark", the SQL texts are evaluated over them by Spark,
    `where` is empty and `outputs` are plain columns: the names and types of what Spark returns;
    `reason` says what only Spark can do. The SQL texts are filled for both engines.
    """

    stream: int
    name: str
    time: str
    columns: tuple[str, ...]
    where: tuple[Expr, ...]
    outputs: tuple[tuple[str, Expr], ...]
    engine: str
    sql_where: str | None
    sql_outputs: tuple[tuple[str, str], ...]
    reason: str | None = None


@dataclass(frozen=True)
class OrderKey:
    """One key of the order inside a window; `nulls_first` is always decided here."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class AggregatePlan:
    """The one stateful operator and what follows it, all over window_start, window_end, k*, a*.

    `outputs` are the columns after window_start and window_end. Rows equal in `order` are in the
    order of their group's key, NULL first.
    """

    spec: AggregateSpec
    key_names: tuple[str, ...]
    having: tuple[Expr, ...]
    outputs: tuple[tuple[str, Expr], ...]
    order: tuple[OrderKey, ...]
    limit: int | None


@dataclass(frozen=True)
class JoinPlan:
    """A join and what follows it, over what the prefixes put out: l0, l1, ... and r0, r1, ...

    `sides` says by stream position which side a stream feeds: 0 left, 1 right. `outputs` are the
    columns after ts, over l*, r* and ts (the event time of the pair). `routing` says where a tuple
    is stored: "deal" in any bucket in turn, "key" in the bucket of its key. `conjuncts` are the
    conditions of the predicate as the query writes them, `reasons` why this method and routing.
    """

    spec: JoinSpec
    sides: tuple[int, ...]
    outputs: tuple[tuple[str, Expr], ...]
    routing: str
    reasons: tuple[str, ...]
    conjuncts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A query ready to run.

    `streams` and `prefixes` are indexed by stream position; at most one of `aggregate` and `join`
    is there. `schema` is what the sink receives: window_start, window_end, ... after an aggregate,
    ts, ... without one. `fingerprint` names the meaning of the query (not its URIs, nor the number
    of instances, nor how a join is done): a checkpoint belongs to it.
    """

    streams: tuple[StreamDef, ...]
    prefixes: tuple[Prefix, ...]
    aggregate: AggregatePlan | None
    schema: pa.Schema
    fingerprint: str
    join: JoinPlan | None = None
