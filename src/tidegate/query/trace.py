"""Rewrites a query so that each of its rows says which input tuples it was made of.

Streams get a column of ids, which other nodes pass on and aggregates gather as text. Rows, their
order and their other columns stay as they are, also those of answers from samples.
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
from tidegate.query.aggregation import Top
from tidegate.query.asof import AsOf
from tidegate.query.dedup import Dedup
from tidegate.query.graph import bottom_up
from tidegate.query.join import Join
from tidegate.query.limit import Limit
from tidegate.query.name import NamedExpr, SideName, column
from tidegate.query.node import (
    Aggregate,
    Branch,
    Filter,
    Input,
    Node,
    Project,
    Union,
    data_names,
)
from tidegate.query.over import Lead, Over
from tidegate.query.process import ProcessNode
from tidegate.query.table import TableContent, TableDef
from tidegate.query.table_join import TableJoin
from tidegate.query.unnest import Unnest
from tidegate.query.window_process import WindowProcess

WHY = "#why"
"""How the names of columns begin that have the ids of tuples."""

SEPARATOR = ","

_GATHERED = "traced"
"""The aggregate that gathers the ids of the tuples that an answer has used."""

Ids = tuple[str, ...]
"""The columns of a node that have ids; together they are those of its rows."""

Traced = tuple[Node, Ids]

Rule = Callable[[Any, Sequence[Traced]], Traced]
"""Traces a node over children that are traced."""


class UntracedError(UnavailableError):
    """Some node does not say of which tuples its rows are made: a class of the user's."""


def traced(root: Node) -> dict[int, Traced]:
    """By the identity of each node of a query the same node with ids, and where they are."""
    found: dict[int, Traced] = {}
    numbers = {table.name: -1 - place for place, table in enumerate(traced_tables(root))}
    rules: dict[type[Any], Rule] = {**_RULES, TableJoin: partial(_with_table, numbers)}
    for node in bottom_up([root]):
        children = [found[id(child)] for child in node.children]
        found[id(node)] = rules[type(node)](node, children)
    return found


def traced_tables(root: Node) -> list[TableDef]:
    """The tables whose rows have ids: -1:7 is row 7 of the first.

    Not those that are read again, of which a row may be gone, nor those that only filter.
    """
    joins = (node for node in bottom_up([root]) if isinstance(node, TableJoin))
    tables = (join.table for join in joins if not join.filters and join.table.refresh_us is None)
    return list({table.name: table for table in tables}.values())


def table_rows(table: TableDef) -> pa.Table:
    """All rows of a table, as it is now; they are held whole."""
    content = table.read(sys.maxsize)
    assert isinstance(content, TableContent), "no size is too large"
    return from_bytes(content.data)


def _input(node: Input, _: Sequence[Traced]) -> Traced:
    schema = node.stream.schema.append(pa.field(WHY, pa.string()))
    return Input(replace(node.stream, schema=schema)), (WHY,)


def _passed(node: Any, children: Sequence[Traced]) -> Traced:
    """A node that passes on the columns of its child."""
    ((child, ids),) = children
    return replace(node, child=child), ids


def _projected(node: Project, children: Sequence[Traced]) -> Traced:
    ((child, ids),) = children
    named = tuple((f"{WHY}{number}", column(name)) for number, name in enumerate(ids))
    return replace(node, child=child, columns=(*node.columns, *named)), tuple(n for n, _ in named)


def _united(node: Union, children: Sequence[Traced]) -> Traced:
    """Sides match by position, so each has its ids in one column, the last."""
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
    """LIMIT of a stream, a process of our own, whose rows are those that it was given."""
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
"""How each kind of node is traced, beside joins to tables; one that is missing is an error."""


def joined(ids: Ids) -> exp.Expression:
    """All ids of a row in one text."""
    if len(ids) == 1:
        return column(ids[0])
    none, comma = exp.Literal.string(""), exp.Literal.string(SEPARATOR)
    texts: list[exp.Expression] = [exp.Coalesce(this=column(n), expressions=[none]) for n in ids]
    return reduce(lambda a, b: exp.Concat(expressions=[a, comma.copy(), b]), texts)
