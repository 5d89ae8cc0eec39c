"""Reads the words before JOIN, which say what happens to tuples without a partner."""

from __future__ import annotations

from sqlglot import exp

from tidegate.operate.join.kind import ANTI, FULL_OUTER, INNER, LEFT_OUTER, RIGHT_OUTER, SEMI

SQL_KINDS = {
    "": INNER,
    "INNER": INNER,
    "CROSS": INNER,
    "LEFT": LEFT_OUTER,
    "LEFT OUTER": LEFT_OUTER,
    "RIGHT": RIGHT_OUTER,
    "RIGHT OUTER": RIGHT_OUTER,
    "FULL": FULL_OUTER,
    "FULL OUTER": FULL_OUTER,
    "SEMI": SEMI,
    "LEFT SEMI": SEMI,
    "ANTI": ANTI,
    "LEFT ANTI": ANTI,
}
"""Kinds of joins by these words."""


def join_words(join: exp.Expr) -> str:
    """The words before JOIN."""
    return " ".join(filter(None, (join.text("side").upper(), join.text("kind").upper())))
