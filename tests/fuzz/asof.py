"""As-of joins drawn by chance, over streams and over queries; `python -m tests.fuzz.asof 17`.

DuckDB leaves open which of several right rows of one time it takes, so it is given the last of them
only. How far the nearest row may be off is asked after it was found: no other could be nearer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.fuzz import compare
from tests.fuzz.__main__ import main
from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.query import (
    Query,
    Relation,
    Script,
    _items,
    _one,
    _select,
    _stateless,
    _time_window,
    _tuple_window,
    _where,
)
from tests.fuzz.row import BOOLEAN, DATE, INTEGER, LONG, STRING, Chance, Stream

WRITTEN = {
    0: {">=": ">=", ">": ">", "<=": "<=", "<": "<"},
    1: {">=": ">", "<": "<="},
    -1: {">": ">=", "<=": "<"},
}
"""By how many microseconds the left time that is written is later than the event time, less the
right one: the comparisons of event times that can be asked for, and how."""


def draw_asof(chance: Chance, streams: Sequence[Stream]) -> Script:
    """An as-of join, below it and above it other operators at times."""
    script = Script()
    relations = [Relation(s.name, dict(s.kinds)) for s in streams]
    if chance.random() < 0.5:
        relations.append(script.add(_one(chance, [_stateless, _time_window])(chance, relations)))
    query, back = _as_of(chance, relations)
    script.output = query
    if back and chance.random() < 0.4:
        above = [_stateless, _time_window, _tuple_window]
        script.output = _one(chance, above)(chance, [script.add(query)])
    return script


def _as_of(chance: Chance, relations: Sequence[Relation]) -> tuple[Query, bool]:
    left, right = (_one(chance, relations) for _ in range(2))
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
    place = 'l."~seq"'
    if not back:
        decided = f'coalesce(r."~ts", l."~ts" + {tolerance})'
        place = f'{decided}, r."~ts" IS NULL, l."~seq"'
    rows = (
        f'SELECT {duck}, l."~ts" AS "~ts", row_number() OVER (ORDER BY {place}) AS "~seq" '
        f"FROM {left.name} AS l {'LEFT' if keep else 'INNER'} JOIN ({met}) AS m "
        f'ON m."~l" = l."~seq" LEFT JOIN {right.name} AS r ON r."~seq" = m."~r"{where[1]}'
    )
    return Query(text, rows, {n: t.kind for n, t in zip(names, texts, strict=True)}), back


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


def check_seed(seed: int) -> None:
    compare.check(seed, draw_asof, family=29)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], check_seed))
