"""tg.expr: SQL expressions in Python programs."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError, UserError
from tidegate.query.expression import Expression
from tidegate.query.surface.signature import called_as
from tidegate.sql.dialect import parse
from tidegate.sql.function import has_aggregate


@called_as('expr("fare / 2")')
def expr(text: str) -> Expression:
    """An expression in SQL: ``expr("fare / 2")``, ``expr("route RLIKE '^a'")``."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError("expr", "needs the text of an expression", repr(text))
    where = f"expr({text!r})"
    try:
        statements = parse(f"SELECT {text}")
    except UserError as error:
        raise type(error)(where, error.requirement, error.got, error.remedy) from None
    found = statements[0] if len(statements) == 1 else None
    if not isinstance(found, exp.Select) or len(found.expressions) != 1 or _more(found):
        raise QueryError(
            where, "must be one expression", None, "Write clauses with session.sql(...)."
        )
    expression = found.expressions[0]
    if has_aggregate(expression):
        raise QueryError(
            where,
            "an aggregate cannot stand here",
            None,
            'Write .window("15 minutes").agg(total=sum("fare")).',
        )
    return Expression(expression.pop())


def _more(select: exp.Select) -> bool:
    return any(value for name, value in select.args.items() if name != "expressions")
