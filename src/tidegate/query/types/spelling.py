"""Writes syntax as users do: sqlglot's names of classes and slots never reach a message."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import ErrorLevel, exp

_HOLE = "hole_in_text"
_LETTERS = re.compile(r"(?<![A-Z0-9])([A-Z])_(?=[A-Z](?:_|\d|$))")
_CALL = re.compile(r"\s*([A-Za-z_][\w.]*)\(")


def spelling(node: exp.Expr) -> str:
    """The words of a node without its operands: UPPER, AT TIME ZONE, HAVING MAX, []."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    for dialect in ("spark", "") if isinstance(node, exp.Func) else ("", "spark"):
        if text := sql_text(_bare(node), dialect):
            if call := _CALL.match(text):
                return _LETTERS.sub(r"\1", call[1].upper())  # J_S_O_N is JSON
            own = re.sub(r"\([^()]*\)", " ", re.sub(f"`?{_HOLE}`?", " ", text, flags=re.IGNORECASE))
            if words := " ".join(own.replace(",", " ").split()):
                return words.replace("[ ]", "[]")
    return sql_text(node, "spark") or "an expression"


def _bare(node: exp.Expr) -> exp.Expr:
    """The node with a hole in place of each operand."""
    return type(node)(**{slot: _hole(value) for slot, value in node.args.items()})


def _hole(value: Any) -> Any:
    if isinstance(value, list):
        return [_hole(part) for part in value[:1]]
    return exp.Var(this=_HOLE) if isinstance(value, exp.Expr) else value


def sql_text(node: exp.Expr, dialect: str = "") -> str:
    """A node as SQL; empty if sqlglot cannot write what its parser made."""
    try:
        return node.sql(dialect=dialect, comments=False, unsupported_level=ErrorLevel.IGNORE)
    except Exception:
        return ""
