"""Places HAVING on the rows of windows, or on the tuples if only Spark can evaluate it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from tidegate.query.binder import UnknownKernel, bind_predicate
from tidegate.query.check import types_of
from tidegate.query.name import canonical, substitute
from tidegate.query.node.node import Aggregate, Filter, Node


def having_over(aggregate: Aggregate, conditions: Sequence[exp.Expression]) -> Node:
    """The rows of windows for which all conditions are true.

    A condition on keys alone that only Spark can evaluate becomes a filter on the tuples, where
    Spark can evaluate it. All tuples of a group have the same keys, so the same groups remain.
    """
    before = [c for c in conditions if _of_keys(c, aggregate) and _needs_spark(c, aggregate)]
    if before:
        keys = dict(aggregate.keys)
        child: Node = aggregate.child
        for condition in before:
            plain = canonical(condition, aggregate.names, "HAVING")
            child = Filter(child, substitute(plain, keys))
        aggregate = replace(aggregate, child=child)
    after = [c for c in conditions if not any(c is moved for moved in before)]
    if not after:
        return aggregate
    return Filter(aggregate, reduce(lambda a, b: exp.And(this=a, expression=b), after))


def _of_keys(condition: exp.Expression, aggregate: Aggregate) -> bool:
    plain = canonical(condition, aggregate.names, "HAVING")
    named = {node.name for node in plain.find_all(exp.Column)}
    return bool(named) and named <= {name for name, _ in aggregate.keys}


def _needs_spark(condition: exp.Expression, aggregate: Aggregate) -> bool:
    with suppress(UnknownKernel):
        types = types_of(aggregate)
        try:
            bind_predicate(canonical(condition, aggregate.names, "HAVING"), types, "HAVING")
        except UnknownKernel:
            return True
    return False
