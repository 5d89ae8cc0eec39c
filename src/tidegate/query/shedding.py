"""Shedding put on a query, between WITH SHED or `shed` and the aggregate or join that it is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate.errors import QueryError
from tidegate.query.aggregate import AggregateCall
from tidegate.query.name import column, refuse_taken
from tidegate.query.node import Aggregate, Join, Node, Project
from tidegate.query.option import KEPT, Shed
from tidegate.query.shed_join import join_below, refused, sheds_sides, thinned, weighted
from tidegate.query.window import TupleWindow, Window


def shedding(node: Node, shed: Shed) -> Node:
    """A query whose newest aggregate sheds; what follows it passes on how much was kept, last."""
    where = f"WITH {shed}"
    if isinstance(node, Aggregate):
        if node.sheds is not None:
            raise QueryError(
                where, "an aggregate sheds once", f"also {node.sheds}", "Leave one of them out."
            )
        if node.has_ends:
            if node.bound is not None and sheds_sides(replace(node, bound=None)):
                raise QueryError(
                    where,
                    "comes before WITH ERROR, over the pairs of a join",
                    f"after {node.bound}",
                    "Write WITH SHED ... WITH ERROR ..., in Python .shed(...).within(...).",
                )
            raise sheds_or_bounds(where, f"also {node.bound or node.balance}")
        check_shed(where, node.window, [call for _, call in node.aggregates])
        refuse_taken(node.names, (KEPT,), where)
        return weighted(node, shed) if sheds_sides(node) else replace(node, shed=shed)
    if not node.windowed and (join := join_below(node)) is not None:
        check_join(where, join)
        return thinned(node, shed)
    if not node.windowed or len(node.children) != 1:
        raise QueryError(
            where,
            "is for aggregates over windows of time and for joins by equality",
            "a query without one",
            "Write it after the SELECT that has the aggregate or the join, or leave it out.",
        )
    child = shedding(node.children[0], shed)
    if isinstance(node, Project):
        refuse_taken(node.names, (KEPT,), where)
        return Project(child, (*node.columns, (KEPT, column(KEPT))))
    return replace(node, child=child)  # type: ignore[arg-type]


def sheds_or_bounds(where: str, got: str) -> QueryError:
    """What to say where an aggregate is asked for both."""
    return QueryError(
        where,
        "an aggregate sheds or has an error bound, because no bound holds for what is shed",
        got,
        "Leave one of them out.",
    )


def check_join(where: str, join: Join) -> None:
    """Refuse joins whose sides have no keys to be thinned by."""
    found = refused(join)
    if found is not None:
        raise QueryError(
            where,
            f"needs {found[0]}",
            found[1],
            "Write it after an aggregate over the pairs, which are shed then, or leave it out.",
        )


def check_shed(where: str, window: Window, calls: Sequence[AggregateCall]) -> None:
    """Refuse windows and functions that some of the tuples cannot stand for."""
    if isinstance(window, TupleWindow):
        raise QueryError(
            where,
            "is for windows of time: one of tuples counts those that would be shed",
            f"[{window}]",
            "Write a window of time, [RANGE 1 MINUTE], or leave the clause out.",
        )
    for call in calls:
        if call.definition.unscaled is not None:
            raise QueryError(
                where,
                f"must be able to estimate each aggregate: {call.definition.unscaled}",
                str(call),
                "Ask for it in a query of its own, without the clause.",
            )
