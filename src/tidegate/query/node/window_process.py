"""A user's mergeable class over windows: an aggregate node whose groups may give several rows."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.aggregate.process import PROCESS, MergeableProcess
from tidegate.operate.process.definition import Process as UserProcess
from tidegate.query.aggregate import AggregateCall
from tidegate.query.check import refuse_shadowed
from tidegate.query.name import WINDOW, NamedExpr, column, named_text
from tidegate.query.node.aggregation import Aggregate
from tidegate.query.node.process import Factory, class_name, named, output_of, tried_of
from tidegate.query.row_key import RowKey
from tidegate.query.unqualified import unqualified_columns
from tidegate.query.window import Use, Window

if TYPE_CHECKING:
    from tidegate.query.clause.clause import Clause
    from tidegate.query.node.node import Node

_NAME = "rows"
"""The internal name of its one aggregate; nobody sees it."""


@dataclass(frozen=True, eq=False)
class WindowProcess(Aggregate):
    """The rows that objects of a class give, one object per window and group.

    Columns: window_start, window_end and the keys, as in aggregates, then the class's output. A
    group may give any number of rows.
    """

    def __post_init__(self) -> None:
        where = f"process {self.process.name}"
        self.window.check(
            Use.PROCESS,
            where,
            'Write window("1 minute"), or stream.process() with a class that is not mergeable.',
        )
        refuse_shadowed(self.child, where, "Give the column another name with select.")
        taken = {name.lower() for name, _ in self.keys} | set(WINDOW)
        for name, _ in self.process.output:
            if name.lower() in taken:
                raise QueryError(
                    f"{where} output",
                    "window and keys are columns of the result by themselves",
                    f"a column {name}",
                    "Leave it out of the output and of the rows, or give it another name.",
                )
        super().__post_init__()

    @property
    def process(self) -> MergeableProcess:
        """The class and its columns, for the operator."""
        ((_, call),) = self.aggregates
        made: MergeableProcess = call.parameters[0]
        return made

    @property
    def summary(self) -> str:
        keys = ", ".join(named_text(name, expression) for name, expression in self.keys)
        way = "".join(f", {clause.shown}" for clause in self.clauses)
        return f"process [{self.window}] by {keys or 'nothing'}: {self.process.name}{way}"

    @property
    def result_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.process.output)

    @cached_property
    def row_key(self) -> RowKey:
        return RowKey(lack="a process, which may give several rows of a key and window")

    @cached_property
    def schema(self) -> pa.Schema:
        *before, _ = super().schema
        return pa.schema([*before, *self.process.output])


def window_process(
    child: Node,
    window: Window,
    keys: tuple[NamedExpr, ...],
    factory: Factory,
    clauses: tuple[Clause, ...] = (),
) -> WindowProcess:
    """The node of a class over windows; an object sees the columns, and the keys by name."""
    tried = mergeable_of(factory)
    seen: dict[str, exp.Expression] = {n: column(n) for n in WINDOW if child.windowed}
    seen |= {name: column(own) for name, own in unqualified_columns(child)} | dict(keys)
    made = MergeableProcess(
        factory=factory,
        identity=named(factory),
        name=class_name(factory),
        columns=tuple(seen),
        keys=tuple(name for name, _ in keys),
        output=output_of(tried),
    )
    call = AggregateCall(PROCESS.name, tuple(seen.values()), (made,))
    return WindowProcess(child, window, keys, ((_NAME, call),), clauses)


def mergeable_of(factory: Factory) -> UserProcess:
    """An object of the class, checked: several objects may each see a part of a window."""
    tried = tried_of(factory)
    kind = type(tried)
    where = f"process {kind.__name__}"
    if not tried.mergeable:
        raise QueryError(
            where,
            "over windows must be mergeable, because tuples of a key are seen by several objects",
            "a class without mergeable = True",
            "Add mergeable = True, merge(other) and finish() to the class, or use "
            f'stream.process({kind.__name__}, keys="key"), which keeps a key at one instance.',
        )
    for method, does in (
        ("merge(other)", "takes in what another object of the same key and window has seen"),
        ("finish()", "gives the rows at the end of the window"),
    ):
        if not hasattr(tried, method.partition("(")[0]):
            raise QueryError(
                where, f"what is mergeable must have a method {method}, which {does}", "none"
            )
    if hasattr(tried, "on_frontier"):
        raise QueryError(
            where,
            "what is mergeable has no timers: the end of the window is when rows are given",
            "on_frontier",
            "Give the rows in finish(), or leave mergeable out of the class.",
        )
    if tried.order is not None:
        raise QueryError(
            where,
            "rows of windows come by key, and as finish() gives them",
            f"order = {tried.order!r}",
            "Write .order_by(...) after .process(...).",
        )
    if inspect.isgeneratorfunction(getattr(kind, "on_tuple", None)):
        raise QueryError(
            where,
            "on_tuple of what is mergeable must give no rows, because others may have seen tuples "
            "of the same key and window",
            "yield",
            "Give the rows in finish(), at the end of the window.",
        )
    return tried
