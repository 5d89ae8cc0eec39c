"""Rewrites a query so that each row lists the input tuples it was made of (`tidegate why`).

Streams get a column of ids; other nodes pass it on and aggregates collect the ids as text. Rows,
their order and their other columns do not change, not even in answers from samples.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tidegate.batch import from_bytes
from tidegate.errors import UnavailableError
from tidegate.operate.process.first_rows import FirstRows, limit_of
from tidegate.query.aggregate import AggregateCall
from tidegate.query.name import NamedExpr, SideName, column
from tidegate.query.node.aggregation import Top
from tidegate.query.node.asof import AsOf
from tidegate.query.node.dedup import Dedup
from tidegate.query.node.graph import bottom_up
from tidegate.query.node.join import Join
from tidegate.query.node.limit import Limit
from tidegate.query.node.node import (
    Aggregate,
    Branch,
    Filter,
    Input,
    Node,
    Project,
    Union,
    data_names,
)
from tidegate.query.node.over import Lead, Over
from tidegate.query.node.process import ProcessNode
from tidegate.query.node.table_join import TableJoin
from tidegate.query.node.unnest import Unnest
from tidegate.query.node.window_process import WindowProcess
from tidegate.query.table import TableContent, TableDef

WHY = "#why"
"""The prefix of the names of id columns."""

SEPARATOR = ","

_GATHERED = "traced"
"""The aggregate that collects the ids of the tuples which an answer has used."""

Ids = tuple[str, ...]
"""The id columns of a node; together they hold all ids of a row."""

Traced = tuple[Node, Ids]

Rule = Callable[[Any, Sequence[Traced]], Traced]
"""Rewrites a node over its rewritten children."""


class UntracedError(UnavailableError):
    """A node cannot say which tuples its rows are made of: a user's own class."""


def traced(root: Node) -> dict[int, Traced]:
    """For each node (by `id`), the rewritten node and its id columns."""
    found: dict[int, Traced] = {}
    numbers = {table.name: -1 - place for place, table in enumerate(traced_tables(root))}
    rules: dict[type[Any], Rule] = {**_RULES, TableJoin: partial(_with_table, numbers)}
    for node in bottom_up([root]):
        children = [found[id(child)] for child in node.children]
        found[id(node)] = rules[type(node)](node, children)
    return found


def traced_tables(root: Node) -> list[TableDef]:
    """The tables whose rows have ids: -1:7 is row 7 of the first table.

    Without tables that are read again, whose rows may be gone, and without tables that only filter.
    """
    joins = (node for node in bottom_up([root]) if isinstance(node, TableJoin))
    tables = (join.table for join in joins if not join.filters and join.table.refresh_us is None)
    return list({table.name: table for table in tables}.values())


def table_rows(table: TableDef) -> pa.Table:
    """All rows of a table now, held in memory."""
    content = table.read(sys.maxsize)
    assert isinstance(content, TableContent), "no size is too large"
    return from_bytes(content.data)


def _input(node: Input, _: Sequence[Traced]) -> Traced:
    schema = node.stream.schema.append(pa.field(WHY, pa.string()))
    return Input(replace(node.stream, schema=schema)), (WHY,)


def _passed(node: Any, children: Sequence[Traced]) -> Traced:
    """For nodes that keep the columns of their child."""
    ((child, ids),) = children
    return replace(node, child=child), ids


def _projected(node: Project, children: Sequence[Traced]) -> Traced:
    ((child, ids),) = children
    named = tuple((f"{WHY}{number}", column(name)) for number, name in enumerate(ids))
    return replace(node, child=child, columns=(*node.columns, *named)), tuple(n for n, _ in named)


def _united(node: Union, children: Sequence[Traced]) -> Traced:
    """Union matches columns by position, so each side puts its ids into one column, the last."""
    sides: list[Node] = []
    for original, (child, ids) in zip(node.inputs, children, strict=True):
        held: list[NamedExpr] = [(name, column(name)) for name in data_names(original)]
        if sides:
            held = [(f"c{place}", expression) for place, (_, expression) in enumerate(held)]
        sides.append(Project(child, (*held, (WHY, joined(ids)))))
    return replace(node, inputs=tuple(sides)), (WHY,)


def _paired(node: Any, children: Sequence[Traced]) -> Traced:
    (left, of_left), (right, of_right) = children
    sides = (of_left, of_right)
    names = tuple(
        SideName(node.labels[side], name) for side in node.shown_sides for name in sides[side]
    )
    return replace(node, left=left, right=right), names


def _with_table(numbers: Mapping[str, int], node: TableJoin, children: Sequence[Traced]) -> Traced:
    ((child, ids),) = children
    made = replace(node, child=child)
    if node.filters:
        return made, ids
    names = tuple(SideName(node.labels[0], name) for name in ids)
    number = numbers.get(node.table.name)
    if number is None:
        return made, names
    table = _with_row_ids(node.table, number)
    return replace(made, table=table), (*names, SideName(node.labels[1], WHY))


def _with_row_ids(table: TableDef, number: int) -> TableDef:
    """The same table with a column of ids, by the order of its rows."""

    def rows() -> pa.Table:
        found = table_rows(table)
        ids = pa.array([f"{number}:{row}" for row in range(found.num_rows)], pa.string())
        return found.append_column(WHY, ids)

    schema = table.schema.append(pa.field(WHY, pa.string()))
    return replace(table, schema=schema, given=rows)


def _aggregated(node: Aggregate, children: Sequence[Traced]) -> Traced:
    ((child, ids),) = children
    gathered = AggregateCall(_GATHERED, (joined(ids),), (SEPARATOR,))
    calls = (*node.aggregates, (WHY, gathered))
    return replace(node, child=child, aggregates=calls), (WHY,)


def _limited(node: Limit, children: Sequence[Traced]) -> Traced:
    """LIMIT of a stream is a process, but its rows are its input rows, so ids pass through."""
    ((child, ids),) = children
    output = (*node.output, *((name, pa.string()) for name in ids))
    limit = limit_of(node.factory)
    assert limit is not None
    factory = partial(FirstRows, limit, output)
    return replace(node, child=child, factory=factory, output=output), ids


def _untraced(node: ProcessNode | WindowProcess, _: Sequence[Traced]) -> Traced:
    raise UntracedError(
        "why", "a class of your own does not say what its rows are of", node.summary
    )


_RULES: dict[type[Any], Rule] = {
    Input: _input,
    Filter: _passed,
    Branch: _passed,
    Project: _projected,
    Union: _united,
    Unnest: _passed,
    Join: _paired,
    AsOf: _paired,
    Aggregate: _aggregated,
    Top: _passed,
    Dedup: _passed,
    Over: _passed,
    Lead: _passed,
    Limit: _limited,
    ProcessNode: _untraced,
    WindowProcess: _untraced,
}
"""How each kind of node is rewritten, besides joins to tables; a missing kind is an error."""


def joined(ids: Ids) -> exp.Expression:
    """All ids of a row as one text."""
    if len(ids) == 1:
        return column(ids[0])
    none, comma = exp.Literal.string(""), exp.Literal.string(SEPARATOR)
    texts: list[exp.Expression] = [exp.Coalesce(this=column(n), expressions=[none]) for n in ids]
    return reduce(lambda a, b: exp.Concat(expressions=[a, comma.copy(), b]), texts)
