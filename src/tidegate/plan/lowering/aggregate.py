"""Lowering of aggregates: an aggregate node and the stateless nodes above it."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.plan.aggregate.answer import Planner, plan_answer, plan_process
from tidegate.plan.aggregate.lowered_aggregate import asked_of
from tidegate.plan.aggregate.windows import window_plan
from tidegate.plan.cut import Unit
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.query.node.node import Aggregate


def lower_aggregate(
    unit: Unit, context: Context, planner: Planner = plan_answer
) -> Iterator[Lowered]:
    """The subqueries of an aggregate.

    Its calls become functions over the columns of prefixes; its clause says how these are answered,
    and its window which operator does it.
    """
    base = unit.base
    assert isinstance(base, Aggregate)
    window, kept = window_plan(base.window), context.kept(WindowAggregate.kind)
    asked = asked_of(unit, base, context.front, kept, window.stored)
    yield from window.subqueries(asked, planner(asked, window), context)


def lower_window_process(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subqueries of a process over windows: an aggregate whose groups give rows."""
    return lower_aggregate(unit, context, plan_process)
