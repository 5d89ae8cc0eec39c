"""Writes a query with its join in parentheses, for the remedy of a SELECT that is refused."""

from __future__ import annotations

from sqlglot import exp

from tidegate.sql.syntax import JoinedStreams

_PAIRS = "pairs_of_the_join"


def aggregate_of_pairs(tree: exp.Select) -> str:
    """The text of an aggregate over a join with the join in parentheses; the window is open."""
    written = tree.copy()
    joins, first = written.args.get("joins"), written.args["from_"].this
    written.set("joins", None)
    joined = exp.Subquery(this=JoinedStreams(this=first, joins=joins))
    marker = exp.to_table(_PAIRS)
    written.set("from_", exp.From(this=marker))
    return _sql(written).replace(_PAIRS, f"{_sql(joined)} [RANGE ...]", 1)


def join_of_pairs(left: str, join: exp.Join) -> str:
    """The text of FROM with a window after the joins so far."""
    return f"FROM ({left}) [RANGE ...] {_sql(join).strip()}"


def _sql(tree: exp.Expr) -> str:
    return tree.sql(dialect="tidegate", comments=False)
