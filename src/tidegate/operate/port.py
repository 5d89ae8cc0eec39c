"""Says what follows an operator for one of those that take its rows: filter, columns, order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.collect.numbering import Numbering
from tidegate.collect.order import OutputOrder
from tidegate.collect.ranking import RankFilter
from tidegate.expression.tree import Column, Expr, columns_of, rebuilt
from tidegate.operate.kernels.expression import evaluate
from tidegate.order import Direction
from tidegate.schema import TIME


@dataclass(frozen=True)
class OrderKey:
    """One key of the order inside a window; `nulls_first` is always decided here."""

    expr: Expr
    descending: bool
    nulls_first: bool

    @property
    def direction(self) -> Direction:
        return Direction(self.descending, self.nulls_first)


@dataclass(frozen=True)
class RankedRows:
    """Of each window the rows of each partition with some numbers, in an order of its own."""

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
    """The stateless work after an operator for one of those that take its rows, and their shape.

    `where` and `outputs` are over the operator's own columns: window_start, window_end, k*, a*
    of an aggregate; ts, l*, r* of a join; ts and the output of a process. `outputs` are the columns
    after the implicit ones, with which `schema` begins. Rows of a time window that are equal in
    `order` are in the order of their group's key, NULL first; `ranked` leaves some of them out.
    `time` and `offset_us` say when a row is, for those that take it: operators whose rows are
    tuples put its event time into the column `time`. That is `ts`, or DECIDED where rows show a
    time of their own; `ts` is then one of the `outputs`. `unnests` is a column of lists of rows,
    which come in the place of the row that has them: the others are then over their columns, o0,
    o1 and so on.
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
        """Whether rows are left out that instances give."""
        return self.limit is not None or self.ranked is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The operator's columns that it reads."""
        read = [*self.where, *(e for _, e in self.outputs), *(key.expr for key in self.order)]
        read += self.ranked.read if self.ranked is not None else ()
        return tuple(dict.fromkeys(name for e in read for name in columns_of(e)))

    @property
    def carried(self) -> pa.Schema:
        """What its rows have on their way to others: what is shown, and in any case the time."""
        if self.time in self.schema.names:
            return self.schema
        return self.schema.append(pa.field(self.time, TIME))

    @property
    def directions(self) -> list[Direction]:
        """How the keys of its order count."""
        return [key.direction for key in self.order]

    def renamed(self, names: Mapping[str, str]) -> Port:
        """The same over an operator that has other names for its columns."""

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
        """The rows that it lets pass."""
        for predicate in self.where:
            rows = rows.filter(pc.fill_null(evaluate(predicate, rows), False))
        return rows

    def selected(self, rows: pa.Table) -> dict[str, pa.Array]:
        """Its columns after the implicit ones, by name."""
        return {name: evaluate(expression, rows) for name, expression in self.outputs}
