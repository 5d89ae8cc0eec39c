"""What to write in place of what is not there, between binding's refusals and their remedies."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.aggregate.registry import find_sql
from tidegate.query.name import expression_text
from tidegate.sql.elsewhere import Read, asof

LISTS = (
    *("ARRAY_AGG", "COLLECT_LIST", "COLLECT_SET", "STRING_AGG", "LISTAGG", "GROUP_CONCAT"),
    *("MAP_AGG", "JSON_ARRAYAGG", "APPROX_PERCENTILE", "PERCENTILE_APPROX"),
)
"""Aggregates of other SQL that sqlglot knows under one name each; here they keep their own."""

_LIST = (
    "An aggregate gives one plain value for each group. Leave the aggregate out to have every row, "
    'or write one of your own in Python: tg.aggregate(MyAggregate(), "x").'
)
_BEFORE = (
    "Rows next to each other are in a window of rows: SELECT {key}LAST({x}) AS {x}, FIRST({x}) AS "
    "before FROM {stream} [ROWS {rows} SLIDE 1]{group}"
)
_QUANTILE = "Write QUANTILE(x, 0.5), which is exact."
_OWN = 'Write one of your own in Python: tg.aggregate(MyAggregate(), "x").'

AGGREGATES = {
    **dict.fromkeys(LISTS, _LIST),
    **dict.fromkeys(
        ("APPROX_PERCENTILE", "PERCENTILE_APPROX", "PERCENTILE_CONT", "PERCENTILE_DISC"), _QUANTILE
    ),
    **dict.fromkeys(
        ("LAG", "LEAD"),
        _BEFORE.format(key="", x="x", stream="stream", rows=2, group=" GROUP BY key"),
    ),
    **dict.fromkeys(
        ("MODE", "SKEWNESS", "KURTOSIS", "HISTOGRAM_NUMERIC", "BIT_AND", "BIT_OR"), _OWN
    ),
    **dict.fromkeys(("BIT_XOR", "PRODUCT", "ENTROPY", "REGR_SLOPE", "REGR_INTERCEPT"), _OWN),
}
"""By the name of an aggregate that is not there, what to write."""

GENERATORS = (exp.Explode, exp.Posexplode, exp.Unnest, exp.Inline)


def function_name(node: exp.Expr) -> str:
    """The name of a function, for messages."""
    return node.sql(dialect="spark", comments=False).partition("(")[0].upper()


SEVERAL_ROWS = (
    "In Python, a tg.Process puts out several rows for a tuple: see docs/process.md; or write the "
    "elements as rows before the stream is read."
)


def of_over(window: exp.Window, where: str) -> QueryError:
    """What to say of a function with OVER: its window belongs to the stream."""
    written = expression_text(window)
    return QueryError(
        where,
        "OVER is not available: a window belongs to its stream",
        written,
        _over_remedy(window),
    )


def _over_remedy(window: exp.Window) -> str:
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    stream = _stream(window)
    keys = ", ".join(expression_text(k) for k in window.args.get("partition_by") or ())
    key, group = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
    if isinstance(function, exp.Lag | exp.Lead):
        return _neighbours(function, stream, key, group)
    if isinstance(function, exp.AggFunc) and any(map(find_sql, function.sql_names())):
        text = expression_text(function)
        size = _frame(window.args.get("spec"))
        return f"Write SELECT {key}{text} FROM {stream} [{size}]{group}"
    return (
        "The first groups of a window are taken by ORDER BY x DESC LIMIT 3 after GROUP BY, the "
        f"best row of a group by SELECT {key}MAX_BY(y, x) AS y FROM {stream} [RANGE 1 HOUR]{group}"
    )


def _neighbours(function: exp.Expression, stream: str, key: str, group: str) -> str:
    of = expression_text(function.this)
    offset = function.args.get("offset")
    steps = int(offset.name) if isinstance(offset, exp.Literal) and offset.name.isdigit() else 1
    now, other = ("LAST", "FIRST") if isinstance(function, exp.Lag) else ("FIRST", "LAST")
    name = "before" if isinstance(function, exp.Lag) else "after"
    return (
        f"Write SELECT {key}{now}({of}) AS now, {other}({of}) AS {name} FROM {stream} "
        f"[ROWS {steps + 1} SLIDE 1]{group}"
    )


def _frame(spec: exp.WindowSpec | None) -> str:
    """The window that is nearest to a frame: the rows or the time that it reaches back."""
    start = spec.args.get("start") if spec is not None else None
    if spec is not None and spec.args.get("kind") == "ROWS" and isinstance(start, exp.Literal):
        return f"ROWS {int(start.name) + 1} SLIDE 1" if start.name.isdigit() else "ROWS 100 SLIDE 1"
    if isinstance(start, exp.Interval):
        unit = str(start.args.get("unit") or "MINUTES").upper()
        amount = start.this.name
        return f"RANGE {amount} {unit} SLIDE 1 {unit.removesuffix('S')}"
    return "RANGE 1 HOUR"


def _stream(node: exp.Expr) -> str:
    """The stream that the SELECT around a node reads, for a line to copy."""
    select = node.find_ancestor(exp.Select)
    table = select.find(exp.Table) if select is not None else None
    return table.name if table is not None else "stream"


def of_subquery(query: exp.Expr, where: str) -> QueryError:
    """What to say of a subquery in an expression: another stream is met by a join."""
    inner = query.find(exp.Table)
    other = inner.name if inner is not None else "other"
    mine = _stream(query)
    outside: exp.Expr = query
    while isinstance(outside.parent, exp.Paren | exp.Subquery):
        outside = outside.parent
    above = outside.parent if isinstance(outside.parent, exp.In | exp.Exists) else outside
    around = above if isinstance(above, exp.In | exp.Exists | exp.Query | exp.Subquery) else query
    negated = isinstance(around.parent, exp.Not)
    kind = None
    if isinstance(around, exp.In | exp.Exists):
        kind = f"{'IN' if isinstance(around, exp.In) else 'EXISTS'} (SELECT ...)"
    got = f"NOT {kind}" if negated and kind else kind or "(SELECT ...)"
    if negated and kind:
        remedy = without_partner(Read(mine), Read(other), "k")
    elif kind:
        remedy = f"Write FROM {mine} [RANGE 5 MINUTES] JOIN {other} [RANGE 5 MINUTES] ON ..."
    else:
        remedy = (
            "Make it a stream and join it: CREATE STREAM means AS SELECT AVG(x) AS x FROM "
            f"{other} [RANGE 1 HOUR]; SELECT ... FROM {mine} [RANGE 1 HOUR] JOIN means [RANGE 1 "
            "HOUR] ON ..."
        )
    return QueryError(where, "a subquery can stand in FROM only", got, remedy)


def of_outer(join: exp.Join, left: Read, right: Read) -> QueryError:
    """What to say of a join that is not inner, with the way around."""
    written = " ".join(w for w in (join.method, join.side, join.kind, "JOIN") if w)
    key = _key(join)
    if join.method == "ASOF":
        return QueryError("JOIN", "ASOF JOIN is not available yet", written, asof(left, right, key))
    if join.kind == "SEMI":
        remedy = f"Write {left.text} [RANGE 5 MINUTES] JOIN {right.text} [RANGE 5 MINUTES] ON ..."
    elif join.kind == "ANTI":
        remedy = without_partner(left, right, key)
    elif join.side == "RIGHT":
        remedy = _outer(right, left, key)
    else:
        remedy = _outer(left, right, key)
    if join.side == "FULL":
        remedy += "; and the same with the sides exchanged, put to it with UNION ALL"
    return QueryError("JOIN", "only inner joins are available", written, remedy)


def _key(join: exp.Join) -> str:
    """The column that both sides are compared by, for a line to copy."""
    for identifier in join.args.get("using") or ():
        return str(identifier.name)
    condition = join.args.get("on")
    equal = condition.find(exp.EQ) if condition is not None else None
    return str(equal.this.name) if equal is not None and isinstance(equal.this, exp.Column) else "k"


def _outer(left: Read, right: Read, key: str) -> str:
    """Rows with and without a partner, as an aggregate over both; a pair has the row's own time."""
    x = right.column
    pairs = (
        f"SELECT {left}.{key}, {left}.ts AS at, {right}.{x} FROM {left.text} [RANGE 0 SECONDS] "
        f"JOIN {right.text} [RANGE 5 MINUTES] ON {left}.{key} = {right}.{key}"
    )
    return (
        "With partners of the 5 minutes before a row, or NULL, write: "
        f"SELECT {key}, at, MAX({x}) AS {x} FROM (SELECT {key}, ts AS at, CAST(NULL AS "
        f"{right.type}) AS {x} FROM {left.text} UNION ALL {pairs}) [RANGE 1 SECOND] "
        f"GROUP BY {key}, at"
    )


def without_partner(left: Read, right: Read, key: str) -> str:
    """Rows without a partner, as groups in which none was met."""
    pairs = (
        f"SELECT {left}.{key}, {left}.ts AS at, 1 AS met FROM {left.text} [RANGE 0 SECONDS] "
        f"JOIN {right.text} [RANGE 5 MINUTES] ON {left}.{key} = {right}.{key}"
    )
    return (
        "For rows without a partner in the 5 minutes before, write: "
        f"SELECT {key}, at FROM (SELECT {key}, ts AS at, 0 AS met FROM {left.text} UNION ALL "
        f"{pairs}) [RANGE 1 SECOND] GROUP BY {key}, at HAVING SUM(met) = 0"
    )
