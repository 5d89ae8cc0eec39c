"""What expressions and functions mean, as text that does not depend on how they were written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import sqlglot
from sqlglot import exp

from tidegate.operate.aggregate.function import Function
from tidegate.query.user_function import registered, registry_version

_NAME = re.compile("`[^`]+`")


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
