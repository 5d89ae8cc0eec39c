"""The name of a query's meaning, between a lowered plan and the checkpoint that belongs to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

import sqlglot
from sqlglot import exp

from tidegate.operate.aggregate.function import Function
from tidegate.plan.physical import Prefix
from tidegate.query.definition import StreamDef
from tidegate.query.user_function import registered, registry_version

_VERSION = "tidegate plan 2"
_NAME = re.compile("`[^`]+`")


def fingerprint(lines: Iterable[str]) -> str:
    """sha256 over a canonical text: the same in every process, for SQL and Python alike.

    It changes with anything that changes the answer or the state. URIs, instances and the engine
    that evaluates the prefix are left out.
    """
    return hashlib.sha256("\n".join([_VERSION, *lines]).encode()).hexdigest()


def input_lines(origin: StreamDef | None, prefix: Prefix) -> list[str]:
    """What one input of a subquery means."""
    if origin is None:
        lines = [f"result {prefix.origin}"]
    else:
        lines = [
            f"stream {origin.name!r} time {origin.time!r} disorder {origin.disorder_us} "
            f"idle {origin.idle_us}",
            *origin.reading.lines(),
        ]
    lines.append(f"where {meaning(prefix.sql_where) if prefix.sql_where else None}")
    for (name, text), (_, expr) in zip(prefix.sql_outputs, prefix.outputs, strict=True):
        lines.append(f"column {name!r} {expr.type} {meaning(text)}")
    return lines


def function_lines(functions: Iterable[Function]) -> list[str]:
    """What the functions of an aggregate mean."""
    return [
        f"function {f.name} {f.title} {f.arguments} {list(map(str, f.types))} {f.shown}"
        for f in functions
    ]


def meaning(text: str) -> str:
    """Spark SQL with parentheses around every operation and no others, however it was written.

    An operation becomes text as soon as its operands are, the innermost first, so that the depth of
    an expression does not matter. A function of the user's has its place in a program beside its
    name.
    """
    return text if _NAME.fullmatch(text) else _meaning(text, registry_version())


@lru_cache(4_096)
def _meaning(text: str, registered_then: int) -> str:
    tree = sqlglot.parse_one(text, dialect="spark")
    for call in list(tree.find_all(exp.Anonymous)):
        own = registered(call.name)
        if own is not None:
            call.append("expressions", exp.Var(this=f"of {own.place}"))
    for paren in list(tree.find_all(exp.Paren)):
        if paren is tree:
            tree = paren.this.pop()
        else:
            paren.replace(paren.this)
    for node in reversed(list(tree.find_all(exp.Binary, exp.Unary, exp.Between, exp.In))):
        if node is not tree:
            around = exp.Paren()
            node.replace(around)
            around.set("this", exp.Var(this=_written(node)))
    return _written(tree)


def _written(tree: exp.Expr) -> str:
    return tree.sql(dialect="spark", identify=True, comments=False, copy=False)
