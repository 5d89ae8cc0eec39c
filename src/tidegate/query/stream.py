"""The fluent Python API: streams, and the methods that add logical nodes to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidegate.calendar.duration import Duration, duration_us
from tidegate.errors import QueryError
from tidegate.nesting import nested
from tidegate.operate.process.definition import FilterFunction
from tidegate.query.aggregate import AggregateCall
from tidegate.query.clause.balance import Balance
from tidegate.query.clause.clause import Clause
from tidegate.query.clause.emit import EmitEvery
from tidegate.query.clause.error import ErrorBound
from tidegate.query.clause.registry import METHODS
from tidegate.query.clause.shed import CONCEPT, Shed
from tidegate.query.expression import Expression
from tidegate.query.having import having_over
from tidegate.query.name import column, find_name, resolve
from tidegate.query.node.dedup import FIRST, Dedup
from tidegate.query.node.join import PredicateFunction
from tidegate.query.node.limit import ordered
from tidegate.query.node.node import (
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
from tidegate.query.node.over import LagCall, NthCall, RankCall, over_call, with_calls
from tidegate.query.node.process import Factory, Keys, process
from tidegate.query.ranking import TopRanked
from tidegate.query.runnable import RunnableStream
from tidegate.query.surface import habit
from tidegate.query.surface.arguments import (
    Column,
    explode,
    join_condition,
    join_kind,
    join_windows,
    named_columns,
    read_expression,
    renamed_columns,
    with_columns,
    without_columns,
)
from tidegate.query.surface.asof import EXAMPLE as _JOIN_ASOF
from tidegate.query.surface.asof import On, read_asof
from tidegate.query.surface.signature import called_as
from tidegate.query.surface.stream_view import not_a_name
from tidegate.query.surface.table import Table, definition_of, table_join
from tidegate.query.unqualified import unqualified
from tidegate.query.window import read_window
from tidegate.query.windowed_stream import Windowed

_JOIN = '.join(other, within="5 minutes", on=left.route == right.route)'


@dataclass(frozen=True, repr=False)
class Stream(RunnableStream):
    """A stream or a query over streams; every method returns a new one and changes nothing.
    Sessions make streams, and supply the functions that start, explain and preview them.
    """

    @nested
    @called_as('.where(col("fare") > 5)')
    def where(self, *conditions: Expression) -> Stream:
        """Keep the tuples, or after a window the rows, for which all conditions are true."""
        node = self.node
        for condition in conditions:
            read = read_expression(condition, node.names, "where")
            node = having_over(node, [read]) if isinstance(node, Aggregate) else Filter(node, read)
        return self._with(node)

    filter = where

    @nested
    @called_as('.having(col("n") > 5)')
    def having(self, *conditions: Expression) -> Stream:
        """Keep the rows of windows for which all conditions are true."""
        if not self.node.windowed:
            raise QueryError("having", "needs an aggregate", None, "Use where() on a stream.")
        return self.where(*conditions)

    @nested
    def select(self, *columns: Column, **named: Column) -> Stream:
        """Choose and compute columns; the event time or the window is always kept. `"*"` stands for
        all columns: `select("*", half=col("fare") / 2)`.
        """
        return self._with(project(self.node, named_columns(self.node, columns, named)))

    @nested
    def with_columns(self, *columns: Column, **named: Column) -> Stream:
        """Add columns; one with the name of an existing column replaces it."""
        more = named_columns(self.node, columns, named, "with_columns")
        return self._with(project(self.node, with_columns(self.node, more)))

    @nested
    def drop(self, *columns: Column) -> Stream:
        """Leave out columns; the event time or the window is always kept."""
        return self._with(project(self.node, without_columns(self.node, columns)))

    @nested
    @called_as('.rename(fare="price")')
    def rename(self, names: Mapping[str, str] | None = None, /, **named: str) -> Stream:
        """Rename columns: `rename(old="new")`, or with a dictionary."""
        return self._with(
            project(self.node, renamed_columns(self.node, {**(names or {}), **named}))
        )

    @nested
    @called_as('.explode("tags"), or .explode("tags", into="tag")')
    def explode(
        self,
        column: Column,
        *,
        into: str | None = None,
        position: str | None = None,
        outer: bool = False,
    ) -> Stream:
        """One row for each value of a list, in its order, at the time of the tuple.

        The value replaces the list column, or goes into the column `into`. `position` names a
        column for the value's place in the list, counted from 0. An empty or NULL list gives no
        row; with `outer` it gives one row with NULL as the value.
        """
        return self._with(explode(unqualified(self.node), column, into, position, outer))

    def union(self, *others: Stream) -> Stream:
        """The tuples of this stream and the others, columns matched by position."""
        inputs: list[Node] = []
        for stream in (self, *others):
            node = _stream(stream, "union", ".union(other)").node
            inputs.extend(node.inputs if isinstance(node, Union) else (unqualified(node),))
        return self._with(Union(tuple(inputs)))

    @nested
    def split(self, *conditions: Expression) -> tuple[Stream, ...]:
        """One stream per condition, each tuple in the first that is true; the last has the rest."""
        parts = tuple(read_expression(c, self.node.names, "split") for c in conditions)
        return tuple(self._with(Branch(self.node, parts, i)) for i in range(len(parts) + 1))

    @nested
    @called_as('.drop_duplicates("id", within="1 hour")')
    def drop_duplicates(self, *columns: Column, within: Duration, keep: str = FIRST) -> Stream:
        """Drop tuples that repeat a kept one: same columns, at most `within` after it.

        Without columns, all columns are compared. A key is forgotten after that time. With
        keep="last" the last tuple within that time of the first is kept instead, and comes once the
        time has passed.
        """
        node = unqualified(self.node)
        keys = named_columns(node, columns or ("*",), {}, "drop_duplicates")
        within_us = duration_us(within, "drop_duplicates within")
        return self._with(Dedup(node, tuple(e for _, e in keys), within_us, keep))

    @nested
    @called_as('.over("route", rows=5, total=sum("fare"))')
    def over(
        self,
        *partition_by: Column,
        rows: int | None = None,
        range: Duration | None = None,
        **columns: AggregateCall | LagCall | NthCall | RankCall,
    ) -> Stream:
        """Add columns computed over the tuples of the same key up to each tuple.

        They are aggregates, `lag("fare", 1)`, `nth_value("fare", 2)`, `row_number()`, or `rank()`
        and `dense_rank()`, for which tuples of one instant are peers. `rows` is how many tuples
        before it count, `range` how much earlier they may be; without either, all up to its
        instant. `lead("fare", 1)` looks forward: a row comes when that later tuple has come.
        """
        node = unqualified(self.node)
        keys = [e for _, e in named_columns(node, partition_by, {}, "over")]
        calls = {name: over_call(name, c, rows, range) for name, c in columns.items()}
        made = with_calls(node, {tuple(keys): calls})
        names = [n for n in made.names if n not in calls]
        return self._with(project(made, [(n, column(n)) for n in (*names, *calls)]))

    @called_as('.window("15 minutes", slide="5 minutes"), or .window(rows=100)')
    def window(
        self,
        range: Duration | None = None,
        slide: Duration | None = None,
        *,
        rows: int | None = None,
        offset: Duration | None = None,
        time_zone: str | None = None,
        session: Duration | None = None,
        max: Duration | None = None,
        **more: Any,
    ) -> Windowed:
        """Windows of this length, one every `slide`; without `slide` they tumble.

        They are aligned at the Unix epoch, or `offset` later. With a `time_zone` they are whole
        local days, weeks (from Monday) or months, and begin at local midnight.

        With `rows` instead of a length, a window is the last `rows` tuples of each group, after
        every `slide` new ones. With `session` it lasts while each tuple of a group comes at most
        that long after the one before; a tuple more than `max` after the first begins a new
        session.
        """
        if isinstance(range, Expression) or (
            isinstance(range, str) and find_name(range, self.node.names)
        ):
            raise QueryError(
                "window",
                "the event time is known from the stream, and need not be named",
                repr(range),
                'Write for example window("15 minutes", slide="5 minutes").',
            )
        sizes = {"offset": offset, "time_zone": time_zone, "session": session, "max": max, **more}
        return Windowed(self, read_window(range, slide, rows, **sizes), ())

    @nested
    @called_as(".limit(10)")
    def limit(self, n: int) -> Stream:
        """The first n rows, then the query ends; after a window, the first n of every window."""
        if isinstance(n, bool) or not isinstance(n, int):
            raise QueryError("limit", "needs a whole number of rows", repr(n))
        return self._with(ordered(self.node, (), n))

    @nested
    @called_as('.top(10, by="fare")')
    def top(
        self,
        n: int,
        by: Column | None = None,
        descending: bool = True,
        *,
        per: Column | Sequence[Column] = (),
    ) -> Stream:
        """The first n rows of every window, or of every window and value of the columns `per`, by a
        column: the greatest first, ties by key.
        """
        if isinstance(n, bool) or not isinstance(n, int):
            raise QueryError("top", "needs a whole number of rows", repr(n))
        names = self.node.names
        order = () if by is None else (Order(read_expression(by, names, "top"), descending),)
        if not self.node.windowed and by is None and not per:
            return self.limit(n)
        if not per:
            return self._with(ordered(self.node, order, n))
        parts = [e for _, e in named_columns(self.node, [per], {}, "top")]
        return self._with(Top(self.node, order, None, TopRanked.first(n, tuple(parts), order)))

    @nested
    @called_as('.order_by("fare", descending=True)')
    def order_by(self, *by: Column, descending: bool = False) -> Stream:
        """Sort the rows of every window by these columns; ties by key."""
        names = self.node.names
        keys = tuple(Order(read_expression(c, names, "order_by"), descending) for c in by)
        return self._with(ordered(self.node, keys, None))

    @nested
    @called_as(_JOIN)
    def join(
        self,
        other: Stream | Table,
        *,
        on: Expression | PredicateFunction | str | Sequence[str] | bool | None = None,
        within: Duration | tuple[Duration | None, Duration | None] | None = None,
        rows: int | tuple[int | None, int | None] | None = None,
        how: str = "inner",
    ) -> Stream:
        """Pairs of tuples of two streams that are close in time or number and satisfy a condition.

        `within` is how much earlier one may be than the other; `rows` keeps the newest tuples by
        number instead. A pair of values is for this stream and for the other. `on` is an expression
        over `left` and `right`, or a function that gets the rows of both sides as two Arrow tables,
        aligned pair by pair, and returns a boolean for each pair. It must always give the same
        answer for the same pair.

        `how` is the kind of the join, named as in Spark: "inner", "left", "right", "full", "semi",
        "anti". A row without a partner is emitted when its window has passed, with its own `ts`.

        A table needs no window: `rides.join(zones, on=left.zone == right.id, how="left")`. `how` is
        then "inner", "left", "semi" or "anti"; `on` may also name columns that both have.
        """
        if isinstance(other, Table):
            if within is not None or rows is not None:
                raise QueryError(
                    "join", "a table has no window", "within= or rows=", "Leave it out."
                )
            return self._with(table_join(self.node, other.definition, on, join_kind(how)))
        _stream(other, "join", _JOIN)
        windows, kind = join_windows(within, rows), join_kind(how)
        return self._with(Join(self.node, other.node, *windows, join_condition(on), kind=kind))

    @nested
    @called_as(_JOIN_ASOF)
    def join_asof(
        self,
        other: Stream,
        *,
        on: On = None,
        tolerance: Duration | None = None,
        direction: str = "backward",
        allow_equal: bool = True,
        how: str = "inner",
    ) -> Stream:
        """Each tuple with the tuple of the other stream that is nearest before it in time.

        `on` names the columns that must be equal, or is an expression over `left` and `right`;
        without it all tuples have one key. The partner may be any age, or at most `tolerance` old;
        with `allow_equal=False` it must be earlier. `direction="forward"` takes the nearest tuple
        after it, and needs a tolerance. Of several partners at one instant the last in the total
        order counts. A tuple without one is left out, or with `how="left"` kept with NULLs. A row
        has the time of the left tuple; its columns are named with `left` and `right`.
        """
        _stream(other, "join_asof", _JOIN_ASOF)
        node = read_asof(
            self.node,
            other.node,
            on,
            tolerance=tolerance,
            direction=direction,
            allow_equal=allow_equal,
            how=how,
        )
        return self._with(node)

    @called_as('.process(MyProcess, keys="user"), with a class derived from tg.Process')
    def process(
        self,
        factory: Factory,
        *,
        keys: Keys = None,
        filter: FilterFunction | None = None,
        initial: Table | None = None,
    ) -> Stream:
        """Run a class of your own over the tuples: one object of it per bucket.

        `keys` says which objects see a tuple: the column whose value decides (a column of lists:
        several), a list of columns that decide together, or a function from an Arrow table of
        tuples to one key or one list of keys for each. Without it every object sees every tuple.
        `filter(bucket, table)` may say which of its tuples a bucket needs to see. `initial` is a
        table of the session with the key and a column for each map that is to begin with values.
        """
        table = None if initial is None else definition_of(initial, "process initial")
        return self._with(process(unqualified(self.node), factory, keys, filter, table))

    @nested
    @called_as(".within(error=0.1, confidence=0.95)")
    def within(
        self,
        error: float | None = None,
        confidence: float = 0.95,
        budget: int | None = None,
        metric: str = ErrorBound.metric,
        *,
        absolute: float | None = None,
    ) -> Stream:
        """Accept this relative error in the share `confidence` of windows, in exchange for less
        work.

        An `absolute` error is in the aggregates' unit instead. `budget` is how many sampled tuples
        of a window may be in memory, over all groups; without it windows take what they need.
        `metric` says how the errors of a window's groups become one: their "max", "mean" or "rms".
        After each aggregate come its lower and upper bound, and as the last column whether the row
        is exact.
        """
        return self._asked(ErrorBound.called(error, absolute, confidence, budget, metric))

    @called_as(".balance(error=0.1, confidence=0.95)")
    def balance(
        self,
        error: float,
        confidence: float = 0.95,
        saving: float = Balance.saving,
        cold: int | None = Balance.cold_rows,
        trim: str = Balance.trim,
    ) -> Stream:
        """Sample the largest groups of uneven windows, to this error in the share `confidence` of
        cases.

        If a window's tuples are spread unevenly over the buckets, groups in the fullest buckets are
        answered from a sample. All others are exact, with the same columns as `within`. A window
        stays exact if less than the share `saving` of its tuples can be trimmed; a group, if it has
        fewer tuples than `cold`, or than the mean of its window. `trim="all"` trims all aggregates,
        not only your own.
        """
        return self._asked(Balance(error, confidence, saving, cold, trim))

    @called_as('.shed(0.98), .shed(0.98, by="uniform"), or .shed(up_to=0.98)')
    def shed(
        self, share: float | None = None, by: str = CONCEPT, *, up_to: float | None = None
    ) -> Stream:
        """Drop this share of the aggregate's tuples on purpose, and estimate from the rest.

        By "concept" every group stays represented, which may keep more tuples. By "concept total"
        exactly the share is kept, even if groups disappear. By "uniform" every tuple has the same
        chance. With `up_to` instead of the share, nothing is shed without a backlog, and at most
        that share with one. `RunningQuery.shed` changes the share.

        Sums and counts are scaled up; the last column, `kept`, is the share of a group's tuples
        that were kept. A join by equality, and counts, sums and means over one, drop tuples of both
        sides; `kept` is then the probability of a pair, or the share of a group's pairs.
        """
        return self._asked(Shed.called(share, by, up_to))

    @called_as('.emit_every("1 minute")')
    def emit_every(self, every: Duration) -> Stream:
        """Also give rows of windows that are still open, at multiples of this event time: groups
        with tuples since the last multiple give a row over their tuples so far. The last column,
        `final`, says whether a row is the last of its window.
        """
        return self._asked(EmitEvery.of(every))

    def __getitem__(self, name: str) -> Expression:
        """A column of this stream, checked to exist."""
        if not isinstance(name, str):
            raise not_a_name(name)
        return Expression(column(resolve(name, self.node.names, "column")))

    def __getattr__(self, name: str) -> Callable[..., Stream]:
        """The method of a clause that has no method above; any other name raises with advice."""
        if name.startswith("_"):
            raise AttributeError(name)
        if (asked := METHODS.get(name)) is not None:
            made = called_as(asked.example, name)(getattr(asked, "called", asked))
            return lambda *args, **kwargs: self._asked(made(*args, **kwargs))
        of_column = None
        if name in self.node.names and name not in habit.STREAM:
            of_column = f'It is a column: write stream["{name}"], or col("{name}").'
        known = [n for n in dir(type(self)) if n not in Stream.__dataclass_fields__]
        raise habit.stranger("stream", name, habit.STREAM, known, of_column)

    def _asked(self, clause: Clause) -> Stream:
        return self._with(clause.put(self.node))

    def _with(self, node: Node) -> Stream:
        return replace(self, node=node)


def _stream(value: object, where: str, example: str) -> Stream:
    if not isinstance(value, Stream):
        raise QueryError(
            where, "needs another stream", type(value).__name__, f"Write for example {example}."
        )
    return value
