"""A plan as text a person can read, between lowering and `tidegate explain`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from tidegate.operate.aggregate.function import Function
from tidegate.operate.join.spec import EQUAL, HASH, Extent
from tidegate.plan.lower_join import qualified_name
from tidegate.plan.physical import (
    OPERATOR_CLOUD,
    OPERATOR_SET,
    QUERY_CLOUD,
    SPARK,
    AggregatePlan,
    Edge,
    JoinPlan,
    Plan,
    Port,
    Prefix,
    ProcessPlan,
    Subquery,
    TuplePlan,
)
from tidegate.plan.strategy import Layout, Size, Weights, formula
from tidegate.query.node import (
    Aggregate,
    Branch,
    Filter,
    Input,
    Join,
    Node,
    Process,
    Project,
    StreamDef,
    Top,
    Union,
)
from tidegate.query.output import Output
from tidegate.query.window import TimeWindow, TupleWindow, duration_text
from tidegate.schema import type_name

_MEANING = {
    OPERATOR_SET: "one per stateful operator, with the stateless ones that follow it",
    QUERY_CLOUD: "as operator-set, all on the same instances",
    OPERATOR_CLOUD: "one per operator",
}


def explain(outputs: Sequence[Output], plan: Plan) -> str:
    """The logical nodes, the subqueries and where each part runs, the outputs, the gate."""
    parts = []
    for output in outputs:
        title = "query" if output.name is None else f"query of output {output.name}"
        parts.append([title, *_indent(_tree(output.node))])
    parts.append([f"subqueries ({plan.strategy}: {_MEANING[plan.strategy]})"])
    for number, subquery in enumerate(plan.subqueries):
        parts[-1] += _indent(_subquery(number, subquery, plan))
    for target in plan.targets:
        source = plan.subqueries[target.edge.subquery].name
        title = "output" if target.name is None else f"output {target.name}"
        schema = plan.port(target.edge).schema
        columns = [f"{f.name}: {type_name(f.type)}" for f in schema]
        parts.append([f"{title}, of {source}", *_indent(columns)])
    parts.append(["gate", *_indent(_gate(i, s) for i, s in enumerate(plan.streams))])
    parts.append([f"fingerprint {plan.fingerprint[:16]}"])
    return "\n".join("\n".join(lines) for lines in parts)


Cuts = Mapping[str, Layout | str]
"""The ways to cut a query, by strategy; a text says why one cannot be."""


def explain_all(query: Size, cuts: Cuts, weights: Weights) -> str:
    """What each strategy makes of a query, and what it costs by its plan and by the formulas."""
    parts = []
    for strategy, cut in cuts.items():
        parts.append(f"{strategy}: {_MEANING[strategy]}")
        if isinstance(cut, str):
            parts.append(f"  not for this query: {cut}")
            continue
        for number, subquery in enumerate(cut.plan.subqueries):
            title = f"{number + 1} {subquery.name}: {_does(subquery)}"
            parts.append(f"  {title}; {_many(cut.instances[subquery.name], 'instance')}")
        for handover in cut.handovers:
            channels = _many(handover.channels, "channel")
            parts.append(f"  {handover.giver} to {handover.taker}: {channels}")
        cost = f"{_many(cut.hops, 'hop')}, fan-out {cut.fan_out:,}, cost {cut.cost(weights):,.1f}"
        parts.append(f"  {cost}")
        model = formula(strategy, query, cut.total)
        cost = f"{weights.cost(model.fan_out, model.hops):,.1f}"
        parts.append(
            f"  by the formula for {_many(query.operators, 'operator')}, "
            f"{query.stateful} stateful: {_many(model.hops, 'hop')}, "
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


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _subquery(number: int, subquery: Subquery, plan: Plan) -> list[str]:
    operator = subquery.operator
    lines = [f"{number + 1} {subquery.name}: {_does(subquery)}"]
    for prefix in subquery.prefixes:
        lines += _indent(_prefix(prefix, subquery, plan))
    if isinstance(operator, AggregatePlan):
        lines += _aggregate(operator, dict(subquery.prefixes[0].sql_outputs))
    elif isinstance(operator, JoinPlan):
        lines += _join(operator)
    elif isinstance(operator, TuplePlan):
        lines.append("  keeps tuples, fills windows: one task per instance, shuffle by bucket")
    elif isinstance(operator, ProcessPlan):
        lines.append("  one object per bucket: one task per instance, shuffle by bucket")
    several = len(subquery.ports) > 1
    for i, port in enumerate(subquery.ports):
        label = f" {i + 1} of {len(subquery.ports)}" if several else ""
        lines += [f"  {line}" for line in _port(port, subquery, label)]
    return lines


def _tree(node: Node) -> list[str]:
    lines = [_title(node)]
    for i, child in enumerate(node.children):
        last = i == len(node.children) - 1
        branch, stem = ("└─ ", "   ") if last else ("├─ ", "│  ")
        first, *rest = _tree(child)
        lines += [branch + first, *(stem + line for line in rest)]
    return lines


def _title(node: Node) -> str:
    if isinstance(node, Input):
        return f"stream {node.stream.name}"
    if isinstance(node, Filter):
        return f"filter {_text(node.predicate)}"
    if isinstance(node, Branch):
        return f"split {node.index + 1} of {len(node.conditions) + 1}: {_text(node.predicate)}"
    if isinstance(node, Project):
        return f"select {', '.join(_named(n, _text(e)) for n, e in node.columns) or 'nothing more'}"
    if isinstance(node, Union):
        return "union all"
    if isinstance(node, Aggregate):
        keys = ", ".join(_named(n, _text(e)) for n, e in node.keys)
        calls = ", ".join(f"{n} = {c}" for n, c in node.aggregates)
        return f"aggregate [{node.window}] by {keys or 'nothing'}: {calls or 'groups only'}"
    if isinstance(node, Join):
        windows = zip(node.labels, (node.left_window, node.right_window), strict=True)
        sides = " and ".join(f"{label} [{window}]" for label, window in windows)
        return f"join {sides} on {_condition(node)}"
    if isinstance(node, Process):
        return f"process by {node.title}"
    return _top(node)


def _condition(node: Join) -> str:
    if node.predicate is None:
        return "nothing"
    if isinstance(node.predicate, exp.Expression):
        return _text(node.predicate)
    name = getattr(node.predicate, "__qualname__", type(node.predicate).__qualname__)
    return f"the function {name}"


def _top(node: Top) -> str:
    keys = ", ".join(
        f"{_text(o.expression)}{' DESC' if o.descending else ''}"
        + ("" if o.nulls_lead != o.descending else f" NULLS {'FIRST' if o.nulls_lead else 'LAST'}")
        for o in node.order
    )
    text = f"order by {keys}" if keys else "order by key"
    return text if node.limit is None else f"{text}, limit {node.limit} per window"


def _does(subquery: Subquery) -> str:
    operator = subquery.operator
    if isinstance(operator, AggregatePlan):
        window = TimeWindow(operator.spec.range_us, operator.spec.slide_us)
        return f"aggregate over [{window}] by {', '.join(operator.key_names) or 'nothing'}"
    if isinstance(operator, TuplePlan):
        rows = TupleWindow(operator.spec.rows, operator.spec.slide)
        return f"aggregate over [{rows}] by {', '.join(operator.key_names) or 'nothing'}"
    if isinstance(operator, JoinPlan):
        left, right = (_extent(s.extent) for s in (operator.spec.left, operator.spec.right))
        return f"join, keeps {left} of the left side and {right} of the right"
    if isinstance(operator, ProcessPlan):
        return f"process by {operator.spec.name}"
    return "filter, select, order"


def _prefix(prefix: Prefix, subquery: Subquery, plan: Plan) -> list[str]:
    of = prefix.name
    if isinstance(prefix.origin, Edge) and len(plan.subqueries[prefix.origin.subquery].ports) > 1:
        of = f"{of} (rows {prefix.origin.port + 1})"
    lines = [f"takes {of}"]
    lines.append(f"  reads: {', '.join(prefix.columns) or 'no column'} and the time {prefix.time}")
    if prefix.sql_where:
        lines.append(f"  where: {prefix.sql_where}")
    for name, text in prefix.sql_outputs:
        lines.append(f"  {name} = {text}")
    steps = ["filter"] if prefix.sql_where else []
    panes = isinstance(subquery.operator, AggregatePlan)
    steps.append("panes" if panes else "project")
    steps += ["sort"] if isinstance(subquery.operator, JoinPlan) else []
    if prefix.engine == SPARK:
        lines.append(f"  prefix: Spark SQL in the JVM ({prefix.reason})")
        if panes:
            lines.append("  panes: Arrow task, map side")
    else:
        lines.append(f"  {' + '.join(['read', *steps])}: Arrow task, map side")
    return lines


def _aggregate(plan: AggregatePlan, texts: Mapping[str, str]) -> list[str]:
    spec = plan.spec
    panes = spec.range_us // spec.pane_us
    lines = [f"  panes: {duration_text(spec.pane_us)}, {panes} per window"]
    constant = [_function(f, texts) for f in spec.functions if not f.definition.holistic]
    holistic = [_function(f, texts) for f in spec.functions if f.definition.holistic]
    if constant:
        lines.append(f"  pre-aggregated per pane on the map side: {', '.join(constant)}")
    if holistic:
        lines.append(f"  exact holistic, values kept per pane: {', '.join(holistic)}")
    lines.append("  merge panes, close windows: one task per instance, shuffle by bucket")
    return lines


def _function(function: Function, texts: Mapping[str, str]) -> str:
    """A function by its arguments as the query writes them."""
    given = [texts.get(a, a).replace("`", "") for a in function.arguments]
    star = ["*"] if not given and function.definition.star else []
    return f"{function.title}({', '.join([*given, *star, *function.shown])})"


def _join(plan: JoinPlan) -> list[str]:
    spec = plan.spec
    lines = [f"  method: {plan.reasons[0]}"]
    probed: list[str] = []
    if spec.method == HASH:
        probed = [i.text for i in spec.intervals if i.kind == EQUAL]
    elif spec.index is not None:
        probed = [spec.intervals[spec.index].text]
    lines += [f"  index: {text}" for text in probed]
    lines += [f"  then: {text}" for text in plan.conjuncts if not _is_among(text, probed, plan)]
    if spec.function is not None:
        lines.append(f"  then: the function {qualified_name(spec.function.call)}")
    lines.append(f"  routing: {plan.reasons[1]}")
    lines.append("  pairs: one task per instance")
    return lines


def _port(port: Port, subquery: Subquery, label: str) -> list[str]:
    """What follows the operator for one of those that take its rows."""
    steps = ["filter"] if port.where else []
    computed = any(type(e).__name__ != "Column" for _, e in port.outputs)
    steps += ["select"] if computed and subquery.operator is not None else []
    lines = [f"rows{label}: {' + '.join(steps)}, the same task"] if steps else []
    order = {
        AggregatePlan: "window, ORDER BY, key" if port.order else "window, key",
        TuplePlan: "the tuple that fills a window",
        ProcessPlan: "the tuple that makes a row, bucket",
        JoinPlan: "ts, later tuple, earlier tuple",
    }.get(type(subquery.operator), "ts, input, source, position")
    limit = f", limit {port.limit} per window" if port.limit is not None else ""
    return [*lines, f"rows{label} by {order}{limit}: collect"]


def _is_among(text: str, probed: list[str], plan: JoinPlan) -> bool:
    """Whether a conjunct is one that the index answers, alone or as one end of a band."""
    ends = {text, *(f"{text} AND {other}" for other in plan.conjuncts)}
    ends |= {f"{other} AND {text}" for other in plan.conjuncts}
    return any(index in ends for index in probed)


def _extent(extent: Extent) -> str:
    if extent.range_us is not None:
        return duration_text(extent.range_us)
    return f"{extent.rows} tuples"


def _gate(position: int, stream: StreamDef) -> str:
    idle = "off" if stream.idle_us is None else duration_text(stream.idle_us)
    sources = ", ".join(stream.uris) or "given as objects"
    return (
        f"{position + 1} {stream.name}: time {stream.time}, "
        f"disorder {duration_text(stream.disorder_us)}, idle {idle}, sources: {sources}"
    )


def _named(name: str, text: str) -> str:
    return text if name == text else f"{name} = {text}"


def _text(expression: exp.Expression) -> str:
    return expression.sql(dialect="spark", comments=False)


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
