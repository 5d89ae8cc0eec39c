"""Reads GROUPING SETS, ROLLUP and CUBE into the expressions of each set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from sqlglot import exp

from tidegate.query.grouping import cube_of, rollup_of

Written = tuple[exp.Expression, ...]

SEVERAL = (exp.GroupingSets, exp.Rollup, exp.Cube)
CALLS = (exp.Grouping, exp.GroupingId)
"""GROUPING(a) and GROUPING_ID(), which look like aggregates."""


def normal_group(group: exp.Group) -> exp.Group:
    """GROUP BY with WITH ROLLUP, WITH CUBE and trailing sets rewritten as its elements."""
    for slot, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(slot):
            return exp.Group(expressions=[kind(expressions=group.expressions)])
    if sets := group.args.get("grouping_sets"):
        return exp.Group(expressions=sets)
    return group


def has_sets(group: exp.Group) -> bool:
    """Whether a normalised GROUP BY has more than one set."""
    return any(isinstance(element, SEVERAL) for element in group.expressions)


def sides_of_group(group: exp.Group) -> list[list[Written]]:
    """The sets of each element of GROUP BY; the query's sets combine one of every element."""
    return [_sets(element) for element in group.expressions]


def _sets(element: exp.Expr) -> list[Written]:
    if isinstance(element, exp.GroupingSets):
        return list(chain.from_iterable(_sets(inner) for inner in element.expressions))
    if isinstance(element, exp.Rollup):
        return _joined(rollup_of([_keys(inner) for inner in element.expressions]))
    if isinstance(element, exp.Cube):
        return _joined(cube_of([_keys(inner) for inner in element.expressions]))
    return [_keys(element)]


def _joined(sets: Sequence[Sequence[Written]]) -> list[Written]:
    return [tuple(chain.from_iterable(chosen)) for chosen in sets]


def _keys(element: exp.Expr) -> Written:
    """The keys of a set: a list in parentheses, or a single expression."""
    if isinstance(element, exp.Tuple):
        return tuple(element.expressions)
    inner = element.unnest()
    assert isinstance(inner, exp.Expression)
    return (inner,)
