"""Chooses the answer of an aggregate: by its clause, or for a process of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tidegate.operate.aggregate.answer import ExactAnswer
from tidegate.plan.aggregate.balance import plan_balance
from tidegate.plan.aggregate.bound import plan_bound
from tidegate.plan.aggregate.emit import plan_emit
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.port import window_ports
from tidegate.plan.aggregate.shed import plan_pairs, plan_shed
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.query.name import column
from tidegate.query.node.window_process import WindowProcess

Planner = Callable[[AskedAggregate, WindowPlan], PlannedAnswer]

ANSWERS: dict[str, Callable[[AskedAggregate, WindowPlan, Any], PlannedAnswer]] = {
    "SHED": plan_shed,
    "PAIRS": plan_pairs,
    "ERROR": plan_bound,
    "BALANCE": plan_balance,
    "EMIT": plan_emit,
}
"""The planner for each clause, by its word; it is called with the clause. Other clauses do not
change the answer. An aggregate has at most one of these."""


def plan_answer(asked: AskedAggregate, window: WindowPlan) -> PlannedAnswer:
    """The answer that a clause of the aggregate asks for, else the exact one."""
    for clause in asked.base.clauses:
        if clause.word in ANSWERS:
            return ANSWERS[clause.word](asked, window, clause)
    return asked.answered(ExactAnswer())


def plan_process(asked: AskedAggregate, window: WindowPlan) -> PlannedAnswer:
    """The answer of a process: its single function returns a list of rows for each group.

    The columns o* of these rows replace the list.
    """
    base = asked.base
    assert isinstance(base, WindowProcess)
    output = base.process.output
    named = [(f"o{i}", name, type_) for i, (name, type_) in enumerate(output)]
    types = dict(asked.keys) | {own: type_ for own, _, type_ in named}
    texts = dict(asked.texts) | {own: name for own, name, _ in named}
    places = {name: column(own) for own, name, _ in named}
    ports, after, shown = window_ports(asked.unit, base, types, texts, places)
    (function,) = asked.functions
    return PlannedAnswer(
        answer=ExactAnswer(),
        functions=asked.functions,
        prefixes=asked.prefixes,
        ports=tuple(replace(port, unnests=function.name) for port in ports),
        after=after,
        shown=shown,
        lines=tuple(f"row {name} {type_}" for name, type_ in output),
    )
