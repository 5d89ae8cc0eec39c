"""Says why parsed syntax is not available, and what to do instead.

A remedy must give exactly what was asked for, and a test follows it; otherwise it says that there
is no way yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from tidegate.errors import NO_WAY
from tidegate.query.name import expression_text
from tidegate.query.surface.advice import Advice, read_advice
from tidegate.query.types.spelling import spelling, sql_text
from tidegate.sql.call import SKIPPERS
from tidegate.sql.function import ignores_nulls, is_aggregate, takes_order
from tidegate.sql.relation.join_kind import SQL_KINDS, join_words

EXPLODES = ("EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER")
PROCESS = "There is no way yet in SQL; in Python there is tg.Process: see docs/process.md."

REFUSALS = {
    name: entry
    for entry in read_advice(f"""
offset :: the first rows of a window can be taken, not later ones; got OFFSET
cluster :: rows are in the order of event time; got CLUSTER BY
sort :: rows are in the order of event time; got SORT BY
distribute :: how work is spread is no part of a query; got DISTRIBUTE BY. Leave it out.
connect :: a query cannot read itself; got CONNECT BY
into :: an output is named before its query; got INTO. Write INSERT INTO name SELECT ...
sample :: streams are not sampled yet; got TABLESAMPLE
hint :: how a query is run is no part of it; got /*+ ... */. Leave the hint out.
locks :: a stream is read only, so nothing is locked; got FOR UPDATE. Leave it out.
distinct :: only UNION ALL is possible on an unbounded stream; got UNION
by_name ::
    columns are matched by position; got BY NAME. List the columns of both sides in one order, and
    leave BY NAME out.
pivots ::
    columns are made by hand; got PIVOT. Write an aggregate for each: SUM(fare) FILTER (WHERE route
    = 'a') AS a.
unpivot :: columns are made by hand; got UNPIVOT. Write UNION ALL of a SELECT for each column.
version when system_time :: a stream has no versions yet; got FOR
hints :: how a query is run is no part of it; got WITH. Leave WITH (...) out.
ordinality :: the rows of a stream have no numbers; got WITH ORDINALITY
recursive :: a query cannot read itself; got RECURSIVE. Leave RECURSIVE out if none does.
totals ::
    the total of all groups is a set of its own; got TOTALS. Write GROUP BY GROUPING SETS ((route),
    ()).
ilike :: * stands for all columns; got ILIKE. List the columns.
join_mark :: outer joins are written in FROM; got (+). Write LEFT JOIN ... ON ... there.
percent :: LIMIT must be a whole number of rows; got PERCENT
with_ties :: LIMIT must be a whole number of rows; got WITH TIES
with_fill :: windows without tuples are not put out; got WITH FILL
key_expressions :: a query cannot read itself; got USING KEY
Select.kind :: rows are put out as columns; got SELECT AS. Leave AS and its word out.
WindowSpec.end_side ::
    a frame ends with the current row; got BETWEEN. Write ROWS 5 PRECEDING, RANGE '5 minutes'
    PRECEDING or ROWS UNBOUNDED PRECEDING.
In.unnest :: IN must have a list of values; got IN
In.field :: the list of IN must stand in parentheses; got IN. Write {{this}} IN (...).
Cast.default Cast.action TryCast.default TryCast.action ::
    CAST has no other value for what it cannot read; got DEFAULT
Cast.format TryCast.format :: CAST reads and writes text in one way only; got FORMAT
InsertInto.with_ ::
    WITH must stand after the name of the output; got WITH before INSERT INTO. Write INSERT INTO
    {{name}} WITH ... SELECT ...
Window ::
    stands in the select list or in QUALIFY; got OVER. Write it in a subquery, or the condition in
    QUALIFY.
WithinGroup :: this aggregate takes tuples in the order of event time; got WITHIN GROUP
HavingMax :: an aggregate takes all tuples of its group; got HAVING
IgnoreNulls :: IGNORE NULLS is not available yet; got IGNORE NULLS
Aliases :: an expression is one column; got AS. Give it one name.
Except :: streams are put together by UNION ALL only; got EXCEPT (or MINUS)
Intersect :: streams are put together by UNION ALL only; got INTERSECT
Values ::
    FROM: must name a stream or hold a subquery; got VALUES. Write CREATE STREAM name FROM
    'rides.csv' TIME ts; and FROM name.
Unnest :: a list stands beside a stream in FROM; got UNNEST. {PROCESS}
Lateral :: a tuple gives one row; got LATERAL. {PROCESS}
Inline :: a tuple gives one row; got {{spelling}}. {PROCESS}
explode ::
    must stand alone in the select list; got {{spelling}}. Write it in FROM: CROSS JOIN UNNEST(tags)
    AS t(tag).
outer ::
    JOIN: a join is INNER, LEFT, RIGHT, FULL, SEMI, ANTI or CROSS; got {{join}}. Say of which side
    rows without a partner are kept, for example LEFT JOIN.
method :: JOIN: this way to join is not available yet; got {{join}}
natural :: JOIN: NATURAL JOIN has no condition of its own; got ON. Leave NATURAL or ON out.
materialized :: WITH: a query of WITH is computed once; got MATERIALIZED. Leave MATERIALIZED out.
column_list ::
    FROM: only a window and an alias may follow a stream; got {{parent}}. Leave the list of columns
    out, and name them in a subquery: (SELECT route AS r FROM rides).
star :: COUNT: COUNT(*) counts tuples, whatever their columns are; got EXCEPT. Write COUNT(*).
Order :: this function takes tuples in the order of event time; got ORDER BY
Limit :: an aggregate takes all tuples of its group; got LIMIT
Distinct :: only an aggregate can be DISTINCT; got DISTINCT. Leave it out.
Filter :: only an aggregate has FILTER; got FILTER. Leave it out.
""")
    for name in entry.about.split()
}
"""By sqlglot's name of a slot, of a class that is refused, of both, or of a case of a class.

What is got begins with the word that the message points to.
"""


def of_node(node: exp.Expr) -> Advice | None:
    """The reason why a node cannot stand where it does; None if it can."""
    case = _CASES.get(type(node))
    name = type(node).__name__ if case is None else case(node)
    return REFUSALS.get(name) if name else None


def of_slot(node: exp.Expr, slot: str) -> Advice:
    """The reason why a slot of a node is refused."""
    if slot == "pivots" and any(p.args.get("unpivot") for p in node.find_all(exp.Pivot)):
        slot = "unpivot"
    found = REFUSALS.get(f"{type(node).__name__}.{slot}") or REFUSALS.get(slot)
    if found is not None:
        return found
    value = node.args[slot]
    value = value[0] if isinstance(value, list) else value
    if isinstance(node, exp.Query | exp.Table | exp.Join) and isinstance(value, exp.Expr):
        return Advice(slot, "", "this clause is not available", spelling(value), NO_WAY)
    got = sql_text(node) or spelling(node)
    return Advice(slot, "", "a part of this would be lost", got, NO_WAY)


def filled(text: str, node: exp.Expr) -> str:
    """A part of a message with values of the node."""
    return re.sub(r"\{(\w+)\}", lambda field: _FIELDS[field[1]](node), text)


def _text(node: exp.Expr) -> str:
    text = expression_text(node)
    return text if len(text) <= 60 else f"{text[:60]} ..."


def _join_words(node: exp.Expr) -> str:
    words = (node.text("method"), join_words(node))
    return " ".join([*filter(None, words), "JOIN"]).replace("STRAIGHT_JOIN JOIN", "STRAIGHT_JOIN")


_FIELDS: dict[str, Callable[[exp.Expr], str]] = {
    "this": lambda node: _text(node.this),
    "name": lambda node: str(node.this.name),
    "parent": lambda node: _text(node.parent or node),
    "spelling": spelling,
    "join": _join_words,
}


def _join(node: exp.Expr) -> str | None:
    method, words = node.text("method").upper(), join_words(node)
    if method == "ASOF" and words in ("", "INNER", "LEFT", "LEFT OUTER"):
        return None
    if method not in ("", "NATURAL") or words == "STRAIGHT_JOIN":
        return "method"
    if words not in SQL_KINDS:
        return "outer"
    return "natural" if method and node.args.get("on") else None


def _inside(node: exp.Expr) -> str | None:
    """ORDER BY and LIMIT as clauses of a query; DISTINCT also inside an aggregate."""
    within = exp.Query | exp.Window
    clause = isinstance(node.parent, within) and node.arg_key in ("order", "limit", "distinct")
    if isinstance(node, exp.Order) and not clause:
        return None if takes_order(node.parent or node) else "Order"
    above = node.this if isinstance(node, exp.Filter) else node.parent or node
    above = above.parent or above if isinstance(above, exp.Order) else above
    aggregate = is_aggregate(above)
    counts = isinstance(node, exp.Distinct | exp.Filter) and aggregate
    return None if clause or counts else type(node).__name__


def _star(node: exp.Expr) -> str | None:
    above = node.parent if isinstance(node.parent, exp.Column) else node
    selected = isinstance(above.parent, exp.Select) and above.arg_key == "expressions"
    return None if selected or not any(node.args.values()) else "star"


def _within(node: exp.Expr) -> str | None:
    return None if takes_order(node) else "WithinGroup"


def _ignoring(node: exp.Expr) -> str | None:
    over = isinstance(node.parent, exp.Window) and isinstance(node.this, SKIPPERS)
    return None if over or ignores_nulls(node) else "IgnoreNulls"


def _window(node: exp.Expr) -> str | None:
    """OVER belongs in the select list, in QUALIFY or in a named window, nowhere else."""
    top = node
    while top.parent is not None and not isinstance(top.parent, exp.Query):
        top = top.parent
    return None if top.arg_key in ("expressions", "qualify", "windows") else "Window"


def _alias(node: exp.Expr) -> str | None:
    listed = isinstance(node.parent, exp.CTE | exp.Unnest | exp.Lateral)
    named = listed or not node.args.get("columns")
    return None if named else "column_list"


def _exploded(node: exp.Expr) -> str | None:
    """EXPLODE belongs in the select list or after LATERAL."""
    item = node.parent if isinstance(node.parent, exp.Alias | exp.Aliases) else node
    listed = isinstance(item.parent, exp.Select) and item.arg_key == "expressions"
    return None if listed or isinstance(item.parent, exp.Lateral) else "explode"


def _two_names(node: exp.Expr) -> str | None:
    return None if isinstance(node.this, exp.Posexplode | exp.PosexplodeOuter) else "Aliases"


def _beside(node: exp.Expr) -> str | None:
    """UNNEST and LATERAL EXPLODE follow a stream by CROSS JOIN or a comma."""
    crossed = isinstance(node.parent, exp.Join) and not node.parent.args.get("on")
    if isinstance(node, exp.Unnest):
        return None if crossed else "Unnest"
    view = isinstance(node.parent, exp.Select) or crossed
    return None if view and isinstance(node.this, exp.Func) else "Lateral"


_CASES: dict[type[exp.Expr], Callable[[exp.Expr], str | None]] = {
    exp.Join: _join,
    exp.Star: _star,
    exp.CTE: lambda node: None if node.args.get("materialized") is None else "materialized",
    exp.TableAlias: _alias,
    exp.WithinGroup: _within,
    exp.Window: _window,
    exp.Aliases: _two_names,
    **dict.fromkeys((exp.Unnest, exp.Lateral), _beside),
    **{exp.FUNCTION_BY_NAME[name]: _exploded for name in EXPLODES},
    exp.IgnoreNulls: _ignoring,
    **dict.fromkeys((exp.Order, exp.Limit, exp.Distinct, exp.Filter), _inside),
}
"""Classes allowed only in some places or with some words; gives the name of the refusal."""
