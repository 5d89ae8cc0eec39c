"""Which answer an aggregate gets: by its clause, or by the process that it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidegate.operate.aggregate.answer import ExactAnswer, WindowAnswer
from tidegate.plan.aggregate.asked import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.balance import plan_balance
from tidegate.plan.aggregate.bound import plan_bound
from tidegate.plan.aggregate.port import window_ports
from tidegate.plan.aggregate.shed import pairs_answer, plan_shed
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.query.name import column
from tidegate.query.window_process import WindowProcess

Planner = Callable[[AskedAggregate, WindowPlan], PlannedAnswer]

ANSWERS: dict[str, Planner] = {
    "shed": plan_shed,
    "bound": plan_bound,
    "balance": plan_balance,
}
"""By the attribute of an aggregate node that has the clause; a node has one of them at most."""


def plan_answer(asked: AskedAggregate, window: WindowPlan) -> PlannedAnswer:
    """How an aggregate is answered."""
    for name, planner in ANSWERS.items():
        if getattr(asked.base, name, None) is not None:
            return planner(asked, window)
    return plan_exact(asked, window)


def plan_exact(asked: AskedAggregate, window: WindowPlan) -> PlannedAnswer:
    """The results of the functions; over a join that sheds, with what is told of its windows."""
    answer: WindowAnswer = ExactAnswer()
    if asked.base.pairs is not None:
        answer = pairs_answer(asked, window, asked.base.pairs)
    ports = window_ports(asked.unit, asked.base, asked.columns, asked.texts)
    return PlannedAnswer(answer, asked.functions, asked.prefixes, *ports)


def plan_process(asked: AskedAggregate, window: WindowPlan) -> PlannedAnswer:
    """The rows that a process gives: its one function has a list of them for each group.

    They come in its place, as the columns o*.
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
