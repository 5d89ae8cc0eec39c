"""The check that no part of an expression may differ from run to run, also where Spark runs it."""

from __future__ import annotations

from sqlglot import exp

from tidegate.query.types.determinism import is_unstable, unstable


def require_deterministic(expression: exp.Expression, where: str) -> None:
    """Refuse random numbers, the wall clock and the like, also inside what only Spark evaluates.

    Typing refuses them where it knows the functions around them; Spark would run the rest.
    """
    for node in expression.walk():
        if is_unstable(node):
            raise unstable(where, node.sql(dialect="spark", comments=False))
