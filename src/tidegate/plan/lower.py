"""Lowering: logical nodes become the physical plan that tasks run, in the StreamCloud way.

Every stateful operator and the stateless work after it are one subquery; the stateless work before
it is the prefix of its inputs, done on their way to it (operator-set).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tidegate.errors import OptionError, QueryError
from tidegate.plan.cut import Cutting, Unit
from tidegate.plan.fingerprint import fingerprint, input_lines
from tidegate.plan.lower_aggregate import lower_aggregate
from tidegate.plan.lower_join import lower_join
from tidegate.plan.lower_process import lower_process
from tidegate.plan.lowered import Lowered, output_lines
from tidegate.plan.method import JoinOptions
from tidegate.plan.physical import (
    OPERATOR_SET,
    STRATEGIES,
    AggregatePlan,
    Edge,
    JoinPlan,
    Operator,
    Plan,
    Port,
    ProcessPlan,
    Subquery,
    Target,
    TuplePlan,
)
from tidegate.plan.prefix import Prefixing, Typer
from tidegate.plan.pushdown import Result, push_down
from tidegate.plan.sample import RawRows
from tidegate.query.definition import StreamDef
from tidegate.query.instant import event_column, event_offset
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.query.node import Aggregate, Join, Node, Process, data_names
from tidegate.query.output import Output
from tidegate.schema import TIME

_KINDS = {
    AggregatePlan: "aggregate",
    TuplePlan: "aggregate",
    JoinPlan: "join",
    ProcessPlan: "process",
    type(None): "stateless",
}


def lower(
    query: Node | Sequence[Output],
    typer: Typer | None = None,
    join: JoinOptions | None = None,
    rows: RawRows | None = None,
    strategy: str = OPERATOR_SET,
) -> Plan:
    """The physical plan of a query.

    What no kernel evaluates runs in Spark, over streams only, when `typer` is given; without it
    the error of the missing kernel is raised. `join` is how the user wants joins to be done; `rows`
    gives the first rows of a stream, from which the best way is estimated. `strategy` is how the
    query is cut into subqueries.
    """
    if strategy not in STRATEGIES:
        raise OptionError("--strategy", f"must be one of {', '.join(STRATEGIES)}", strategy)
    outputs = query if isinstance(query, Sequence) else (Output(None, query),)
    cutting = Cutting.of((o.node for o in outputs), strategy)
    lowering = _Lowering(cutting, typer, join or JoinOptions(), rows)
    for unit in cutting.units:
        lowering.add(unit)
    targets = tuple(Target(o.name, Edge(*cutting.place(o.node, output=True))) for o in outputs)
    lowering.lines += [f"target {t.name!r} {t.edge}" for t in targets]
    mark = fingerprint(lowering.lines)
    subqueries = tuple(replace(s, fingerprint=mark) for s in lowering.subqueries)
    return Plan(tuple(lowering.streams), subqueries, targets, mark, strategy)


@dataclass
class _Lowering:
    cutting: Cutting
    typer: Typer | None
    options: JoinOptions
    rows: RawRows | None
    streams: list[StreamDef] = field(default_factory=list)
    subqueries: list[Subquery] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)

    def add(self, unit: Unit) -> None:
        """Lower the next unit; those whose rows it takes were lowered before."""
        front = Prefixing(self.typer, self._result, self._number)
        if isinstance(unit.base, Aggregate):
            lowered = lower_aggregate(unit, front)
        elif isinstance(unit.base, Join):
            lowered = lower_join(unit, front, self.options, self.rows, self.streams)
        elif isinstance(unit.base, Process):
            lowered = lower_process(unit, front)
        else:
            lowered = _stateless(unit, front)
        streams = tuple(
            o if isinstance(o := lf.origin, StreamDef) else None for lf in lowered.leaves
        )
        name = self._name(lowered.operator)
        self.lines.append(f"subquery {name}")
        for origin, prefix in zip(streams, lowered.prefixes, strict=True):
            self.lines += input_lines(origin, prefix)
        self.lines += lowered.lines
        self.subqueries.append(
            Subquery(name, lowered.prefixes, streams, lowered.operator, lowered.ports)
        )

    def _name(self, operator: Operator | None) -> str:
        """What a subquery is called: its kind, with a number from the second on."""
        kind = _KINDS[type(operator)]
        self.names[kind] += 1
        return kind if self.names[kind] == 1 else f"{kind}{self.names[kind]}"

    def _number(self, stream: StreamDef) -> int:
        """The number of a stream; one that is there several times must be the same each time."""
        for i, known in enumerate(self.streams):
            if known.name == stream.name:
                if known != stream:
                    raise QueryError(
                        f"stream {stream.name}",
                        "a name must stand for one stream",
                        "two that differ",
                        "Give one of them another name.",
                    )
                return i
        self.streams.append(stream)
        return len(self.streams) - 1

    def _result(self, node: Node) -> Result | None:
        if not self.cutting.apart(node):
            return None
        edge = Edge(*self.cutting.place(node))
        subquery = self.subqueries[edge.subquery]
        port = subquery.ports[edge.port]
        return Result(subquery.name, edge, port.schema, port.time, port.offset_us)


def _stateless(unit: Unit, front: Prefixing) -> Lowered:
    """A subquery that puts tuples into the total order after filtering and projecting them."""
    base = unit.base
    implicit = WINDOW if base.windowed else (EVENT_TIME,)
    names = data_names(base)
    if EVENT_TIME in names:
        raise QueryError(
            "SELECT",
            f"the name {EVENT_TIME} belongs to the event time",
            "a column of that name which is not the stream's time",
            "Select the columns and rename it.",
        )
    leaves = push_down(base, front.types, front.results)
    held = (*WINDOW, *names) if base.windowed else names
    prefixes = front.prefixes(leaves, [[(n, lf.columns[n]) for n in held] for lf in leaves])
    outputs = tuple((n, e) for n, e in prefixes[0].outputs if n in names)
    fields = [pa.field(n, TIME) for n in implicit] + [pa.field(n, e.type) for n, e in outputs]
    port = Port(
        schema=pa.schema(fields),
        outputs=outputs,
        time=event_column(base),
        offset_us=event_offset(base),
    )
    lines = output_lines([(n, lf.columns[n]) for lf in leaves for n in held])
    return Lowered(leaves, prefixes, None, (port,), tuple(lines))
