"""A continuous query rewritten as one batch query for DuckDB, and streams loaded as its tables.

The rewriting knows the definition of windows, order and lateness, and nothing of the engine: the
text is read as Spark SQL by plain sqlglot, a window is a join with the series of its starts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

PLACE = ("~ts", "~stream", "~source", "~seq")
"""Hidden columns of every relation: the tuple's place in the total order."""

_ORDER = ", ".join(f'"{c}"' for c in PLACE)
_WINDOW = re.compile(r"\[\s*RANGE\s+(.+?)(?:\s+SLIDE\s+(.+?))?\s*\]", re.IGNORECASE)
_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}
_SAME = {"VAR": "VAR_SAMP", "MEAN": "AVG", "STD": "STDDEV_SAMP"}
_SAME |= {"EVERY": "BOOL_AND", "SOME": "BOOL_OR"}


def load(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    sources: Sequence[pa.Table],
    time: str,
    disorder_us: int = 0,
) -> None:
    """Make the views of a stream from tables, one per source, whose rows are in its sequence."""
    relations = []
    for number, table in enumerate(sources):
        view = f"{name}~{number}"
        seq = pa.array(range(table.num_rows), pa.int64())
        connection.register(view, _without_zones(table).append_column("~seq", seq))
        relations.append(f'"{view}"')
    place(connection, name, relations, time, disorder_us)


def place(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    relations: Sequence[str],
    time: str,
    disorder_us: int = 0,
) -> None:
    """Make the views NAME (tuples in time), NAME~late and NAME~rejected of a stream's sources.

    `relations` are what stands in FROM for each source, with a column "~seq". A tuple is late when
    its time is below the largest before it in its source minus the disorder.
    """
    parts = [f'SELECT *, {n} AS "~source" FROM {relation}' for n, relation in enumerate(relations)]
    given = connection.sql(f"SELECT * FROM {relations[0]} LIMIT 0").columns
    plain = "" if "ts" in given else f', "{time}"::TIMESTAMP AS ts'
    connection.execute(f"""
        CREATE OR REPLACE TABLE "{name}~all" AS
        SELECT * EXCLUDE ("~late"), coalesce("~late", false) AS "~late" FROM (
            SELECT *{plain}, epoch_us("{time}"::TIMESTAMP) AS "~ts",
                   "~ts" < max("~ts") OVER (PARTITION BY "~source" ORDER BY "~seq"
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) - {disorder_us} AS "~late"
            FROM ({" UNION ALL ".join(parts)}))""")
    kinds = {
        name: '"~ts" IS NOT NULL AND NOT "~late"',
        f"{name}~late": '"~late"',
        f"{name}~rejected": '"~ts" IS NULL',
    }
    for view, kind in kinds.items():
        connection.execute(
            f'CREATE OR REPLACE VIEW "{view}" AS '
            f'SELECT * EXCLUDE ("~late") FROM "{name}~all" WHERE {kind}'
        )


def rewrite(text: str, columns: Collection[str] = ()) -> str:
    """The DuckDB SQL over views made by `load`; its rows come in the order of the output.

    `columns` are those of the stream in FROM: GROUP BY means a column before it means an alias.
    """
    window = _WINDOW.search(text)
    tree = sqlglot.parse_one(_WINDOW.sub("", text).strip().rstrip(";"), read="spark")
    tree = _inlined(tree).transform(_to_duckdb)
    streams = itertools.count()
    if window is None:
        body = _placed(tree, streams).sql("duckdb")
        shown = f'make_timestamp("~ts") AS ts, * EXCLUDE ({_ORDER})'
        return f"SELECT {shown} FROM ({body}) ORDER BY {_ORDER}"
    range_us = duration_us(window.group(1))
    slide_us = duration_us(window.group(2)) if window.group(2) else range_us
    return _windowed(tree, range_us, slide_us, streams, columns)


def duration_us(text: str) -> int:
    """Microseconds of a number and a unit."""
    number, unit = text.split()
    return int(number) * _UNITS_US[unit.lower().rstrip("s")]


def _windowed(
    tree: exp.Expression,
    range_us: int,
    slide_us: int,
    streams: Iterator[int],
    columns: Collection[str],
) -> str:
    assert isinstance(tree, exp.Select)
    from_ = tree.args["from_"].this
    if isinstance(from_, exp.Subquery):
        columns = from_.this.named_selects
    relation = _relation(from_, streams).sql("duckdb")
    where = tree.args.get("where")
    items = [(i.alias_or_name or i.sql("spark"), i.unalias()) for i in tree.expressions]
    items = [(n, e) for n, e in items if not (_is_window(e) and n == e.name)]
    aliases = {n.lower(): e for n, e in items}
    group = tree.args.get("group")
    free = {n: e for n, e in aliases.items() if n not in columns}
    keys = [_resolved(k, items, free) for k in (group.expressions if group else ())]
    keys = [k for k in keys if not _is_window(k)]
    order = tree.args.get("order")
    ordered = list(order.expressions) if order else []
    by = [_resolved(o.this, items, aliases) for o in ordered]
    limit = tree.args.get("limit")
    outputs = [f'{_sql(e)} AS "{n}"' for n, e in items]
    outputs += [f'{_sql(e)} AS "~k{i}"' for i, e in enumerate(keys)]
    outputs += [f'{_sql(e)} AS "~o{i}"' for i, e in enumerate(by)]
    having = tree.args.get("having")
    inside = [f'"~o{i}" {_way(o)}' for i, o in enumerate(ordered)]
    inside += [f'"~k{i}" ASC NULLS FIRST' for i in range(len(keys))]
    inside = inside or ["1"]
    hidden = [f'"~k{i}"' for i in range(len(keys))] + [f'"~o{i}"' for i in range(len(by))]
    shown = f"* EXCLUDE ({', '.join(hidden)})" if hidden else "*"
    return f"""
        WITH "~rows" AS (SELECT * FROM {relation} {where.sql("duckdb") if where else ""}),
        "~starts" AS (
            SELECT unnest(generate_series(
                (min("~ts") - {range_us}) // {slide_us} - 1, max("~ts") // {slide_us} + 1
            )) * {slide_us} AS "~start" FROM "~rows"),
        "~members" AS (
            SELECT *, "~start" + {range_us} AS "~end" FROM "~rows" JOIN "~starts"
            ON "~start" <= "~ts" AND "~ts" < "~start" + {range_us}),
        "~groups" AS (
            SELECT make_timestamp("~start") AS window_start,
                   make_timestamp("~end") AS window_end, {", ".join(outputs)}
            FROM "~members"
            GROUP BY {", ".join(['"~start"', '"~end"', *(_sql(k) for k in keys)])}
            {f"HAVING {_sql(_without_aliases(having.this, keys, aliases))}" if having else ""})
        SELECT {shown} FROM "~groups"
        {_first(inside, limit)}
        ORDER BY window_end, {", ".join(inside)}"""


def _first(inside: Sequence[str], limit: exp.Expression | None) -> str:
    if limit is None:
        return ""
    place = f"row_number() OVER (PARTITION BY window_end ORDER BY {', '.join(inside)})"
    return f"QUALIFY {place} <= {limit.expression.name}"


def _way(ordered: exp.Expression) -> str:
    """Spark's order: NULL is the smallest value, unless the query says where it goes."""
    descending = bool(ordered.args.get("desc"))
    first = ordered.args.get("nulls_first")
    first = not descending if first is None else first
    return f"{'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"


def _resolved(
    node: exp.Expression,
    items: Sequence[tuple[str, exp.Expression]],
    aliases: dict[str, exp.Expression],
) -> exp.Expression:
    """A key or order expression with ordinals and aliases of the select list put in."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return items[int(node.name) - 1][1]
    return _without_aliases(node, (), aliases)


def _without_aliases(
    node: exp.Expression, keys: Sequence[exp.Expression], aliases: dict[str, exp.Expression]
) -> exp.Expression:
    def put(part: exp.Expression) -> exp.Expression:
        known = isinstance(part, exp.Column) and part not in keys and part.name.lower() in aliases
        if not known or part.find_ancestor(exp.AggFunc, exp.Anonymous):
            return part
        target = aliases[part.name.lower()]
        return part if target == part else exp.Paren(this=target.copy())

    root = exp.Paren(this=node.copy())
    for part in list(root.find_all(exp.Column)):
        part.replace(put(part))
    return root.this


def _inlined(tree: exp.Expression) -> exp.Expression:
    """Named queries of WITH in the places where FROM names them."""
    with_ = tree.args.get("with_")
    if with_ is None:
        return tree
    tree.set("with_", None)
    for cte in reversed(with_.expressions):
        for table in list(tree.find_all(exp.Table)):
            if table.name.lower() == cte.alias.lower():
                name = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
                table.replace(exp.Subquery(this=cte.this.copy(), alias=name))
    return tree


def _placed(tree: exp.Expression, streams: Iterator[int]) -> exp.Expression:
    """A stateless query that passes the hidden columns through, in front."""
    if isinstance(tree, exp.Subquery):
        return _placed(tree.this, streams)
    if isinstance(tree, exp.Union):
        sides = [_placed(side, streams) for side in (tree.this, tree.expression)]
        return exp.Union(this=sides[0], expression=sides[1], distinct=False)
    assert isinstance(tree, exp.Select)
    placed = tree.copy()
    placed.args["from_"].set("this", _relation(tree.args["from_"].this, streams))
    items: list[exp.Expression] = [exp.column(c, quoted=True) for c in PLACE]
    for item in tree.expressions:
        if isinstance(item, exp.Star):
            left_out = [exp.to_identifier(c, quoted=True) for c in (*PLACE, "ts")]
            items.append(exp.Star(except_=left_out))
        elif not (isinstance(item, exp.Column) and item.name == "ts"):
            items.append(item.copy())
    placed.set("expressions", items)
    return placed


def _relation(tree: exp.Expression, streams: Iterator[int]) -> exp.Expression:
    if isinstance(tree, exp.Subquery):
        return exp.Subquery(this=_placed(tree, streams), alias=tree.args.get("alias"))
    inner = sqlglot.parse_one(
        f'SELECT *, {next(streams)} AS "~stream" FROM "{tree.name}"', read="duckdb"
    )
    return exp.Subquery(this=inner, alias=exp.to_identifier(tree.alias_or_name))


def _to_duckdb(node: exp.Expression) -> exp.Expression:
    """What DuckDB calls otherwise, or computes in another type or order."""
    if isinstance(node, exp.Column) and node.table:
        return exp.column(node.this.copy())
    if isinstance(node, exp.Median):
        return _quantile(node.this, "0.5")
    if isinstance(node, exp.Quantile):
        return _quantile(node.this, node.args["quantile"].name)
    if isinstance(node, exp.First | exp.Last):
        text = f"{node.key.upper()}({_sql(node.this.transform(_to_duckdb))} ORDER BY {_ORDER})"
        return sqlglot.parse_one(text, read="duckdb")
    if isinstance(node, exp.ArgMin | exp.ArgMax):
        return _first_by(node)
    if isinstance(node, exp.Corr):  # NaN where a column does not vary; Spark says NULL
        inside = ", ".join(_sql(e.transform(_to_duckdb)) for e in (node.this, node.expression))
        return sqlglot.parse_one(f"NULLIF(CORR({inside}), 'NaN'::DOUBLE)", read="duckdb")
    if isinstance(node, exp.CountIf):  # NULL where the condition always is; Spark says 0
        holds = exp.If(this=node.this.transform(_to_duckdb), true=exp.Literal.number(1))
        return exp.Count(this=exp.Case(ifs=[holds]))
    if isinstance(node, exp.ApproxDistinct):  # as long as there are few values
        return exp.Count(this=exp.Distinct(expressions=[node.this.transform(_to_duckdb)]))
    if isinstance(node, exp.Anonymous) and node.name.upper() in _SAME:
        inside = [e.transform(_to_duckdb) for e in node.expressions]
        return exp.Anonymous(this=_SAME[node.name.upper()], expressions=inside)
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.TIMESTAMPTZ:
        return exp.DataType.build("TIMESTAMP", dialect="duckdb")
    return node


def _first_by(node: exp.ArgMin | exp.ArgMax) -> exp.Expression:
    """The value beside the first smallest or greatest key that is not NULL."""
    value, key = (_sql(e.transform(_to_duckdb)) for e in (node.this, node.expression))
    way = "DESC" if isinstance(node, exp.ArgMax) else "ASC"
    order = f"({key}) IS NULL, {key} {way}, {_ORDER}"
    text = f"FIRST(CASE WHEN ({key}) IS NOT NULL THEN {value} END ORDER BY {order})"
    return sqlglot.parse_one(text, read="duckdb")


def _quantile(of: exp.Expression, fraction: str) -> exp.Expression:
    number = exp.Literal.number(fraction)
    value = exp.cast(of.transform(_to_duckdb), "DOUBLE", dialect="duckdb")
    return exp.Anonymous(this="QUANTILE_CONT", expressions=[value, number])


def _is_window(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in ("window_start", "window_end")


def _sql(node: exp.Expression) -> str:
    """DuckDB's text; the window's own columns are said by its grouped borders."""

    def put(part: exp.Expression) -> exp.Expression:
        if not _is_window(part):
            return part
        border = "~start" if part.name.lower() == "window_start" else "~end"
        return sqlglot.parse_one(f'make_timestamp("{border}")', read="duckdb")

    return node.copy().transform(put).sql("duckdb")


def _without_zones(table: pa.Table) -> pa.Table:
    """Times as DuckDB's TIMESTAMP: UTC by agreement, without its time zone extension."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.timestamp("us"))
        columns.append(column)
    return pa.table(dict(zip(table.column_names, columns)))
