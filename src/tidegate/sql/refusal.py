"""What is said of syntax that is parsed and not available: the words, why not, what to do next.

A remedy gives exactly what was asked for, and a test follows it; else there is no way yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tidegate.errors import NO_WAY
from tidegate.query.name import expression_text
from tidegate.query.spelling import spelling, sql_text
from tidegate.sql.function import is_aggregate
from tidegate.sql.syntax import InsertInto

PROCESS = "There is no way yet in SQL; in Python there is tg.Process: see docs/process.md."
LEAVE_OUT = "Leave it out."

_Text = str | Callable[[exp.Expr], str]


@dataclass(frozen=True)
class Refusal:
    """`written` begins with the word that the message points to; `where` is for no place."""

    written: _Text
    why: str
    remedy: _Text = NO_WAY
    where: str = "SQL"


def _text(node: exp.Expr) -> str:
    text = expression_text(node)
    return text if len(text) <= 60 else f"{text[:60]} ..."


def _join_words(node: exp.Expr) -> str:
    words = (node.text("method"), node.text("side"), node.text("kind"))
    return " ".join([*filter(None, words), "JOIN"]).replace("STRAIGHT_JOIN JOIN", "STRAIGHT_JOIN")


def _percentile(node: exp.Expr) -> str:
    order = node.expression.find(exp.Ordered)
    if not isinstance(node.this, exp.PercentileCont) or order is None or order.args.get("desc"):
        return NO_WAY
    return f"Write QUANTILE({expression_text(order.this)}, {expression_text(node.this.this)})."


def _unpivots(node: exp.Expr) -> bool:
    return any(pivot.args.get("unpivot") for pivot in node.find_all(exp.Pivot))


_ORDERED = "rows are in the order of event time"
_ONE_ROW = "a tuple gives one row"
_ONE_GROUPING = "a query has one grouping"
_EACH_GROUPING = "Write a query for each grouping, and name each with INSERT INTO."
_NOT_SAMPLED = "streams are not sampled yet"
_NO_HINTS = "how a query is run is no part of it"
_FROM = "only a window and an alias may follow a stream"

_CLAUSES = {
    "laterals": Refusal("LATERAL VIEW", _ONE_ROW, PROCESS),
    "qualify": Refusal("QUALIFY", "rows are not numbered yet"),
    "windows": Refusal("WINDOW", "OVER is not available yet, so it has no use for a window"),
    "offset": Refusal("OFFSET", "the first rows of a window can be taken, not later ones"),
    "cluster": Refusal("CLUSTER BY", _ORDERED),
    "sort": Refusal("SORT BY", _ORDERED),
    "distribute": Refusal("DISTRIBUTE BY", "how work is spread is no part of a query", LEAVE_OUT),
    "connect": Refusal("CONNECT BY", "a query cannot read itself"),
    "into": Refusal(
        "INTO", "an output is named before its query", "Write INSERT INTO name SELECT ..."
    ),
    "sample": Refusal("TABLESAMPLE", _NOT_SAMPLED),
    "hint": Refusal("/*+ ... */", _NO_HINTS, "Leave the hint out."),
    "locks": Refusal("FOR UPDATE", "a stream is read only, so nothing is locked", LEAVE_OUT),
    "distinct": Refusal("UNION", "only UNION ALL is possible on an unbounded stream"),
    "by_name": Refusal(
        "BY NAME",
        "columns are matched by position",
        "List the columns of both sides in one order, and leave BY NAME out.",
    ),
    "pivots": Refusal(
        lambda node: "UNPIVOT" if _unpivots(node) else "PIVOT",
        "columns are made by hand",
        lambda node: (
            "Write UNION ALL of a SELECT for each column."
            if _unpivots(node)
            else "Write an aggregate for each: SUM(fare) FILTER (WHERE route = 'a') AS a."
        ),
    ),
    **dict.fromkeys(
        ("version", "when", "system_time"), Refusal("FOR", "a stream has no versions yet")
    ),
    "hints": Refusal("WITH", _NO_HINTS, "Leave WITH (...) out."),
    "ordinality": Refusal("WITH ORDINALITY", "the rows of a stream have no numbers"),
    "recursive": Refusal(
        "RECURSIVE", "a query cannot read itself", "Leave RECURSIVE out if none does."
    ),
    "grouping_sets": Refusal("GROUPING SETS", _ONE_GROUPING, _EACH_GROUPING),
    "cube": Refusal("CUBE", _ONE_GROUPING, _EACH_GROUPING),
    "rollup": Refusal("ROLLUP", _ONE_GROUPING, _EACH_GROUPING),
    "totals": Refusal("TOTALS", _ONE_GROUPING, _EACH_GROUPING),
    "ilike": Refusal("ILIKE", "* stands for all columns", "List the columns."),
    "join_mark": Refusal("(+)", "outer joins are not available yet"),
    "percent": Refusal("PERCENT", "LIMIT must be a whole number of rows"),
    "with_ties": Refusal("WITH TIES", "LIMIT must be a whole number of rows"),
    "with_fill": Refusal("WITH FILL", "windows without tuples are not put out"),
    "key_expressions": Refusal("USING KEY", "a query cannot read itself"),
}
"""By sqlglot's name of a slot."""

_SLOTS: dict[tuple[type[exp.Expr], str], Refusal] = {
    (exp.Select, "kind"): Refusal(
        "SELECT AS", "rows are put out as columns", "Leave AS and its word out."
    ),
    (exp.Distinct, "on"): Refusal("DISTINCT ON", "rows are not deduplicated yet"),
    (exp.Limit, "expressions"): Refusal(
        "LIMIT ... BY", "the first rows of each group are not available yet"
    ),
    (exp.In, "unnest"): Refusal("IN", "IN must have a list of values"),
    (exp.In, "field"): Refusal(
        "IN",
        "the list of IN must stand in parentheses",
        lambda node: f"Write {_text(node.this)} IN (...).",
    ),
    **{
        (kind, slot): Refusal("DEFAULT", "CAST has no other value for what it cannot read")
        for kind in (exp.Cast, exp.TryCast)
        for slot in ("default", "action")
    },
    **dict.fromkeys(
        ((exp.Cast, "format"), (exp.TryCast, "format")),
        Refusal("FORMAT", "CAST reads and writes text in one way only"),
    ),
    (InsertInto, "with_"): Refusal(
        "WITH before INSERT INTO",
        "WITH must stand after the name of the output",
        lambda node: f"Write INSERT INTO {node.this.name} WITH ... SELECT ...",
    ),
}

_NODES: dict[type[exp.Expr], Refusal] = {
    exp.Window: Refusal("OVER", "OVER is not available yet"),
    exp.WithinGroup: Refusal(
        "WITHIN GROUP", "aggregates take tuples in the order of event time", _percentile
    ),
    exp.HavingMax: Refusal("HAVING", "an aggregate takes all tuples of its group"),
    exp.IgnoreNulls: Refusal("IGNORE NULLS", "IGNORE NULLS is not available yet"),
    exp.Aliases: Refusal("AS", "an expression is one column", "Give it one name."),
    exp.Except: Refusal("EXCEPT (or MINUS)", "streams are put together by UNION ALL only"),
    exp.Intersect: Refusal("INTERSECT", "streams are put together by UNION ALL only"),
    exp.Rollup: Refusal("ROLLUP", _ONE_GROUPING, _EACH_GROUPING),
    exp.Cube: Refusal("CUBE", _ONE_GROUPING, _EACH_GROUPING),
    exp.GroupingSets: Refusal("GROUPING SETS", _ONE_GROUPING, _EACH_GROUPING),
    exp.Values: Refusal(
        "VALUES",
        "must name a stream or hold a subquery",
        "Write CREATE STREAM name FROM 'rides.csv' TIME ts; and FROM name.",
        "FROM",
    ),
    exp.Unnest: Refusal("UNNEST", _ONE_ROW, PROCESS),
    exp.Lateral: Refusal("LATERAL", _ONE_ROW, PROCESS),
    **dict.fromkeys(
        (exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.PosexplodeOuter, exp.Inline),
        Refusal(spelling, _ONE_ROW, PROCESS),
    ),
}
"""Classes that are refused wherever they stand."""

_OUTER = Refusal(_join_words, "only inner joins are available yet", where="JOIN")
_NATURAL = Refusal(
    "ON", "NATURAL JOIN has no condition of its own", "Leave NATURAL or ON out.", "JOIN"
)
_MATERIALIZED = Refusal(
    "MATERIALIZED", "a query of WITH is computed once", "Leave MATERIALIZED out.", "WITH"
)
_COLUMN_LIST = Refusal(
    lambda node: _text(node.parent or node),
    _FROM,
    "Leave the list of columns out, and name them in a subquery: (SELECT route AS r FROM rides).",
    "FROM",
)
_STAR = Refusal(
    "EXCEPT", "COUNT(*) counts tuples, whatever their columns are", "Write COUNT(*).", "COUNT"
)
_INSIDE: dict[type[exp.Expr], Refusal] = {
    exp.Order: Refusal("ORDER BY", "a function takes tuples in the order of event time"),
    exp.Limit: Refusal("LIMIT", "an aggregate takes all tuples of its group"),
    exp.Distinct: Refusal("DISTINCT", "only an aggregate can be DISTINCT", LEAVE_OUT),
    exp.Filter: Refusal("FILTER", "only an aggregate has FILTER", LEAVE_OUT),
}


def of_node(node: exp.Expr) -> Refusal | None:
    """Why a node cannot stand where it does; None if it can."""
    if (found := _NODES.get(type(node))) is not None:
        return found
    check = _CONTEXTS.get(type(node))
    return check(node) if check is not None else None


def of_slot(node: exp.Expr, slot: str) -> Refusal:
    """Why a slot of a node cannot be written."""
    found = _SLOTS.get((type(node), slot)) or _CLAUSES.get(slot)
    if found is not None:
        return found
    value = node.args[slot]
    value = value[0] if isinstance(value, list) else value
    if isinstance(node, exp.Query | exp.Table | exp.Join) and isinstance(value, exp.Expr):
        return Refusal(lambda _: spelling(value), "this clause is not available", NO_WAY)
    return Refusal(sql_text(node) or spelling(node), "a part of this would be lost")


def _join(node: exp.Expr) -> Refusal | None:
    method, kind = node.text("method").upper(), node.text("kind").upper()
    if node.args.get("side") or kind not in ("", "INNER", "CROSS") or method not in ("", "NATURAL"):
        return _OUTER
    return _NATURAL if method and node.args.get("on") else None


def _inside(node: exp.Expr) -> Refusal | None:
    """ORDER BY and LIMIT as a clause of a query, DISTINCT as one and in an aggregate."""
    clause = isinstance(node.parent, exp.Query) and node.arg_key in ("order", "limit", "distinct")
    aggregate = is_aggregate(node.this if isinstance(node, exp.Filter) else node.parent or node)
    counts = isinstance(node, exp.Distinct | exp.Filter) and aggregate
    return None if clause or counts else _INSIDE[type(node)]


def _star(node: exp.Expr) -> Refusal | None:
    above = node.parent if isinstance(node.parent, exp.Column) else node
    selected = isinstance(above.parent, exp.Select) and above.arg_key == "expressions"
    return None if selected or not any(node.args.values()) else _STAR


def _cte(node: exp.Expr) -> Refusal | None:
    return None if node.args.get("materialized") is None else _MATERIALIZED


def _alias(node: exp.Expr) -> Refusal | None:
    named = isinstance(node.parent, exp.CTE) or not node.args.get("columns")
    return None if named else _COLUMN_LIST


_CONTEXTS: dict[type[exp.Expr], Callable[[exp.Expr], Refusal | None]] = {
    exp.Join: _join,
    exp.Star: _star,
    exp.CTE: _cte,
    exp.TableAlias: _alias,
    **dict.fromkeys(_INSIDE, _inside),
}
"""Classes that may stand in some places only, or with some words only."""
