"""Writes what a policy aims at and has decided, for the summary and `tidegate ctl status`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.elastic.budget.ledger import cut_text
from tidegate.state.epoch import counted


def controller_lines(told: Mapping[str, Any] | None, newest: int | None = None) -> list[str]:
    """What a policy aims at, why it cannot be, and its decisions with what came of them."""
    if told is None or "goal" not in told:
        return []
    goal = told["goal"]
    allowed = "" if goal["error"] is None else f", error at most {goal['error']:.0%}"
    most = "" if goal["instances"] is None else f", {counted(goal['instances'], 'instance')}"
    lines = [f"target: latency {goal['latency_s']:g} s{allowed}{most}"]
    lines += [f"  {told['cannot']}"] if told["cannot"] else []
    shown = told["decisions"] if newest is None else told["decisions"][-newest:]
    for one in shown:
        lines.append(f"  {decision_text(one)}")
        others = [other for other in one["alternatives"] if other["remedy"] != one["remedy"]]
        lines += [f"    instead of {'; '.join(map(_other_text, others))}"] if others else []
    return lines


def budget_lines(told: Mapping[str, Any] | None) -> list[str]:
    """What a query has of the budget of its session, and whether it would have more."""
    if told is None:
        return []
    line = f"budget: {counted(told['instances'], 'instance')} for "
    line += f"{counted(told['queries'], 'query', 'queries')}, {told['held']} held by this one"
    wanted, leaves = told["wanted"], told["leaves"]
    return [f"{line}; {cut_text(wanted, leaves)}" if wanted > leaves else line]


def decision_text(one: Mapping[str, Any]) -> str:
    """A decision in a line: when, why, what was expected and what came of it."""
    expected = one["predicted"]["high_s"]
    text = f"batch {one['batch']:,}: {one['why']}"
    if expected is not None:
        text += f"; expected at most {expected:.2f} s"
    if one["outcome"] is None:
        return text
    text += f", was {one['outcome']['latency_s']:.2f} s"
    regret = one["regret"]
    if regret["latency_s"]:
        text += f", {regret['latency_s']:.2f} s too late"
    if regret["instances"]:
        text += f", {counted(regret['instances'], 'instance')} more than needed"
    return text


def _other_text(one: Mapping[str, Any]) -> str:
    """What else was weighed, with what was expected of it or why it was none."""
    if "note" in one:
        return f"{one['remedy']}: {one['note']}"
    expected = one["latency_s"]
    return f"{one['remedy']}: {'without end' if expected is None else f'{expected:.2f} s'}"
