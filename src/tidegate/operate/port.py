"""The stateless work after an operator, for one reader of its rows: filter, columns, order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.collect.numbering import Numbering
from tidegate.collect.order import OutputOrder
from tidegate.collect.ranking import RankFilter
from tidegate.expression.tree import Column, Expr, columns_of, rebuilt
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.order import Direction
from tidegate.schema import TIME


@dataclass(frozen=True)
class OrderKey:
    """One key of the order inside a window; defaults for NULL were filled in before."""

    expr: Expr
    descending: bool
    nulls_first: bool

    @property
    def direction(self) -> Direction:
        return Direction(self.descending, self.nulls_first)


@dataclass(frozen=True)
class RankedRows:
    """Numbers the rows of each partition of a window in an order, and keeps some of the numbers."""

    per: tuple[Expr, ...]
    order: tuple[OrderKey, ...]
    numbering: Numbering

    @property
    def read(self) -> tuple[Expr, ...]:
        return (*self.per, *(key.expr for key in self.order))

    @property
    def ranking(self) -> RankFilter:
        return RankFilter(self.numbering, tuple(key.direction for key in self.order))

    def rebuilt(self, change: Callable[[Expr], Expr]) -> RankedRows:
        """The same over other columns."""
        return replace(
            self,
            per=tuple(rebuilt(e, change) for e in self.per),
            order=tuple(replace(key, expr=rebuilt(key.expr, change)) for key in self.order),
        )


@dataclass(frozen=True)
class Port:
    """The stateless work after an operator for one reader of its rows, and the shape of the rows.

    `where` and `outputs` are over the operator's own columns: window_start, window_end, k* and a*
    of an aggregate; ts, l* and r* of a join; ts and the output of a process. `schema` begins with
    the implicit columns (times), then come the `outputs`. Rows of a time window that are equal in
    `order` are in the order of their group's key, NULL first. `ranked` leaves some rows out.
    The event time of a row is the column `time` plus `offset_us`. That column is `ts`, or DECIDED
    where rows show a time of their own; `ts` is then an output.
    `unnests` is a column of lists of structs: each entry becomes a row in the place of the row with
    the list, and the expressions are over its fields, o0, o1 and so on.
    """

    schema: pa.Schema
    outputs: tuple[tuple[str, Expr], ...]
    where: tuple[Expr, ...] = ()
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    time: str = "ts"
    offset_us: int = 0
    unnests: str | None = None
    ranked: RankedRows | None = None

    @property
    def leaves_out(self) -> bool:
        """Whether a merge leaves out rows that the instances give."""
        return self.limit is not None or self.ranked is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The operator's columns that it reads."""
        read = [*self.where, *(e for _, e in self.outputs), *(key.expr for key in self.order)]
        read += self.ranked.read if self.ranked is not None else ()
        return tuple(dict.fromkeys(name for e in read for name in columns_of(e)))

    @property
    def carried(self) -> pa.Schema:
        """The columns of its rows on an edge: those of `schema`, and always the event time."""
        if self.time in self.schema.names:
            return self.schema
        return self.schema.append(pa.field(self.time, TIME))

    @property
    def directions(self) -> list[Direction]:
        """The direction of each key of `order`."""
        return [key.direction for key in self.order]

    def renamed(self, names: Mapping[str, str]) -> Port:
        """The same port for an operator whose columns have other names."""

        def change(part: Expr) -> Expr:
            if not isinstance(part, Column):
                return part
            return Column(names.get(part.name, part.name), part.type)

        return replace(
            self,
            outputs=tuple((name, rebuilt(e, change)) for name, e in self.outputs),
            where=tuple(rebuilt(e, change) for e in self.where),
            order=tuple(replace(key, expr=rebuilt(key.expr, change)) for key in self.order),
            ranked=None if self.ranked is None else self.ranked.rebuilt(change),
            unnests=None if self.unnests is None else names.get(self.unnests, self.unnests),
        )

    def merged(self, order: OutputOrder, tables: Sequence[pa.Table]) -> pa.Table:
        """The rows of all instances, each in order, as one sequence without hidden columns."""
        if self.ranked is not None:
            tables = [self.ranked.ranking.kept(pa.concat_tables(tables))]
        rows = order.merge(tables, self.directions, self.limit)
        return rows.select(self.schema.names).cast(self.schema)

    def filtered(self, rows: pa.Table) -> pa.Table:
        """The rows for which all of `where` holds; NULL does not hold."""
        for predicate in self.where:
            rows = rows.filter(pc.fill_null(evaluate(predicate, rows), False))
        return rows

    def selected(self, rows: pa.Table) -> dict[str, pa.Array]:
        """Its columns after the implicit ones, by name."""
        return {name: evaluate(expression, rows) for name, expression in self.outputs}
