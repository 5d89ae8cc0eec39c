"""A stream with a window, which waits for its aggregates: the fluent surface between the two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from tidegate.errors import QueryError
from tidegate.nesting import nested
from tidegate.query.aggregate import AggregateCall
from tidegate.query.clause.partitioner import PartitionedBy
from tidegate.query.name import NamedExpr, named_text
from tidegate.query.node import Aggregate
from tidegate.query.process import Factory
from tidegate.query.surface import habit
from tidegate.query.surface.arguments import Column, check_aggregates, named_columns
from tidegate.query.surface.signature import called_as
from tidegate.query.window import Window
from tidegate.query.window_process import window_process
from tidegate.route.registry import partitioner_of

if TYPE_CHECKING:
    from tidegate.query.stream import Stream


@dataclass(frozen=True, repr=False)
class Windowed:
    """A stream with a window, waiting for its aggregates."""

    stream: Stream
    over: Window
    keys: tuple[NamedExpr, ...]
    clauses: tuple[PartitionedBy, ...] = ()

    def group_by(self, *columns: Column, **named: Column) -> Windowed:
        """One result per window and distinct value of these columns."""
        keys = named_columns(self.stream.node, columns, named, "group_by")
        return replace(self, keys=(*self.keys, *keys))

    @called_as('.partition("cam"), or .partition("pk?d=3")')
    def partition(self, by: str) -> Windowed:
        """Let this partitioner choose where tuples go, in place of that of the run.

        It is a name, with parameters after a question mark: hash, shuffle, pk, cm, am, cam, lm,
        or auto, which chooses for each window.
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
        """The aggregates of every window and group, by name."""
        check_aggregates(unnamed, aggregates)
        stream = self.stream
        calls = tuple(aggregates.items())
        node = Aggregate(stream.node, self.over, self.keys, calls, self.clauses)
        return stream._with(node)

    @nested
    @called_as(".process(MyProcess), with a class derived from tg.Process that is mergeable")
    def process(self, factory: Factory) -> Stream:
        """The rows that a class of your own gives for every window and group.

        The class is one derived from `tidegate.Process` with `mergeable = True`. An object of it is
        made for each group and window, wherever tuples of these are, sees them, takes in the other
        objects with `merge(other)`, and gives the rows in `finish()`. They come after the window
        and the keys.
        """
        stream = self.stream
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
