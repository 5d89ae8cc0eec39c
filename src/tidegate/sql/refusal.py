"""Clauses of a SELECT that are not there, between its syntax and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.name import expression_text, find_name
from tidegate.sql.elsewhere import Read, asof
from tidegate.sql.instead import SEVERAL_ROWS

_CLAUSES = {
    "expressions",
    "from_",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "joins",
    "with_",
    "kind",
    "operation_modifiers",
}

_PER_WINDOW = (
    "Rows are put in order within a window: write GROUP BY ... ORDER BY x DESC LIMIT 10 over FROM "
    "name [RANGE 1 HOUR]."
)

_INSTEAD = {
    "laterals": ("LATERAL VIEW", "a tuple gives one row", SEVERAL_ROWS),
    "qualify": (
        "QUALIFY",
        "rows are not numbered across a stream",
        "The best row of each group in a window: SELECT k, MAX_BY(y, x) AS y FROM name [RANGE 1 "
        "HOUR] GROUP BY k",
    ),
    "windows": (
        "WINDOW",
        "a window belongs to its stream",
        "Write FROM name [RANGE 15 MINUTES SLIDE 5 MINUTES], and GROUP BY.",
    ),
    "offset": (
        "OFFSET",
        "the first rows of a window can be taken, not later ones",
        "Leave it out.",
    ),
    "cluster": ("CLUSTER BY", "rows are in the order of event time", _PER_WINDOW),
    "distribute": (
        "DISTRIBUTE BY",
        "how work is spread is no part of a query",
        "Leave it out; see --instances and --partitioner.",
    ),
    "sort": ("SORT BY", "rows are in the order of event time", _PER_WINDOW),
    "connect": ("CONNECT BY", "a query cannot read itself", "Leave it out."),
    "into": ("INTO", "an output is named before its query", "Write INSERT INTO name SELECT ..."),
    "sample": ("TABLESAMPLE", "streams are not sampled yet", "Filter by a column with WHERE."),
}
"""By sqlglot's name of a clause: as it is written, why not, and what to do."""


def refuse_clauses(tree: exp.Select) -> None:
    """Refuse what a SELECT has beside the clauses that there are."""
    if tree.args.get("distinct"):
        items = ", ".join(e.sql(dialect="tidegate", comments=False) for e in tree.expressions)
        raise QueryError(
            "SELECT",
            "rows can be distinct in a window only",
            "DISTINCT",
            f"Write SELECT DISTINCT {items} FROM {_first_table(tree)} [RANGE 1 HOUR]",
        )
    for clause, value in tree.args.items():
        if value and clause not in _CLAUSES:
            name, why, remedy = _INSTEAD.get(
                clause, (clause.strip("_").upper(), "this clause is not there", "Leave it out.")
            )
            raise QueryError("SELECT", why, name, remedy)


def refuse_modifiers(tree: exp.Expression, text: str) -> None:
    """Refuse what follows a stream in FROM beside a window and an alias."""
    plain = {"this", "alias", "db", "catalog"}
    modified = [k for k, v in tree.args.items() if v and k not in plain]
    alias = tree.args.get("alias")
    if isinstance(tree, exp.Unnest | exp.Lateral):
        raise QueryError("FROM", "a tuple gives one row", "UNNEST", SEVERAL_ROWS)
    if isinstance(tree, exp.Values):
        raise no_stream(tree, "VALUES")
    if "pivots" in modified:
        pivot = tree.args["pivots"][0]
        raise QueryError(
            "FROM",
            "columns are made by hand",
            "UNPIVOT" if pivot.args.get("unpivot") else "PIVOT",
            "Write UNION ALL of a SELECT for each column."
            if pivot.args.get("unpivot")
            else "Write an aggregate for each: SUM(fare) FILTER (WHERE route = 'a') AS a.",
        )
    if modified and modified[0] in ("version", "when"):
        remedy = asof(Read("l"), Read(tree.name or "r"), "k")
        raise QueryError("FROM", "a stream has no versions", "FOR ... AS OF", remedy)
    if "sample" in modified:
        _, why, remedy = _INSTEAD["sample"]
        raise QueryError("FROM", why, "TABLESAMPLE", remedy)
    if modified or (isinstance(alias, exp.TableAlias) and alias.args.get("columns")):
        raise QueryError(
            "FROM",
            "only a window and an alias may follow a stream",
            text,
            "Write FROM name AS n [RANGE 15 MINUTES].",
        )


def no_stream(tree: exp.Expression, text: str) -> QueryError:
    """What to say of something in FROM that is no stream: a function, or rows."""
    return QueryError(
        "FROM",
        "must name a stream or hold a subquery",
        text,
        "Write CREATE STREAM name FROM 'rides.csv' TIME ts; and FROM name.",
    )


def refuse_aliases(condition: exp.Expression, tree: exp.Select, names: Sequence[str]) -> None:
    """Say of a name in WHERE that it is one of the select list, which is made after WHERE."""
    aliases = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    for node in condition.find_all(exp.Column):
        meant = aliases.get(node.name.lower())
        if meant is None or node.table or find_name(node.name, names) is not None:
            continue
        raise QueryError(
            "WHERE",
            "does not see the names of the select list",
            node.name,
            f"Write {expression_text(meant)} in its place.",
        )


def _first_table(tree: exp.Expression) -> str:
    table = tree.find(exp.Table)
    return table.name if table is not None else "name"
