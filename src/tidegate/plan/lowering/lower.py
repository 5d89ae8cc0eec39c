"""Lowers the logical nodes of a query to the physical plan, as StreamCloud does.

Each stateful operator and the stateless work after it become one subquery. The stateless work
before it becomes the prefix of its inputs, which the tasks that read them do (operator-set).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tidegate.errors import OptionError, QueryError
from tidegate.nesting import nested
from tidegate.plan.compatibility.canonical import PlanForm, SubqueryForm
from tidegate.plan.compatibility.query_record import RecordedQuery, RecordedSubquery
from tidegate.plan.cut import Cutting, Unit
from tidegate.plan.lowering.aggregate import lower_aggregate, lower_window_process
from tidegate.plan.lowering.asof import lower_asof
from tidegate.plan.lowering.dedup import lower_dedup
from tidegate.plan.lowering.join import lower_join
from tidegate.plan.lowering.over import lower_lead, lower_over
from tidegate.plan.lowering.process import lower_process
from tidegate.plan.lowering.rule import Choices, Context, Lowered, Rule
from tidegate.plan.lowering.stateless import lower_stateless
from tidegate.plan.lowering.unnest import lower_unnest
from tidegate.plan.physical import OPERATOR_SET, STRATEGIES, Edge, Plan, Target
from tidegate.plan.prefix import Prefixing, Typer
from tidegate.plan.pushdown import EarlierRows
from tidegate.plan.reach import check_reach
from tidegate.query.definition import StreamDef
from tidegate.query.node.dedup import Dedup
from tidegate.query.node.instant import emitting
from tidegate.query.node.limit import Limit
from tidegate.query.node.node import Aggregate, AsOf, Join, Node, ProcessNode
from tidegate.query.node.over import Lead, Over
from tidegate.query.node.unnest import Unnest
from tidegate.query.node.window_process import WindowProcess
from tidegate.query.output import Output
from tidegate.query.table import TableDef

RULES: dict[type, Rule] = {
    Aggregate: lower_aggregate,
    WindowProcess: lower_window_process,
    Join: lower_join,
    AsOf: lower_asof,
    ProcessNode: lower_process,
    Limit: lower_process,
    Dedup: lower_dedup,
    Over: lower_over,
    Lead: lower_lead,
    Unnest: lower_unnest,
}
"""The rule for each kind of node that begins a unit; all other nodes are stateless."""


@nested
def lower(
    query: Node | Sequence[Output],
    typer: Typer | None = None,
    choices: Choices | None = None,
    strategy: str = OPERATOR_SET,
    kept: RecordedQuery | None = None,
) -> Plan:
    """The physical plan of a query.

    If `typer` is given, Spark evaluates expressions that have no kernel, over streams only; without
    it a missing kernel is an error. `strategy` is how the query is cut into subqueries. With
    `kept`, the columns of state get the names that a checkpoint has, and a filter that its state
    was made without comes after the state. Whether the plan fits that state is decided by
    `change.compared`.
    """
    if strategy not in STRATEGIES:
        raise OptionError("--strategy", f"must be one of {', '.join(STRATEGIES)}", strategy)
    outputs = query if isinstance(query, Sequence) else (Output(None, query),)
    nodes = [o.node for o in outputs]
    choices = choices or Choices()
    cutting = Cutting.of(nodes, strategy)
    try:
        plan = _lowered(outputs, _Lowering(cutting, typer, choices, kept))
    except QueryError:
        if not cutting.shared:
            raise
        # Spark evaluates over streams only. A shared stateless unit puts an edge in between, so try
        # again with every path reading the streams itself.
        cutting = Cutting.of(nodes, strategy, share=False)
        plan = _lowered(outputs, _Lowering(cutting, typer, choices, kept))
    return replace(plan, again=partial(lower, outputs, typer, choices, strategy))


def _lowered(outputs: Sequence[Output], lowering: _Lowering) -> Plan:
    cutting = lowering.cutting
    check_reach(u.base for u in cutting.units)
    for unit in cutting.units:
        lowering.add(unit)
    targets = tuple(
        Target(o.name, lowering.edge(o.node, output=True), o.node.row_key) for o in outputs
    )
    form = PlanForm(lowering.streams, lowering.subqueries, targets)
    mark = form.fingerprint
    names = _names_of(outputs, cutting, lowering.giving, [s.key for s in lowering.subqueries])
    plan = Plan(
        streams=tuple(lowering.streams),
        subqueries=tuple(
            replace(s.subquery, fingerprint=mark, name=name)
            for s, name in zip(lowering.subqueries, names, strict=True)
        ),
        targets=targets,
        fingerprint=mark,
        strategy=cutting.strategy,
        tables=tuple(lowering.tables.values()),
    )
    return replace(plan, recorded=form.recorded(plan))


@dataclass
class _Lowering:
    cutting: Cutting
    typer: Typer | None
    choices: Choices
    kept: RecordedQuery | None = None
    streams: list[StreamDef] = field(default_factory=list)
    subqueries: list[SubqueryForm] = field(default_factory=list)
    giving: list[int] = field(default_factory=list)
    """By unit, the number of the subquery that emits its rows: the last one of the unit."""
    names: Counter[str] = field(default_factory=Counter)
    tables: dict[str, TableDef] = field(default_factory=dict)

    def add(self, unit: Unit) -> None:
        """Lower the next unit; the units that it reads from must be lowered already."""
        context = Context(
            front=Prefixing(self.typer, partial(self._result, unit.base), self._number),
            choices=self.choices,
            streams=self.streams,
            newest=lambda port: self._result_of(Edge(len(self.subqueries) - 1, port)),
            kept=self._kept,
        )
        for lowered in RULES.get(type(unit.base), lower_stateless)(unit, context):
            self._append(lowered)
        self.giving.append(len(self.subqueries) - 1)

    def edge(self, node: Node, output: bool = False) -> Edge:
        """The edge that carries the rows of a node."""
        unit, port = self.cutting.place(node, output)
        return Edge(self.giving[unit], port)

    def _append(self, lowered: Lowered) -> None:
        streams = tuple(
            o if isinstance(o := lf.origin, StreamDef) else None for lf in lowered.leaves
        )
        joined = (table.table for leaf in lowered.leaves for table in leaf.tables)
        self._add_tables([*joined, *lowered.tables])
        name = self._next_name(lowered.operator.kind)
        self.names[lowered.operator.kind] += 1
        self.subqueries.append(SubqueryForm(name, streams, lowered))

    def _add_tables(self, tables: Iterable[TableDef]) -> None:
        for table in tables:
            if self.tables.setdefault(table.name, table) != table:
                raise QueryError(
                    table.where,
                    "a name must stand for one table",
                    "two that differ",
                    "Give one of them another name.",
                )

    def _next_name(self, kind: str) -> str:
        """The key of the next subquery of a kind: `join`, `join2`, `join3`."""
        number = self.names[kind] + 1
        return kind if number == 1 else f"{kind}{number}"

    def _kept(self, kind: str) -> RecordedSubquery | None:
        return None if self.kept is None else self.kept.find(self._next_name(kind))

    def _number(self, stream: StreamDef) -> int:
        """The number of a stream in the plan; an error if two streams have one name."""
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

    def _result(self, reader: Node, node: Node) -> EarlierRows | None:
        if not self.cutting.apart(node):
            return None
        passes_on = reader.windowed and not reader.stateful
        if not passes_on and node.windowed and (emit := emitting(node)) is not None:
            raise QueryError(
                str(emit),
                "is for the last aggregate of a query: another one would count a group once more "
                "with each of its rows",
                "a query over its rows",
                "Leave it out of the query inside.",
            )
        return self._result_of(self.edge(node))

    def _result_of(self, edge: Edge) -> EarlierRows:
        subquery = self.subqueries[edge.subquery]
        port = subquery.lowered.ports[edge.port]
        return EarlierRows(subquery.key, edge, port.carried, port.time, port.offset_us)


def _names_of(
    outputs: Sequence[Output], cutting: Cutting, giving: Sequence[int], keys: Sequence[str]
) -> list[str]:
    """The name of each subquery: the stream or output that it makes, else its key.

    `giving` has, by unit, the subquery that emits its rows. Streams come before outputs, and an
    output names a subquery only if nothing else reads it. A name that is a key is not used.
    """
    found, taken = list(keys), {key.lower() for key in keys}
    for name, node in _named(outputs, cutting):
        unit = cutting.unit_of(node)
        number = None if unit is None else giving[unit]
        if number is not None and found[number] == keys[number] and name.lower() not in taken:
            found[number] = name
            taken.add(name.lower())
    return found


def _named(outputs: Sequence[Output], cutting: Cutting) -> Iterator[tuple[str, Node]]:
    """The nodes with names, in the order in which they claim a subquery."""
    for output in outputs[:1]:
        yield from output.streams
    for output in outputs:
        unit = cutting.unit_of(output.node)
        alone = unit is not None and all(t.node == output.node for t in cutting.units[unit].tops)
        if output.name is not None and alone:
            yield output.name, output.node
