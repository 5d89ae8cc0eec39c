"""The fluent Python surface, between a session that makes streams and the logical nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tidegate.errors import QueryError, UnavailableError
from tidegate.nesting import nested
from tidegate.operate.process.definition import FilterFunction
from tidegate.query.aggregate import AggregateCall
from tidegate.query.expression import Expression, lit, to_node
from tidegate.query.join import PredicateFunction
from tidegate.query.name import NamedExpr, canonical, column, find_name, resolve, spark_name
from tidegate.query.node import (
    Aggregate,
    Branch,
    Filter,
    Join,
    Node,
    Order,
    Top,
    Union,
    project,
)
from tidegate.query.option import ErrorBound, Shed
from tidegate.query.process import Factory, Keys, process
from tidegate.query.unqualified import unqualified
from tidegate.query.window import (
    Distance,
    Duration,
    JoinWindow,
    TupleWindow,
    Window,
    duration_us,
    read_window,
    whole_rows,
)

Launch = Callable[..., Any]
"""Starts a query: launch(node, **options) -> the running query."""

Describe = Callable[..., str]
"""Explains a query: describe(node, **options) -> text."""

Column = str | Expression
"""The name of a column, or an expression."""


@dataclass(frozen=True)
class Stream:
    """A stream, or what a query makes of one; every method gives a new one and changes nothing.

    The session makes it and hands in how queries are started and explained.
    """

    node: Node
    launch: Launch
    describe: Describe

    @nested
    def where(self, *conditions: Expression) -> Stream:
        """Keep the tuples for which all conditions are true; after a window, the rows."""
        node = self.node
        for condition in conditions:
            node = Filter(node, to_node(condition))
        return self._with(node)

    filter = where

    @nested
    def having(self, *conditions: Expression) -> Stream:
        """Keep the rows of windows for which all conditions are true."""
        if not self.node.windowed:
            raise QueryError("having", "needs an aggregate", None, "Use where() on a stream.")
        return self.where(*conditions)

    @nested
    def select(self, *columns: Column, **named: Column) -> Stream:
        """Choose and compute columns; the event time or the window stays by itself."""
        return self._with(project(self.node, _named(self.node.names, columns, named)))

    def union(self, *others: Stream) -> Stream:
        """The tuples of this stream and of the others, columns matched by position."""
        inputs: list[Node] = []
        for stream in (self, *others):
            node = stream.node
            inputs.extend(node.inputs if isinstance(node, Union) else (unqualified(node),))
        return self._with(Union(tuple(inputs)))

    @nested
    def split(self, *conditions: Expression) -> tuple[Stream, ...]:
        """One stream per condition, each tuple in the first that is true; the last is the rest."""
        parts = tuple(to_node(c) for c in conditions)
        return tuple(self._with(Branch(self.node, parts, i)) for i in range(len(parts) + 1))

    def window(
        self,
        range: Duration | None = None,
        slide: Duration | None = None,
        *,
        rows: int | None = None,
    ) -> Windowed:
        """Windows of this length, one every `slide`; without it they tumble.

        With `rows` in place of a length they are windows of tuples: the last `rows` of each group,
        whenever another `slide` of them have come.
        """
        return Windowed(self, read_window(range, slide, rows), ())

    @nested
    def top(self, n: int, by: Column | None = None, descending: bool = True) -> Stream:
        """The first n rows of every window by a column, the greatest first; ties by key."""
        if isinstance(n, bool) or not isinstance(n, int):
            raise QueryError("top", "needs a whole number of rows", repr(n))
        order = () if by is None else (Order(to_node(by), descending),)
        return self._with(Top(self.node, order, n))

    @nested
    def order_by(self, *by: Column, descending: bool = False) -> Stream:
        """The rows of every window in the order of these columns; ties by key."""
        keys = tuple(Order(to_node(c), descending) for c in by)
        return self._with(Top(self.node, keys, None))

    @nested
    def join(
        self,
        other: Stream,
        *,
        on: Expression | PredicateFunction | bool | None = None,
        within: Duration | tuple[Duration | None, Duration | None] | None = None,
        rows: int | tuple[int | None, int | None] | None = None,
    ) -> Stream:
        """Pairs of tuples of two streams that are near in time, or in number, and fit together.

        `within` is how much earlier the one may be than the other, `rows` how many of the newest
        tuples are kept instead; a pair of values is for this stream and for the other. `on` is an
        expression over `left` and `right`, or a function that gets the rows of both sides as two
        Arrow tables, aligned pair by pair, and returns a boolean for each pair. It must give the
        same answer for the same pair whenever it is asked.
        """
        sizes = zip(_pair(within), _pair(rows), strict=True)
        mine, others = (_join_window(time, count) for time, count in sizes)
        return self._with(Join(self.node, other.node, mine, others, _condition(on)))

    def process(
        self, factory: Factory, *, keys: Keys = None, filter: FilterFunction | None = None
    ) -> Stream:
        """What a class of your own makes of the tuples: one object of it per bucket.

        `keys` is the column whose value says to which object a tuple goes (a column of lists: to
        several), a list of columns that do so together, or a function from an Arrow table of
        tuples to one key or one list of keys for each; without it every object sees every tuple.
        `filter(bucket, table)` may say which of its tuples a bucket needs to see.
        """
        return self._with(process(unqualified(self.node), factory, keys, filter))

    def within(self, error: float, confidence: float = 0.95, budget: int | None = None) -> Stream:
        """Accept answers with this relative error, for less work."""
        bound = ErrorBound(error, confidence, budget)
        raise UnavailableError(f"within({bound})", "approximate answers are not available yet")

    def shed(self, share: float, by: str = "concept") -> Stream:
        """Drop this share of the tuples on purpose."""
        shed = Shed(share, by)
        raise UnavailableError(f"shed({shed})", "shedding is not available yet")

    def explain(self, **options: Any) -> str:
        """The plan as text: nodes, subqueries, where each part runs, output, gate.

        The options are those of `start` that change how a join is done.
        """
        return self.describe(self.node, **options)

    def start(self, **options: Any) -> Any:
        """Run the query; the options are those of the session."""
        return self.launch(self.node, **options)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, the implicit ones first."""
        return self.node.names

    def __getitem__(self, name: str) -> Expression:
        """A column of this stream, checked to exist."""
        return Expression(column(resolve(name, self.node.names, "column")))

    def __repr__(self) -> str:
        return f"Stream({', '.join(self.node.names)})"

    def _with(self, node: Node) -> Stream:
        return Stream(node, self.launch, self.describe)


@dataclass(frozen=True)
class Windowed:
    """A stream with a window, waiting for its aggregates."""

    stream: Stream
    over: Window
    keys: tuple[NamedExpr, ...]

    def group_by(self, *columns: Column, **named: Column) -> Windowed:
        """One result per window and distinct value of these columns."""
        names = self.stream.node.names
        keys = _named(names, columns, named)
        return Windowed(self.stream, self.over, (*self.keys, *keys))

    @nested
    def agg(self, **aggregates: AggregateCall) -> Stream:
        """The aggregates of every window and group, by name."""
        for name, call in aggregates.items():
            if not isinstance(call, AggregateCall):
                raise QueryError(
                    "agg",
                    f"{name} must be an aggregate",
                    repr(call),
                    "Write for example n=count() or fare=mean('fare').",
                )
        stream = self.stream
        return stream._with(Aggregate(stream.node, self.over, self.keys, tuple(aggregates.items())))


def _pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, tuple):
        return value, value
    if len(value) != 2:
        raise QueryError("join", "needs one value, or one for each side", repr(value))
    return value


def _join_window(within: Duration | None, rows: int | None) -> JoinWindow:
    if (within is None) == (rows is None):
        raise QueryError(
            "join",
            "each side needs a window",
            "none" if within is None else "two",
            'Write for example within="5 minutes", or rows=100.',
        )
    if within is not None:
        return Distance(duration_us(within, "join within"))
    count = whole_rows(rows, "join rows")
    return TupleWindow(count, count)


def _condition(
    on: Expression | PredicateFunction | bool | None,
) -> exp.Expression | PredicateFunction:
    if isinstance(on, Expression | bool):
        return lit(on).node
    if callable(on):
        return on
    raise QueryError(
        "join",
        "on must be an expression over left and right, or a function of their rows",
        "nothing" if on is None else repr(on),
        "Write for example on=left.x == right.a, or on=True for all pairs.",
    )


def _named(
    names: Sequence[str], columns: Iterable[Column], named: Mapping[str, Column]
) -> list[NamedExpr]:
    """Expressions with the names they go by: an alias, the column's own name, or their text."""
    items: list[NamedExpr] = []
    for value in columns:
        node = to_node(value)
        if isinstance(value, Expression) and isinstance(value.node, exp.Alias):
            items.append((value.node.alias, node))
        elif isinstance(node, exp.Column):
            items.append((find_name(node.name, names) or node.name, node))
        else:
            items.append((spark_name(canonical(node, names, "select")), node))
    return items + [(name, to_node(value)) for name, value in named.items()]
