"""A continuous join rewritten as one batch query for DuckDB, over the views that `load` makes.

The rewriting knows the definition of windows and order, and nothing of the engine: which pairs
meet is said by their times, or by how many tuples of a side came before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from tests.duckdb.batch import duration_us

_WINDOW = re.compile(r"\[\s*(RANGE|ROWS)\s+(.+?)\s*\]", re.IGNORECASE)
_PLACE = ("~ts", "~side", "~source", "~seq")


@dataclass(frozen=True)
class _Side:
    """A stream under its name in the query; its window in microseconds or in tuples."""

    number: int
    stream: str
    name: str
    rows: bool
    size: int


def is_join(text: str) -> bool:
    return re.search(r"\bJOIN\b", text, re.IGNORECASE) is not None


def rewrite_join(text: str, hint: bool = False) -> str:
    """The DuckDB SQL of `SELECT ... FROM l [...] JOIN r [...] ON ...`, in the output's order.

    `hint` adds what follows from two time windows, in a form for which DuckDB has a fast join.
    """
    windows = _WINDOW.findall(text)
    assert len(windows) == 2, text
    tree = sqlglot.parse_one(_WINDOW.sub(" ", text).strip().rstrip(";"), read="spark")
    assert isinstance(tree, exp.Select)
    (joined,) = tree.args["joins"]
    left = _side(0, tree.args["from_"].this, windows[0])
    right = _side(1, joined.this, windows[1])
    where = tree.args.get("where")
    kept = [f"({_meets(left, right)} OR {_meets(right, left)})"]
    kept.append(f"({_sql(joined.args['on'])})")
    kinds = [joined.side.upper(), joined.kind.upper()]
    kind = next((k for k in reversed(kinds) if k not in ("", "OUTER", "INNER")), "")
    if kind:
        return _outer(tree, left, right, " AND ".join(kept), kind)
    kept += [f"({_sql(where.this)})"] if where else []
    if hint and not left.rows and not right.rows:
        l_ts, r_ts = f'{left.name}."~ts"', f'{right.name}."~ts"'
        kept += [f"{l_ts} >= {r_ts} - {left.size}", f"{l_ts} <= {r_ts} + {right.size}"]
    items = [f'{_sql(i.unalias())} AS "{i.alias_or_name}"' for i in tree.expressions]
    later, earlier = zip(*(_of_pair(left, right, c) for c in _PLACE), strict=True)
    return f"""
        WITH {_numbered(left, right)}, {_numbered(right, left)}
        SELECT make_timestamp(greatest({left.name}."~ts", {right.name}."~ts")) AS ts,
               {", ".join(items)}
        FROM "~0" AS {left.name} JOIN "~1" AS {right.name} ON {" AND ".join(kept)}
        ORDER BY {", ".join([*later, *earlier])}"""


def _outer(tree: exp.Select, left: _Side, right: _Side, on: str, kind: str) -> str:
    """The same for an outer, semi or anti join: rows with no partner are at their own time, and in
    the order of the instants at which none could come any more.
    """
    l_ts, r_ts = f'{left.name}."~ts"', f'{right.name}."~ts"'
    alone = f"({l_ts} IS NULL OR {r_ts} IS NULL)"
    later, earlier = zip(*(_of_pair(left, right, c) for c in _PLACE), strict=True)
    own = [f'coalesce({left.name}."{c}", {right.name}."{c}")' for c in _PLACE]
    at = f"CASE WHEN {r_ts} IS NULL THEN {l_ts} + {left.size} WHEN {l_ts} IS NULL "
    at += f"THEN {r_ts} + {right.size} ELSE greatest({l_ts}, {r_ts}) END"
    order = [at, alone, *(f"CASE WHEN NOT {alone} THEN {c} END" for c in later)]
    order += [f"CASE WHEN {alone} THEN {o} ELSE {c} END" for o, c in zip(own, earlier, strict=True)]
    where = tree.args.get("where")
    kept = [f"({_sql(where.this)})"] if where else []
    kept += [f"{r_ts} IS NULL"] if kind == "ANTI" else []
    mine = ", ".join(f'{left.name}."{c}"' for c in _PLACE)
    first = f"row_number() OVER (PARTITION BY {mine} ORDER BY {', '.join(order)}) = 1"
    shown = l_ts if kind in ("SEMI", "ANTI") else f"greatest({l_ts}, {r_ts})"
    items = [f'{_sql(i.unalias())} AS "{i.alias_or_name}"' for i in tree.expressions]
    how = {"ANTI": "LEFT", "SEMI": "INNER"}.get(kind, kind)
    return f"""
        WITH {_numbered(left, right)}, {_numbered(right, left)}
        SELECT make_timestamp({shown}) AS ts, {", ".join(items)}
        FROM "~0" AS {left.name} {how} JOIN "~1" AS {right.name} ON {on}
        {f"WHERE {' AND '.join(kept)}" if kept else ""}
        {f"QUALIFY {first}" if kind == "SEMI" else ""}
        ORDER BY {", ".join(order)}"""


def _side(number: int, tree: exp.Expression, window: tuple[str, str]) -> _Side:
    rows = window[0].upper() == "ROWS"
    size = int(window[1]) if rows else duration_us(window[1])
    return _Side(number, tree.name, tree.alias_or_name, rows, size)


def _numbered(side: _Side, other: _Side) -> str:
    """The tuples of a side; for windows over tuples numbered, with how many others came before."""
    extra = ""
    if side.rows:
        extra += ', row_number() OVER (ORDER BY "~ts", "~source", "~seq") AS "~rank"'
    if other.rows:
        before = f'o."~ts" {"<=" if other.number < side.number else "<"} s."~ts"'
        extra += f', (SELECT count(*) FROM "{other.stream}" AS o WHERE {before}) AS "~before"'
    return f'"~{side.number}" AS (SELECT *, {side.number} AS "~side"{extra} FROM "{side.stream}" s)'


def _meets(earlier: _Side, later: _Side) -> str:
    """That one side's tuple is before the other's, and in its side's window when that arrives."""
    first, second = earlier.name, later.name
    before = f'{first}."~ts" {"<=" if earlier.number < later.number else "<"} {second}."~ts"'
    if earlier.rows:
        return f'({before} AND {first}."~rank" > {second}."~before" - {earlier.size})'
    return f'({before} AND {second}."~ts" - {first}."~ts" <= {earlier.size})'


def _of_pair(left: _Side, right: _Side, column: str) -> tuple[str, str]:
    """A hidden column of the later and of the earlier tuple of a pair."""
    first, second = f'{left.name}."{column}"', f'{right.name}."{column}"'
    case = f'CASE WHEN {left.name}."~ts" <= {right.name}."~ts" THEN {{}} ELSE {{}} END'
    return case.format(second, first), case.format(first, second)


def _sql(node: exp.Expression) -> str:
    return node.transform(_to_duckdb).sql("duckdb")


def _to_duckdb(node: exp.Expression) -> exp.Expression:
    """What DuckDB calls otherwise."""
    if isinstance(node, exp.UnixMicros):
        return exp.Anonymous(this="epoch_us", expressions=[node.this.transform(_to_duckdb)])
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.TIMESTAMPTZ:
        return exp.DataType.build("TIMESTAMP", dialect="duckdb")
    return node
