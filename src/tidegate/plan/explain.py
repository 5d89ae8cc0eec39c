"""A plan as text a person can read, between lowering and `tidegate explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from tidegate.operate.join import EQUAL, HASH, Extent
from tidegate.plan.physical import SPARK, AggregatePlan, JoinPlan, Plan, Prefix
from tidegate.query.aggregate import HOLISTIC
from tidegate.query.node import (
    Aggregate,
    Branch,
    Filter,
    Input,
    Join,
    Node,
    Project,
    StreamDef,
    Top,
    Union,
)
from tidegate.query.window import duration_text
from tidegate.schema import type_name


def explain(node: Node, plan: Plan) -> str:
    """The logical nodes, the subqueries and where each part runs, the output, the gate."""
    parts = [
        ["query", *_indent(_tree(node))],
        ["subqueries (operator-set: one per stateful operator, one per stateless prefix)"],
    ]
    aggregate = next((n for n in _walk(node) if isinstance(n, Aggregate)), None)
    for prefix in plan.prefixes:
        parts[-1] += _indent(_prefix(prefix, plan))
    if plan.aggregate is not None and aggregate is not None:
        parts[-1] += _indent(_aggregate(aggregate, plan.aggregate, len(plan.prefixes)))
    if plan.join is not None:
        parts[-1] += _indent(_join(next(_joins(node)), plan.join, len(plan.prefixes)))
    parts.append(["output", *_indent(f"{f.name}: {type_name(f.type)}" for f in plan.schema)])
    parts.append(["gate", *_indent(_gate(i, s) for i, s in enumerate(plan.streams))])
    parts.append([f"fingerprint {plan.fingerprint[:16]}"])
    return "\n".join("\n".join(lines) for lines in parts)


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


def _prefix(prefix: Prefix, plan: Plan) -> list[str]:
    lines = [f"{prefix.stream + 1} prefix of {prefix.name}"]
    lines.append(f"  reads: {', '.join(prefix.columns) or 'no column'} and the time {prefix.time}")
    if prefix.sql_where:
        lines.append(f"  where: {prefix.sql_where}")
    for name, text in prefix.sql_outputs:
        lines.append(f"  {name} = {text}")
    steps = ["filter"] if prefix.sql_where else []
    steps.append("panes" if plan.aggregate is not None else "project")
    steps += ["sort"] if plan.join is not None else []
    if prefix.engine == SPARK:
        lines.append(f"  prefix: Spark SQL in the JVM ({prefix.reason})")
        if plan.aggregate is not None:
            lines.append("  panes: Arrow task, map side")
    else:
        lines.append(f"  {' + '.join(['read', *steps])}: Arrow task, map side")
    if plan.aggregate is None and plan.join is None:
        lines.append("  order by ts: collect")
    return lines


def _aggregate(node: Aggregate, plan: AggregatePlan, before: int) -> list[str]:
    spec = plan.spec
    panes = spec.range_us // spec.pane_us
    lines = [
        f"{before + 1} aggregate over [{node.window}]",
        f"  panes: {duration_text(spec.pane_us)}, {panes} per window",
    ]
    constant = [str(c) for _, c in node.aggregates if c.kind not in HOLISTIC]
    holistic = [str(c) for _, c in node.aggregates if c.kind in HOLISTIC]
    if constant:
        lines.append(f"  pre-aggregated per pane on the map side: {', '.join(constant)}")
    if holistic:
        lines.append(f"  exact holistic, values kept per pane: {', '.join(holistic)}")
    lines.append("  merge panes, close windows: one task per instance, shuffle by bucket")
    after = ["having"] if plan.having else []
    after += ["select"] if any(type(e).__name__ != "Column" for _, e in plan.outputs) else []
    if after:
        lines.append(f"  {' + '.join(after)}: the same task")
    steps = ["order"] + (["limit"] if plan.limit is not None else [])
    lines.append(f"  {' + '.join(steps)}: collect")
    return lines


def _join(node: Join, plan: JoinPlan, before: int) -> list[str]:
    spec = plan.spec
    lines = [f"{before + 1} join of {node.labels[0]} and {node.labels[1]}"]
    for label, side in zip(node.labels, (spec.left, spec.right), strict=True):
        lines.append(f"  keeps {_extent(side.extent, label)}")
    lines.append(f"  method: {plan.reasons[0]}")
    probed: list[str] = []
    if spec.method == HASH:
        probed = [i.text for i in spec.intervals if i.kind == EQUAL]
    elif spec.index is not None:
        probed = [spec.intervals[spec.index].text]
    lines += [f"  index: {text}" for text in probed]
    lines += [f"  then: {text}" for text in plan.conjuncts if not _is_among(text, probed, plan)]
    if spec.function is not None:
        lines.append(f"  then: {_condition(node)}")
    lines.append(f"  routing: {plan.reasons[1]}")
    lines.append("  pairs + select: one task per instance")
    lines.append("  order by ts, later tuple, earlier tuple: collect")
    return lines


def _is_among(text: str, probed: list[str], plan: JoinPlan) -> bool:
    """Whether a conjunct is one that the index answers, alone or as one end of a band."""
    ends = {text, *(f"{text} AND {other}" for other in plan.conjuncts)}
    ends |= {f"{other} AND {text}" for other in plan.conjuncts}
    return any(index in ends for index in probed)


def _extent(extent: Extent, label: str) -> str:
    if extent.range_us is not None:
        return f"{label} for {duration_text(extent.range_us)}"
    return f"the last {extent.rows} tuples of {label}"


def _joins(node: Node) -> Iterator[Join]:
    return (n for n in _walk(node) if isinstance(n, Join))


def _gate(position: int, stream: StreamDef) -> str:
    idle = "off" if stream.idle_us is None else duration_text(stream.idle_us)
    sources = ", ".join(stream.uris) or "given as objects"
    return (
        f"{position + 1} {stream.name}: time {stream.time}, "
        f"disorder {duration_text(stream.disorder_us)}, idle {idle}, sources: {sources}"
    )


def _walk(node: Node) -> Iterable[Node]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _named(name: str, text: str) -> str:
    return text if name == text else f"{name} = {text}"


def _text(expression: exp.Expression) -> str:
    return expression.sql(dialect="spark", comments=False)


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
