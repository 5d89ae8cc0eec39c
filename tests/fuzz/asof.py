"""As-of joins drawn by chance, over streams and over queries.

DuckDB leaves open which of several right rows of one time it takes, so it is given the last of them
only. How far the nearest row may be off is asked after it was found: no other could be nearer.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.query import Query, Relation, _items, _newest, _one, _select, _where
from tests.fuzz.row import BOOLEAN, DATE, INTEGER, LONG, STRING, Chance

WRITTEN = {
    0: {">=": ">=", ">": ">", "<=": "<=", "<": "<"},
    1: {">=": ">", "<": "<="},
    -1: {">": ">=", "<=": "<"},
}
"""By how many microseconds the left time that is written is later than the event time, less the
right one: the comparisons of event times that can be asked for, and how."""


def as_of(chance: Chance, relations: Sequence[Relation]) -> Query:
    """Both sides are of rows that are decided at their own time; others are refused."""
    allowed = [relation for relation in relations if not relation.own]
    left, right = (_newest(chance, allowed) for _ in range(2))
    ahead = int(left.windowed) - int(right.windowed)
    comparison = _one(chance, list(WRITTEN[ahead]))
    back = comparison in (">=", ">")
    far = int(_one(chance, [0, 250_000, 1_000_000, 5_000_000]))
    tolerance = None if back and chance.random() < 0.4 else far
    keep = bool(chance.random() < 0.5)
    ours, theirs = left.expressions("l"), right.expressions("r")
    kinds = [
        _one(chance, (LONG, INTEGER, STRING, BOOLEAN, DATE))
        for _ in range(chance.choice([0, 1, 1, 2]))
    ]
    keys = [(Grammar(chance, ours).of(kind), Grammar(chance, theirs).of(kind)) for kind in kinds]
    keys = [(a, b) for a, b in keys if "l." in a.spark and "r." in b.spark]
    where = _where(chance, [*ours, *theirs], 0.3)
    texts = _select(chance, [*ours, *theirs])
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    times = ["window_end" if r.windowed else "ts" for r in (left, right)]
    asked = f"l.{times[0]} {WRITTEN[ahead][comparison]} r.{times[1]}"
    on = " AND ".join(f"{a.spark} = {b.spark}" for a, b in keys)
    window = "" if tolerance is None else f" [RANGE {tolerance} MICROSECONDS]"
    text = (
        f"SELECT {spark} FROM {left.name} AS l ASOF {'LEFT ' if keep else ''}JOIN {right.name} AS r"
        f"{window} MATCH_CONDITION ({asked}){f' ON {on}' if on else ''}{where[0]}"
    )
    met = _matches(left, right, keys, comparison, tolerance)
    decided, place = 'l."~ts"', 'l."~seq"'
    if not back:
        decided = f'coalesce(r."~ts", l."~ts" + {tolerance})'
        place = f'{decided}, r."~ts" IS NULL, l."~seq"'
    rows = (
        f'SELECT {duck}, {decided} AS "~ts", l."~ts" AS "~own", '
        f'row_number() OVER (ORDER BY {place}) AS "~seq" '
        f"FROM {left.name} AS l {'LEFT' if keep else 'INNER'} JOIN ({met}) AS m "
        f'ON m."~l" = l."~seq" LEFT JOIN {right.name} AS r ON r."~seq" = m."~r"{where[1]}'
    )
    kinds = {n: t.kind for n, t in zip(names, texts, strict=True)}
    return Query(text, rows, kinds, own=not back)


def _matches(
    left: Relation,
    right: Relation,
    keys: Sequence[tuple[Expr, Expr]],
    comparison: str,
    tolerance: int | None,
) -> str:
    """Each left row's right row, by DuckDB's own as-of join."""
    by = ", ".join([*(b.duck for _, b in keys), 'r."~ts"'])
    last = (
        f'SELECT r.*, row_number() OVER (PARTITION BY {by} ORDER BY r."~seq" DESC) AS "~nth" '
        f"FROM {right.name} AS r"
    )
    on = " AND ".join([*(f"{a.duck} = {b.duck}" for a, b in keys), f'l."~ts" {comparison} r."~ts"'])
    near = "" if tolerance is None else f' WHERE abs(l."~ts" - r."~ts") <= {tolerance}'
    return (
        f'SELECT l."~seq" AS "~l", r."~seq" AS "~r" FROM {left.name} AS l ASOF JOIN '
        f'(SELECT * FROM ({last}) WHERE "~nth" = 1) AS r ON {on}{near}'
    )
