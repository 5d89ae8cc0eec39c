"""Turns a plan into plain data for `tidegate explain --json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.plan.explain import Cuts
from tidegate.plan.physical import Edge, Plan, Prefix, Subquery
from tidegate.plan.strategy import Weights
from tidegate.schema import type_name


def plan_facts(plan: Plan, handovers: Mapping[str, str], exchange: str | None) -> dict[str, Any]:
    """The streams, subqueries and outputs of a plan, ready for JSON.

    `exchange` says how tuples travel between hosts, if there are several.
    """
    return {
        "strategy": plan.strategy,
        "fingerprint": plan.fingerprint,
        "exchange": exchange,
        "streams": [
            {
                "name": stream.name,
                "time": stream.time,
                "disorder_us": stream.disorder_us,
                "idle_us": stream.idle_us,
                "sources": list(stream.uris),
            }
            for stream in plan.streams
        ],
        "subqueries": [_subquery(plan, one, handovers[one.name]) for one in plan.subqueries],
        "outputs": [
            {
                "name": target.name,
                "of": plan.subqueries[target.edge.subquery].name,
                "columns": {f.name: type_name(f.type) for f in plan.port(target.edge).schema},
            }
            for target in plan.targets
        ],
    }


def cut_facts(cuts: Cuts, weights: Weights) -> dict[str, Any]:
    """The cost of each strategy, or why the query cannot use it."""
    found: dict[str, Any] = {}
    for strategy, cut in cuts.items():
        if isinstance(cut, str):
            found[strategy] = {"refused": cut}
            continue
        found[strategy] = {
            "subqueries": {s.name: s.operator.title() for s in cut.plan.subqueries},
            "instances": dict(cut.instances),
            "hops": cut.hops,
            "fan_out": cut.fan_out,
            "cost": cut.cost(weights),
        }
    return {"strategies": found}


def _subquery(plan: Plan, subquery: Subquery, handover: str) -> dict[str, Any]:
    return {
        "name": subquery.name,
        "operator": subquery.operator.title(),
        "takes": [_origin(plan, prefix) for prefix in subquery.prefixes],
        "details": list(subquery.operator.details(dict(subquery.prefixes[0].sql_outputs))),
        "warnings": list(subquery.operator.traits.warnings),
        "handover": handover,
    }


def _origin(plan: Plan, prefix: Prefix) -> dict[str, Any]:
    """The stream or subquery of an input, and the engine of its prefix."""
    if isinstance(prefix.origin, Edge):
        return {"subquery": plan.subqueries[prefix.origin.subquery].name, "engine": prefix.engine}
    return {"stream": prefix.name, "engine": prefix.engine}
