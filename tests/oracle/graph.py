"""Whole queries row by row over their logical nodes, from sources to outputs: the graph's twin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tests.oracle.aggregate import result, sort_key, windows
from tests.oracle.expression import value
from tests.oracle.gate import PlainSource
from tests.oracle.join import LEFT, RIGHT, Joined, Newest, Within, pairs
from tests.oracle.outer_join import outer_rows
from tests.oracle.process import process
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.process.definition import CALLS
from tidegate.query.binder import bind, bind_predicate
from tidegate.query.name import EVENT_TIME, WINDOW, SideName
from tidegate.query.node.join import Join
from tidegate.query.node.node import (
    Aggregate,
    Branch,
    Filter,
    Input,
    Node,
    Order,
    ProcessNode,
    Project,
    Top,
    Union,
    data_names,
    types_of,
)
from tidegate.query.unqualified import unqualified_columns
from tidegate.query.window import Distance, JoinWindow, TimeWindow, TupleWindow
from tidegate.route.bucket import bucket_of

Row = Mapping[str, Any]
Sources = Mapping[str, Sequence[pa.Table]]


@dataclass(frozen=True)
class Place:
    """Where a tuple stands among those of its time, as the operator above sees them."""

    input: int
    source: int
    number: int

    def after(self, inputs: int) -> Place:
        """The place in an operator that has so many inputs to the left."""
        return replace(self, input=self.input + inputs)


@dataclass(frozen=True)
class Tuple:
    """A row on its way, with its event time in microseconds and its place."""

    ts: int
    place: Place
    cells: Row

    @property
    def order(self) -> tuple[int, int, int, int]:
        return (self.ts, self.place.input, self.place.source, self.place.number)


@dataclass(frozen=True)
class Edge:
    """All that a node ever gives, in the total order, and how many inputs are below it.

    The inputs of an operator are streams and results of other operators; what is stateless
    between hands the places on.
    """

    tuples: Sequence[Tuple]
    inputs: int = 1


def interpret(
    nodes: Mapping[str, Node], sources: Sources, buckets: int = 8
) -> dict[str, list[dict[str, Any]]]:
    """The rows of each output in order, times in microseconds; `sources` are by stream.

    Only the objects of a user's own operator know of buckets.
    """
    graph = _Graph(sources, buckets)
    return {
        name: [_shown(node, t) for t in graph.edge(node).tuples] for name, node in nodes.items()
    }


class _Graph:
    """One interpretation; equal nodes are interpreted once."""

    def __init__(self, sources: Sources, buckets: int) -> None:
        self.sources = sources
        self.buckets = buckets
        self.known: dict[Node, Edge] = {}

    def edge(self, node: Node) -> Edge:
        if node not in self.known:
            self.known[node] = _MEANING[type(node)](self, node)
        return self.known[node]

    def input(self, node: Input) -> Edge:
        stream, found = node.stream, []
        for number, table in enumerate(self.sources[stream.name]):
            source = PlainSource(stream.disorder_us)
            for seq, row in enumerate(_rows(table)):
                ts = row[stream.time]
                if source.speak(seq, ts):
                    cells = row if node.shadowed else {EVENT_TIME: ts, **row}
                    found.append(Tuple(ts, Place(0, number, seq), cells))
        return Edge(_in_order(found))

    def filter(self, node: Filter | Branch) -> Edge:
        holds = _predicate(node.predicate, types_of(node.child))
        below = self.edge(node.child)
        return replace(below, tuples=[t for t in below.tuples if holds(t.cells) is True])

    def project(self, node: Project) -> Edge:
        columns = [(name, _expression(e, node.child)) for name, e in node.columns]
        below = self.edge(node.child)
        tuples = [
            replace(t, cells=_implicit(node, t) | {name: of(t.cells) for name, of in columns})
            for t in below.tuples
        ]
        return replace(below, tuples=tuples)

    def union(self, node: Union) -> Edge:
        names = data_names(node)
        found: list[Tuple] = []
        inputs = 0
        for child in node.inputs:
            own, below = data_names(child), self.edge(child)
            for name, theirs in zip(names, own, strict=True):
                assert types_of(node)[name] == types_of(child)[theirs], "no cast is interpreted"
            for t in below.tuples:
                cells = {name: t.cells[theirs] for name, theirs in zip(names, own, strict=True)}
                cells = {EVENT_TIME: _own(child, t)} | cells
                found.append(Tuple(t.ts, t.place.after(inputs), cells))
            inputs += below.inputs
        return Edge(_in_order(found), inputs)

    def aggregate(self, node: Aggregate) -> Edge:
        tuples = self.edge(node.child).tuples
        if isinstance(node.window, TupleWindow):
            return _numbered(_tuple_windows(node, node.window, tuples))
        return _numbered(_time_windows(node, node.window, tuples))

    def process(self, node: ProcessNode) -> Edge:
        assert node.filter is None, "filters of buckets are not interpreted"
        below = self.edge(node.child).tuples
        rows = [{**t.cells, "ts": t.ts, "src": 0, "seq": i} for i, t in enumerate(below)]
        keys, bucket = _routed(node, self.buckets)
        names = [name for name, _ in node.output]
        made = process(node.factory, names, rows, keys, bucket, self.buckets, CALLS)
        return _numbered((line[0], dict(zip(node.names, line, strict=True))) for line in made)

    def top(self, node: Top) -> Edge:
        keys = [(_expression(o.expression, node.child), o) for o in node.order]
        found: list[tuple[int, Row]] = []
        below = self.edge(node.child).tuples
        for _, window in groupby(below, key=lambda t: t.cells[WINDOW[1]]):
            rows = list(window)
            for of, order in reversed(keys):
                rows = _ordered(rows, of, order)
            found += [(t.ts, t.cells) for t in rows[: node.limit]]
        return _numbered(found)

    def join(self, node: Join) -> Edge:
        left, right = self.edge(node.left), self.edge(node.right)
        both = [(t, LEFT) for t in left.tuples]
        both += [(replace(t, place=t.place.after(left.inputs)), RIGHT) for t in right.tuples]
        both.sort(key=lambda pair: pair[0].order)
        met = [{"ts": t.ts, "stream": side, "cells": t.cells} for t, side in both]
        reaches = _reach(node.left_window), _reach(node.right_window)
        plain = Joined(*reaches, lambda a, b: True, lambda a, b: ())
        holds = _predicate(node.predicate, node.pair_types)
        found = [p for p in pairs(plain, met) if holds(_pair(node, *p)) is True]
        if node.kind.summary == "join":
            return _numbered((ts, _pair(node, ts, a, b)) for ts, a, b in found)
        assert all(isinstance(reach, Within) for reach in reaches)
        how, ranges = node.kind.summary.split()[0], [w.range_us for w in reaches]
        rows = outer_rows(how, met, found, (ranges[0], ranges[1]))
        return _numbered((r.at, _pair(node, r.ts, r.left, r.right)) for r in rows)


_MEANING: dict[type, Callable[[_Graph, Any], Edge]] = {
    Input: _Graph.input,
    Filter: _Graph.filter,
    Branch: _Graph.filter,
    Project: _Graph.project,
    Union: _Graph.union,
    Aggregate: _Graph.aggregate,
    ProcessNode: _Graph.process,
    Top: _Graph.top,
    Join: _Graph.join,
}


def _rows(table: pa.Table) -> list[Row]:
    """The rows of a source, times in microseconds."""
    whole = [
        c.cast(pa.timestamp("us", c.type.tz)).cast(pa.int64())
        if pa.types.is_timestamp(c.type)
        else c
        for c in table.columns
    ]
    return list(pa.table(whole, names=table.column_names).to_pylist())


def _in_order(tuples: Iterable[Tuple]) -> list[Tuple]:
    return sorted(tuples, key=lambda t: t.order)


def _numbered(rows: Iterable[tuple[int, Row]]) -> Edge:
    """What a stateful operator gives: one input of those above, numbered in its output order."""
    return Edge([Tuple(ts, Place(0, 0, i), cells) for i, (ts, cells) in enumerate(rows)])


def _expression(expression: exp.Expression, child: Node) -> Callable[[Row], Any]:
    bound = bind(expression, types_of(child), "oracle")
    return lambda row: value(bound, row)


def _predicate(predicate: Any, types: Mapping[str, pa.DataType]) -> Callable[[Row], bool | None]:
    """A condition with SQL's third value; None lets everything pass."""
    if predicate is None:
        return lambda row: True
    assert isinstance(predicate, exp.Expression), "functions of pairs are not interpreted"
    bound = bind_predicate(predicate, types, "oracle")
    return lambda row: value(bound, row)


def _implicit(node: Node, t: Tuple) -> dict[str, Any]:
    """The columns that a row has by itself: its window, or its time."""
    return {n: t.cells[n] for n in WINDOW} if node.windowed else {EVENT_TIME: _own(node, t)}


def _own(node: Node, t: Tuple) -> int:
    """The time that a row shows: its own where the node says that it has one."""
    ts = t.cells[EVENT_TIME] if node.own_time else t.ts
    assert isinstance(ts, int)
    return ts


def _time_windows(
    node: Aggregate, window: TimeWindow, tuples: Iterable[Tuple]
) -> list[tuple[int, Row]]:
    """Windows in order of their end, then of the key; each stands at its last microsecond."""
    group, functions, rows = _gathered(node, tuples)
    keys = tuple((k, types_of(node)[name]) for k, (name, _) in zip(group, node.keys, strict=True))
    spec = AggregateSpec(PaneWindow(window.range_us, window.slide_us), keys, functions)
    return [(line[1] - 1, dict(zip(node.names, line, strict=True))) for line in windows(spec, rows)]


def _tuple_windows(
    node: Aggregate, window: TupleWindow, tuples: Iterable[Tuple]
) -> list[tuple[int, Row]]:
    """A window for each group that holds `rows` tuples, which then loses the `slide` oldest."""
    group, functions, rows = _gathered(node, tuples)
    held: dict[tuple[Any, ...], list[Row]] = {}
    found: list[tuple[int, Row]] = []
    for row in rows:
        members = held.setdefault(tuple(sort_key(row[k]) for k in group), [])
        members.append(row)
        if len(members) == window.rows:
            oldest, newest = members[0]["ts"], row["ts"]
            line = [oldest, newest, *(members[0][k] for k in group)]
            line += [result(f, members, {}) for f in functions]
            found.append((newest, dict(zip(node.names, line, strict=True))))
            del members[: window.slide]
    return found


def _gathered(
    node: Aggregate, tuples: Iterable[Tuple]
) -> tuple[list[str], tuple[Function, ...], list[Row]]:
    """The names of the keys, the functions, and the rows with both keys and arguments in them."""
    types = types_of(node.child)
    columns = {f"k{i}": _expression(e, node.child) for i, (_, e) in enumerate(node.keys)}
    group, functions = list(columns), []
    for i, (name, call) in enumerate(node.aggregates):
        given = [bind(a, types, "oracle").type for a in call.arguments]
        ready = call.coerced(given)
        taken = tuple(f"x{i}_{j}" for j in range(len(ready.arguments)))
        columns |= {
            x: _expression(a, node.child) for x, a in zip(taken, ready.arguments, strict=True)
        }
        whole = [bind(a, types, "oracle").type for a in ready.arguments]
        functions.append(ready.function(name, taken, whole))
    rows = [
        {"ts": t.ts, "src": (t.place.input, t.place.source), "seq": t.place.number}
        | {name: of(t.cells) for name, of in columns.items()}
        for t in tuples
    ]
    return group, tuple(functions), rows


def _routed(
    node: ProcessNode, buckets: int
) -> tuple[Callable[[Row], list[Any]] | None, Callable[[Any], int]]:
    """The keys of a tuple, None where all buckets see it, and the bucket of a key."""
    if node.keys is None:
        return None, lambda key: 0
    assert not callable(node.keys), "functions of keys are not interpreted"
    [column] = node.keys
    type_ = types_of(node.child)[column]
    return (
        lambda row: [row[column]],
        lambda key: int(bucket_of([pa.array([key], type_)], buckets)[0]),
    )


def _ordered(rows: Sequence[Tuple], of: Callable[[Row], Any], order: Order) -> list[Tuple]:
    """A stable sort by one key; NULLs stand apart, whichever way the values go."""
    nulls = [t for t in rows if of(t.cells) is None]
    rest = [t for t in rows if of(t.cells) is not None]
    rest.sort(key=lambda t: sort_key(of(t.cells)), reverse=order.descending)
    return nulls + rest if order.nulls_lead else rest + nulls


def _reach(window: JoinWindow) -> Within | Newest:
    return Within(window.range_us) if isinstance(window, Distance) else Newest(window.rows)


def _pair(node: Join, ts: int, left: Row | None, right: Row | None) -> Row:
    """The columns of a pair, each under the name of its side; those of a missing one are NULL."""
    found: dict[str, Any] = {EVENT_TIME: ts}
    for label, child, row in zip(node.labels, node.children, (left, right), strict=True):
        cells = dict.fromkeys(child.names) if row is None else row["cells"]
        found |= {SideName(label, name): cell for name, cell in cells.items()}
    return found


def _shown(node: Node, t: Tuple) -> dict[str, Any]:
    """A row as a sink gets it."""
    return _implicit(node, t) | {name: t.cells[own] for name, own in unqualified_columns(node)}
