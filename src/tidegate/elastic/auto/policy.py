"""The policy `auto`: what batches show becomes evidence, and what the machine chooses requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from tidegate.calendar.duration import duration_us
from tidegate.elastic.auto.evidence import Evidence
from tidegate.elastic.auto.goal import LatencyGoal
from tidegate.elastic.auto.history import KnownQuery
from tidegate.elastic.auto.machine import Machine
from tidegate.elastic.auto.memory import MachineMemory
from tidegate.elastic.auto.remedy import RemedyChoice
from tidegate.elastic.policy import Decision, check_numbers
from tidegate.elastic.request import MappingChange, Rebalance, Request, ScaleEvenly
from tidegate.elastic.share import ShareRequest
from tidegate.errors import OptionError, QueryError
from tidegate.model.observation import Observation

_INTERVAL_S = 0.5
"""Arrivals are counted for so long, or for a quarter of the target where that is shorter."""


@dataclass(frozen=True, kw_only=True)
class ByTarget:
    """Keeps the latency of the slowest tuples below `latency`, by the cheapest remedy.

    `latency` is in seconds, or a text such as "2 seconds". `error` is the relative error that
    shedding may cause, of a query that can shed; without it nothing is shed. `cost` is the most
    instances of all subqueries together. It goes by the rates of live input and the costs of the
    query's own batches, as the policy `model` does; docs/auto.md says in which order remedies are
    taken.
    """

    latency: str | float | timedelta = 2.0
    error: float | None = None
    cost: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "latency", _seconds(self.latency))
        _check(self)

    @property
    def name(self) -> str:
        return "auto"

    @property
    def sheds(self) -> bool:
        """Whether it may choose what a query sheds."""
        return self.error is not None

    @cached_property
    def goal(self) -> LatencyGoal:
        return LatencyGoal(_seconds(self.latency), self.error, self.cost)

    @cached_property
    def _interval_s(self) -> float:
        return min(_INTERVAL_S, self.goal.latency_s / 4)

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        known = KnownQuery.restored(memory).after([_with_edges(one) for one in observed])
        if not known.ready(self._interval_s, self.goal.latency_s):
            machine = memory.get("machine", {})
            wanted = _wanted(observed, machine.get("wanted", ()))
            return Decision((), {**known.recorded(), "machine": machine}, wanted=wanted)
        known, evidence = known.closed(self.cost, sheds=self.sheds)
        remembered = MachineMemory.restored(memory.get("machine", {}))
        remembered, chosen = Machine(self.goal).handle(remembered, evidence)
        after = {**known.recorded(), "machine": remembered.recorded()}
        wanted = _wanted(observed, remembered.wanted)
        if chosen is None:
            return Decision((), after, wanted=wanted)
        return Decision(
            _requests(evidence, chosen),
            after,
            share=_share(evidence, chosen),
            wanted=wanted,
            cadence=chosen.setting.cadence,
            splits=chosen.setting.splits,
        )

    def remark(self, observed: Sequence[Observation]) -> str | None:
        """What a user should know of a query where it cannot do all it might."""
        live = [load.arrived is not None for seen in observed for load in _with_edges(seen).inputs]
        if not all(live):
            return (
                "it goes by the rates at which tuples arrive, and not all sources of this query "
                "are live: it changes nothing. Files that are read as fast as they can be have no "
                "rate"
            )
        if self.error is not None and observed[0].shed is None:
            return (
                "this query cannot shed, so that no error is used: instances and even loads are "
                "what it has. WITH SHED UP TO, or WITH LATENCY ... ERROR, after an aggregate over "
                "windows of time lets it"
            )
        return None

    def told(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        machine = memory.get("machine") or {}
        return {
            "goal": {
                "latency_s": self.goal.latency_s,
                "error": self.goal.error,
                "instances": self.goal.cost,
            },
            "cannot": machine.get("stuck") or machine.get("behind") or None,
            "decisions": list(machine.get("records", ())),
        }


def _with_edges(seen: Observation) -> Observation:
    """The rows of other subqueries come as they are taken: they are arrivals too."""
    if all(load.source is not None for load in seen.inputs):
        return seen
    inputs = (
        replace(load, arrived=load.tuples) if load.source is None else load for load in seen.inputs
    )
    return replace(seen, inputs=tuple(inputs))


def _wanted(observed: Sequence[Observation], counts: Sequence[int]) -> int | None:
    """What is told to the budget of the session, once it is known; None without one."""
    return None if observed[0].limit is None or not counts else sum(counts)


def _requests(seen: Evidence, chosen: RemedyChoice) -> list[Request]:
    found = []
    for one, count in zip(seen.subqueries, chosen.setting.counts, strict=True):
        change: MappingChange | None = None
        if count != one.instances:
            change = ScaleEvenly(count, one.paces)
        elif chosen.kind == "rebalance":
            change = Rebalance(one.paces)
        if change is not None:
            found.append(Request(change, one.name, why=chosen.why))
    return found


def _share(seen: Evidence, chosen: RemedyChoice) -> ShareRequest | None:
    if chosen.setting.share == seen.share:
        return None
    return ShareRequest(chosen.setting.share, "policy auto", chosen.why)


def _seconds(latency: str | float | timedelta) -> float:
    if isinstance(latency, str):
        try:
            return float(latency)
        except ValueError:
            pass
    if isinstance(latency, int | float) and not isinstance(latency, bool):
        return float(latency)
    try:
        return duration_us(latency, "policy auto, latency") / 1e6
    except QueryError as error:
        raise OptionError(error.where, error.requirement, error.got, error.remedy) from None


def _check(asked: ByTarget) -> None:
    where = "policy auto"
    check_numbers(asked, ("error",), ("cost",), ("error", "cost"))
    if not 0 < asked.goal.latency_s < float("inf"):
        raise OptionError(
            where, "latency must be above 0", str(asked.latency), 'Write "2 seconds", or 2.'
        )
    if asked.error is not None and not 0 < asked.error < 1:
        remedy = "0.1 is 10 percent; leave it out where nothing may be shed."
        raise OptionError(where, "error must be between 0 and 1", f"{asked.error:g}", remedy)
    if asked.cost is not None and asked.cost < 1:
        raise OptionError(where, "cost must be at least 1 instance", str(asked.cost))
