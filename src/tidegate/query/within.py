"""Bounds and balance put on a query, between WITH ERROR or BALANCE and the aggregate of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.bound import EXACT, interval_names
from tidegate.query.name import NamedExpr, column, expression_text, is_column, refuse_taken
from tidegate.query.node import Aggregate, Node, Project
from tidegate.query.option import Balance, ErrorBound
from tidegate.query.shed_join import within_bound
from tidegate.query.shedding import sheds_or_bounds


def bounded(node: Node, bound: ErrorBound | Balance) -> Node:
    """A query whose newest aggregate is bound or balanced like this, with columns that say so.

    What follows the aggregate passes them on: after each aggregate of a select list come its low
    and its high end, and last whether a row is exact.
    """
    return _bounded(node, bound)[0]


def _bounded(node: Node, bound: ErrorBound | Balance) -> tuple[Node, Collection[str]]:
    """The same, and the names of the columns that are aggregates."""
    where = f"WITH {bound}"
    if isinstance(node, Aggregate):
        if node.has_ends:
            raise QueryError(
                where,
                "an aggregate has one error bound",
                f"also {node.bound or node.balance}",
                "Leave one of them out.",
            )
        if node.sheds is not None:
            raise sheds_or_bounds(where, f"also {node.sheds}")
        named = frozenset(n for n, _ in node.aggregates)
        added = [end for n, _ in node.aggregates for end in interval_names(n)]
        refuse_taken(node.names, (*added, EXACT), where)
        if isinstance(bound, Balance):
            return replace(node, balance=bound), named
        return replace(node, bound=bound), named
    if not node.windowed or len(node.children) != 1:
        raise QueryError(
            where,
            "is for an aggregate",
            "a query without one",
            "Write it after the SELECT that has the aggregate.",
        )
    below = node.children[0]
    if isinstance(below, Aggregate) and below.pairs is not None:
        if isinstance(bound, Balance):
            raise sheds_or_bounds(where, f"also {below.pairs.shed}")
        asked = below.pairs.asked
        return within_bound(below.pairs, bound), frozenset(n for n, _ in asked.aggregates)
    child, answers = _bounded(below, bound)
    if not isinstance(node, Project):
        return replace(node, child=child), answers  # type: ignore[arg-type]
    columns: list[NamedExpr] = []
    for name, expression in node.columns:
        columns.append((name, expression))
        if is_column(expression, answers):
            ends = zip(interval_names(name), interval_names(expression.name), strict=True)
            columns += [(own, column(held)) for own, held in ends]
        else:
            _refuse_computed(expression, answers, where)
    kept = [n for n, e in node.columns if is_column(e, answers)]
    refuse_taken(node.names, (*(end for n in kept for end in interval_names(n)), EXACT), where)
    return Project(child, (*columns, (EXACT, column(EXACT)))), frozenset(kept)


def _refuse_computed(expression: exp.Expression, answers: Collection[str], where: str) -> None:
    """What is computed from aggregates has no interval of its own."""
    if any(is_column(part, answers) for part in expression.find_all(exp.Column)):
        raise QueryError(
            where,
            "each column must be a key or one aggregate, because the error of what is computed "
            "from several is not known",
            expression_text(expression),
            "Select the aggregates, and compute with them in a query around this one: "
            f"SELECT a / b FROM (SELECT ... {' '.join(where.split()[:2])} ...).",
        )
