"""Lowers a logical query to a plan; asks Spark for types only if an expression has no kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.connector import Connector
from tidegate.errors import OptionError
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.options import AUTO, DEFAULT_PARTITIONER, PlanOptions
from tidegate.plan.physical import Plan
from tidegate.query.node.graph import has
from tidegate.query.node.node import Aggregate, Join, Node, ProcessNode
from tidegate.query.output import Output
from tidegate.route.registry import partitioner_of
from tidegate.route.standby import Standby
from tidegate.session.place import Place
from tidegate.session.preview import first_rows


def plan_for(
    outputs: Sequence[Output],
    place: Place,
    options: PlanOptions | None = None,
    connectors: Mapping[str, Connector] | None = None,
) -> Plan:
    """Lower a query; Spark is asked for types only if an expression has no kernel.

    If the options leave a join's method open, the first rows of its streams decide. `connectors`
    are those of sources without a URI.
    """
    options = options or PlanOptions()
    join = options.join
    if join.chosen and not any(has(Join, o.node) for o in outputs):
        option, value = join.chosen[0]
        raise OptionError(
            option, "is for joins", f"{value} for a query without one", "Leave it out."
        )
    if not any(has(Aggregate, o.node) for o in outputs):
        for option, value, usual in (
            ("--partitioner", options.partitioner or DEFAULT_PARTITIONER, DEFAULT_PARTITIONER),
            ("--partial", options.partial, AUTO),
        ):
            if value != usual:
                raise OptionError(
                    option,
                    "is for aggregates",
                    f"{value} for a query without one",
                    _instead([o.node for o in outputs]),
                )
    choices = Choices(
        join=join,
        rows=first_rows(connectors or {}),
        partitioner=partitioner_of(_partitioner(options.partitioner, outputs)),
        # A target may come and go: without one, a state on standby is not asked to be another.
        again=Standby() if options.partitioner is None else None,
        partial=None if options.partial == AUTO else options.partial,
        max_windows=options.max_windows,
    )
    if not place.on_spark:
        return lower(outputs, None, choices, options.strategy)

    def typer(*arguments: Any) -> Any:
        from tidegate.execute.spark.session.sql_session import types_by_spark

        session = place.connected().session
        assert session is not None
        return types_by_spark(session)(*arguments)

    return lower(outputs, typer, choices, options.strategy)


def _partitioner(asked: str | None, outputs: Sequence[Output]) -> str:
    """The one that is asked for, or the default; with a target one that the policy may change."""
    if asked is not None:
        return asked
    return Standby.name if any(output.aim for output in outputs) else DEFAULT_PARTITIONER


def _instead(nodes: Sequence[Node]) -> str:
    """What there is in place of a partitioner, where a query has no aggregate."""
    if any(has(ProcessNode, node) for node in nodes):
        return (
            "Leave it out: a process has all tuples of a key at one instance. A mergeable process "
            "over windows can be split, and so can an aggregate of your own (tidegate.Aggregator)."
        )
    joins = any(has(Join, node) for node in nodes)
    return "Leave it out; joins have --routing." if joins else "Leave it out."
