"""The name of a query's meaning, between a lowered plan and the checkpoint that belongs to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import sqlglot
from sqlglot import exp

from tidegate.operate.aggregate import AggregateSpec
from tidegate.plan.physical import Prefix
from tidegate.query.node import StreamDef

_VERSION = "tidegate plan 1"


def fingerprint(
    streams: Sequence[StreamDef],
    prefixes: Sequence[Prefix],
    spec: AggregateSpec | None,
    after: Iterable[str],
) -> str:
    """sha256 over a canonical text: the same in every process, for SQL and Python alike.

    It changes with anything that changes the answer or the state. URIs, instances and the engine
    that evaluates the prefix are left out. `after` are lines for what follows the aggregate.
    """
    lines = [_VERSION]
    for stream, prefix in zip(streams, prefixes, strict=True):
        lines.append(
            f"stream {stream.name!r} time {stream.time!r} disorder {stream.disorder_us} "
            f"idle {stream.idle_us}"
        )
        lines.append(f"where {meaning(prefix.sql_where) if prefix.sql_where else None}")
        for (name, text), (_, expr) in zip(prefix.sql_outputs, prefix.outputs, strict=True):
            lines.append(f"column {name!r} {expr.type} {meaning(text)}")
    if spec is not None:
        lines.append(f"window {spec.range_us} {spec.slide_us}")
        lines.extend(f"key {name} {type_}" for name, type_ in spec.keys)
        for f in spec.functions:
            user = f.user.name if f.user is not None else None
            lines.append(f"function {f.name} {f.kind} {f.arguments} {f.type} {f.fraction} {user}")
    lines.extend(after)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def meaning(text: str) -> str:
    """Spark SQL with parentheses around every operation and no others, however it was written."""
    tree = sqlglot.parse_one(text, dialect="spark")
    for paren in list(tree.find_all(exp.Paren)):
        if paren is tree:
            tree = paren.this.pop()
        else:
            paren.replace(paren.this)
    for node in reversed(list(tree.find_all(exp.Binary, exp.Unary, exp.Between, exp.In))):
        if node is not tree:
            around = exp.Paren()
            node.replace(around)
            around.set("this", node)
    return tree.sql(dialect="spark", identify=True, comments=False)
