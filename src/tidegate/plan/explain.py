"""Writes a plan as text for people: the output of `tidegate explain`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidegate.expression.user_function import UserFunction
from tidegate.nesting import nested
from tidegate.operate.port import Port
from tidegate.plan.compatibility.canonical import InputForm, StreamForm
from tidegate.plan.physical import (
    OPERATOR_CLOUD,
    OPERATOR_SET,
    QUERY_CLOUD,
    SPARK,
    Edge,
    Plan,
    Subquery,
)
from tidegate.plan.strategy import Layout, OperatorCount, Weights, formula
from tidegate.plan.table.use import USUAL, TableLimit, tables_shown
from tidegate.query.node.graph import bottom_up
from tidegate.query.node.node import Node
from tidegate.query.output import Output
from tidegate.schema import type_name

_MEANING = {
    OPERATOR_SET: "one per stateful operator, with the stateless ones that follow it",
    QUERY_CLOUD: "as operator-set, all on the same instances",
    OPERATOR_CLOUD: "one per operator",
}


LONG = 12
"""More lines of the query than this are not shown twice."""

_WITH_SPARK = ("project", "sort")
"""Steps of the map side that need no mention where Spark SQL evaluates the prefix."""


@nested
def explain(
    outputs: Sequence[Output],
    plan: Plan,
    handovers: Mapping[str, str] | None = None,
    exchange: str | None = None,
    limit: TableLimit = USUAL,
) -> str:
    """The logical nodes, the subqueries and where each part runs, the outputs, the gate.

    `handovers` says by subquery how its buckets are handed over at a switch, where that is known,
    and `exchange` how tuples come from host to host. `limit` says which tables are large.
    """
    parts = []
    for output in outputs:
        title = "query" if output.name is None else f"query of output {output.name}"
        parts.append([title, *_indent(_Tree(output.node).lines(output.node))])
        if output.aim is not None:
            parts[-1] += _indent(_aim_lines(output, plan))
    parts.append([f"subqueries ({plan.strategy}: {_MEANING[plan.strategy]})"])
    for number, subquery in enumerate(plan.subqueries):
        parts[-1] += _indent(_subquery(number, subquery, plan))
        if handovers is not None:
            parts[-1] += _indent(_indent([f"handover: {handovers[subquery.name]}"]))
    if exchange is not None:
        parts.append([f"exchange: {exchange}"])
    for target in plan.targets:
        source = plan.subqueries[target.edge.subquery].name
        title = "output" if target.name is None else f"output {target.name}"
        schema = plan.port(target.edge).schema
        columns = [f"{f.name}: {type_name(f.type)}" for f in schema]
        parts.append([f"{title}, of {source}", *_indent(columns)])
    if plan.tables:
        parts.append(["tables", *_indent(tables_shown(plan, limit))])
    parts.append(["gate"])
    for i, stream in enumerate(plan.streams):
        first, *rest = StreamForm(stream).shown
        parts[-1] += _indent([f"{i + 1} {first}", *rest])
    if plan.functions:
        parts.append(["functions", *_indent(map(_function, plan.functions))])
    parts.append([f"fingerprint {plan.fingerprint[:16]}"])
    return "\n".join("\n".join(lines) for lines in parts)


Cuts = Mapping[str, Layout | str]
"""The ways to cut a query, by strategy; a text says why one cannot be."""


def explain_all(query: OperatorCount, cuts: Cuts, weights: Weights) -> str:
    """What each strategy makes of a query, and what it costs by its plan and by the formulas."""
    parts = []
    for strategy, cut in cuts.items():
        parts.append(f"{strategy}: {_MEANING[strategy]}")
        if isinstance(cut, str):
            parts.append(f"  not for this query: {cut}")
            continue
        for number, subquery in enumerate(cut.plan.subqueries):
            title = f"{number + 1} {subquery.name}: {subquery.operator.title()}"
            parts.append(f"  {title}; {many(cut.instances[subquery.name], 'instance')}")
        for handover in cut.handovers:
            channels = many(handover.channels, "channel")
            parts.append(f"  {handover.giver} to {handover.taker}: {channels}")
        cost = f"{many(cut.hops, 'hop')}, fan-out {cut.fan_out:,}, cost {cut.cost(weights):,.1f}"
        parts.append(f"  {cost}")
        model = formula(strategy, query, cut.total)
        cost = f"{weights.cost(model.fan_out, model.hops):,.1f}"
        parts.append(
            f"  by the formula for {many(query.operators, 'operator')}, "
            f"{query.stateful} stateful: {many(model.hops, 'hop')}, "
            f"fan-out {model.fan_out:,.1f}, cost {cost}"
        )
    return "\n".join([*parts, compare(cuts, weights)])


def compare(cuts: Cuts, weights: Weights) -> str:
    """The strategies side by side, with the cheapest of them."""
    title = (
        f"strategies (cost = {weights.alpha:g} * fan-out "
        f"+ {weights.beta:g} * {weights.rate:,g} tuples/s * hops)"
    )
    rows: list[tuple[str, ...]] = [
        ("strategy", "subqueries", "instances", "hops", "fan-out", "cost")
    ]
    refused = []
    costs: dict[str, float] = {}
    for strategy, cut in cuts.items():
        if isinstance(cut, str):
            refused.append(f"{strategy}: not for this query")
            continue
        costs[strategy] = cut.cost(weights)
        numbers = (len(cut.plan.subqueries), cut.total, cut.hops, cut.fan_out)
        rows.append((strategy, *(f"{n:,}" for n in numbers), f"{costs[strategy]:,.1f}"))
    cheapest = [s for s, cost in costs.items() if cost == min(costs.values())]
    lines = [*table(rows), *refused, f"cheapest: {' and '.join(cheapest)}"]
    return "\n".join([title, *_indent(lines)])


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines: the first column to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def many(count: int, what: str) -> str:
    """A count with its noun: 1 hop, 2 hops."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _subquery(number: int, subquery: Subquery, plan: Plan) -> list[str]:
    lines = [f"{number + 1} {subquery.name}: {subquery.operator.title()}"]
    for prefix, stream in zip(subquery.prefixes, subquery.streams, strict=True):
        lines += _indent(_input(InputForm(prefix, stream), subquery, plan))
    lines += _indent(subquery.operator.details(dict(subquery.prefixes[0].sql_outputs)))
    lines += _indent(f"warning: {text}" for text in subquery.operator.traits.warnings)
    several = len(subquery.ports) > 1
    for i, port in enumerate(subquery.ports):
        label = f" {i + 1} of {len(subquery.ports)}" if several else ""
        lines += [f"  {line}" for line in _port(port, subquery, label)]
    return lines


class _Tree:
    """The nodes of a query below each other; what is long is shown once, however often it is read.

    Otherwise streams that are made of streams, each read twice, would double with every level.
    """

    def __init__(self, root: Node) -> None:
        self._lengths: dict[Node, int] = {}
        self._shown: set[Node] = set()
        for node in bottom_up([root]):
            self._lengths[node] = 1 + sum(self._lengths[child] for child in node.children)

    def lines(self, node: Node) -> list[str]:
        if node in self._shown and self._lengths[node] > LONG:
            return [f"{node.summary} (as above)"]
        self._shown.add(node)
        lines = [node.summary]
        for i, child in enumerate(node.children):
            last = i == len(node.children) - 1
            branch, stem = ("└─ ", "   ") if last else ("├─ ", "│  ")
            first, *rest = self.lines(child)
            lines += [branch + first, *(stem + line for line in rest)]
        return lines


def _input(form: InputForm, subquery: Subquery, plan: Plan) -> list[str]:
    prefix = form.prefix
    of = prefix.name
    if isinstance(prefix.origin, Edge):
        giver = plan.subqueries[prefix.origin.subquery]
        several = len(giver.ports) > 1
        of = f"{giver.name} (rows {prefix.origin.port + 1})" if several else giver.name
    lines = [f"takes {of}"]
    lines += _indent(form.shown)
    steps = subquery.operator.traits.map_steps
    if prefix.engine == SPARK:
        lines.append(f"  prefix: Spark SQL in the JVM ({prefix.reason})")
        own = [s for s in steps if s not in _WITH_SPARK]
        lines += [f"  {' + '.join(own)}: Arrow task, map side"] if own else []
    else:
        read = ["read", *(["join"] if prefix.lookups else [])]
        read += ["filter"] if prefix.sql_where else []
        lines.append(f"  {' + '.join([*read, *steps])}: Arrow task, map side")
    return lines


def _port(port: Port, subquery: Subquery, label: str) -> list[str]:
    """What follows the operator for one of those that take its rows."""
    steps = ["filter"] if port.where else []
    computed = any(type(e).__name__ != "Column" for _, e in port.outputs)
    steps += ["select"] if computed and subquery.operator.traits.evaluates_ports else []
    lines = [f"rows{label}: {' + '.join(steps)}, the same task"] if steps else []
    order = subquery.operator.order.text(ordered=bool(port.order))
    limit = f", limit {port.limit} per window" if port.limit is not None else ""
    kept = ""
    if port.ranked is not None:
        numbering = port.ranked.numbering
        kept = f", of each {numbering.name} {numbering.bounds}"
    return [*lines, f"rows{label} by {order}{kept}{limit}: collect"]


def _function(function: UserFunction) -> str:
    return f"{function.name}: {function.place} in Python, returns {type_name(function.returns)}"


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _aim_lines(output: Output, plan: Plan) -> list[str]:
    """The target that the policy `auto` keeps, and whether it may shed for it."""
    aim = output.aim
    assert aim is not None, "asked of an output that has one"
    sieves = (p.sieve for s in plan.subqueries for p in s.prefixes if p.sieve is not None)
    able = any(sieve.unit is not None and sieve.first != sieve.rate for sieve in sieves)
    note = "" if aim.error is None or able else "; it cannot shed, and stays exact"
    return [f"{aim.summary}: policy auto{note}"]
