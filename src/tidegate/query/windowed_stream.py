"""Offers the fluent API of a stream with a window that has no aggregates yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from tidegate.errors import QueryError
from tidegate.nesting import nested
from tidegate.query.aggregate import AggregateCall
from tidegate.query.clause.partitioner import PartitionedBy
from tidegate.query.grouping import GroupingSets, Sets, by_sets, crossed
from tidegate.query.name import NamedExpr, named_text
from tidegate.query.node.node import Aggregate, Node
from tidegate.query.node.process import Factory
from tidegate.query.node.window_process import window_process
from tidegate.query.surface import habit
from tidegate.query.surface.arguments import Column, check_aggregates, named_columns
from tidegate.query.surface.signature import called_as
from tidegate.query.window import Window
from tidegate.route.registry import partitioner_of

if TYPE_CHECKING:
    from tidegate.query.stream import Stream

Calls = tuple[tuple[str, AggregateCall], ...]


@dataclass(frozen=True, repr=False)
class Windowed:
    """A stream with a window, before agg() or process()."""

    stream: Stream
    over: Window
    keys: tuple[NamedExpr, ...]
    clauses: tuple[PartitionedBy, ...] = ()
    sets: Sets | None = None

    def group_by(self, *columns: Column | GroupingSets, **named: Column) -> Windowed:
        """One row per window and distinct value of these columns.

        `tg.rollup("a", "b")`, `tg.cube("a", "b")` and `tg.grouping_sets(["a", "b"], [])` group by
        several sets of columns and add the column `grouping_id`.
        """
        grouped, node = self, self.stream.node
        for column in columns:
            if isinstance(column, GroupingSets):
                grouped = grouped._by_sets(column)
            else:
                grouped = grouped._with_keys(named_columns(node, [column], {}, "group_by"))
        return grouped._with_keys(named_columns(node, [], named, "group_by"))

    def _with_keys(self, keys: Sequence[NamedExpr]) -> Windowed:
        sets = self.sets and crossed([self.sets, [[name for name, _ in keys]]])
        return replace(self, keys=(*self.keys, *keys), sets=sets)

    def _by_sets(self, given: GroupingSets) -> Windowed:
        node = self.stream.node
        found = [named_columns(node, one, {}, "group_by") for one in given.sets]
        held = {name for name, _ in self.keys}
        new = {name: e for keys in found for name, e in keys if name not in held}
        before = self.sets or (frozenset(held),)
        sets = crossed([before, [[name for name, _ in keys] for keys in found]])
        return replace(self, keys=(*self.keys, *new.items()), sets=sets)

    @called_as('.partition("cam"), or .partition("pk?d=3")')
    def partition(self, by: str) -> Windowed:
        """Choose the partitioner for this aggregate, instead of the run's.

        A name, with parameters after a question mark: hash, shuffle, pk, cm, am, cam, lm, auto,
        which chooses one per window, or standby, which is hash until the policy auto has it choose.
        """
        if not isinstance(by, str):
            raise QueryError(
                "partition",
                "needs the name of a partitioner",
                repr(by),
                'Write .partition("cam").',
            )
        partitioner_of(by, "partition")
        asked = PartitionedBy(by)
        for before in self.clauses:
            if before != asked:
                raise QueryError(
                    "partition",
                    "an aggregate has one partitioner",
                    f"{by} after {before.partitioner}",
                    "Leave one of them out.",
                )
        return replace(self, clauses=(asked,))

    @nested
    def agg(self, *unnamed: AggregateCall, **aggregates: AggregateCall) -> Stream:
        """The aggregates of every window and group, by column name."""
        check_aggregates(unnamed, aggregates)
        stream = self.stream
        calls = tuple(aggregates.items())

        def over(child: Node, keys: Sequence[NamedExpr], calls: Calls) -> Aggregate:
            return Aggregate(child, self.over, tuple(keys), calls, self.clauses)

        if self.sets is None:
            return stream._with(over(stream.node, self.keys, calls))
        return stream._with(by_sets(over, stream.node, self.keys, calls, self.sets))

    @nested
    @called_as(".process(MyProcess), with a class derived from tg.Process that is mergeable")
    def process(self, factory: Factory) -> Stream:
        """The rows that a class of your own gives for every window and group.

        Derive the class from `tidegate.Process` with `mergeable = True`. Each instance that has
        tuples of a group and window makes one object for it. These objects see their tuples, are
        combined with `merge(other)`, and `finish()` gives the rows. They come after the window and
        the keys.
        """
        stream = self.stream
        if self.sets is not None:
            raise QueryError(
                "process",
                "groups by one set of columns",
                f"{len(self.sets)} sets",
                "Write .group_by(...) without rollup, cube or grouping_sets.",
            )
        node = window_process(stream.node, self.over, self.keys, factory, self.clauses)
        return stream._with(node)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise habit.stranger(
            "window",
            name,
            habit.WINDOWED,
            dir(type(self)),
            f"A window waits for agg(): write .agg(n=count()).{name}(...).",
        )

    def __repr__(self) -> str:
        keys = ", ".join(named_text(name, expression) for name, expression in self.keys)
        by = f" by {keys}" if keys else ""
        return f"Windowed([{self.over}]{by} of {self.stream!r}; waits for agg() or process())"
