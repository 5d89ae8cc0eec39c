"""LEAD drawn by chance, over streams and over queries; `python -m tests.fuzz.lead 17`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.fuzz import compare
from tests.fuzz.__main__ import main
from tests.fuzz.expression import Expr
from tests.fuzz.keyed import _over, draw_keys, over
from tests.fuzz.over import drawn_value, offset_call
from tests.fuzz.query import (
    Query,
    Relation,
    Script,
    _items,
    _newest,
    _one,
    _select,
    _stateless,
    _time_window,
    _where,
)
from tests.fuzz.row import LONG, Chance, Stream

LAST = "9223372036854775807"


def draw_lead(chance: Chance, streams: Sequence[Stream]) -> Script:
    """Functions OVER, LEAD among them; below it and above it other operators at times."""
    script = Script()
    relations = [Relation(s.name, dict(s.kinds)) for s in streams]
    if chance.random() < 0.5:
        below = [_stateless, _time_window, over]
        relations.append(script.add(_one(chance, below)(chance, relations)))
    script.output = _lead(chance, _newest(chance, relations), [s.name for s in streams])
    return script


def _lead(chance: Chance, relation: Relation, raw: Sequence[str]) -> Query:
    columns = relation.expressions()
    where = _where(chance, columns)
    time = "window_end" if relation.windowed else "ts"
    keys = draw_keys(chance, columns, (0, 1, 1, 2))
    by = [
        f"(PARTITION BY {', '.join(texts)} ORDER BY " if keys else "(ORDER BY "
        for texts in ([k.spark for k in keys], [k.duck for k in keys])
    ]
    overs = f"OVER {by[0]}{time})", f'OVER {by[1]}"~seq")'
    calls = [_call(chance, columns, overs) for _ in range(chance.integers(1, 3))]
    texts = [call for call, _ in calls]
    texts += _select(chance, columns)[:1]
    texts += [_over(chance, columns, time)] if chance.random() < 0.5 else []
    rank = _one(chance, ["RANK()", "DENSE_RANK()"])
    texts.append(Expr(f"{rank} {overs[0]}", f'{rank} OVER {by[1]}"~ts")', LONG))
    texts = _one(chance, [texts, texts[::-1]])
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    end = LAST
    if relation.name in raw:
        end = f'(SELECT max("~ts") + 1 FROM {relation.name})'
    instants = ", ".join(f"coalesce({instant}, {end})" for _, instant in calls)
    at = f"greatest({instants})"
    rows = f'SELECT {duck}, "~ts", "~seq" AS "~q", {at} AS "~at" FROM {relation.name}{where[1]}'
    if relation.name in raw and chance.random() < 0.3:
        return _counted(f"SELECT {spark} FROM {relation.name}{where[0]}", rows)
    return Query(
        f"SELECT {spark} FROM {relation.name}{where[0]}",
        f'SELECT *, row_number() OVER (ORDER BY "~at", "~q") AS "~seq" FROM ({rows})',
        {n: t.kind for n, t in zip(names, texts, strict=True)},
    )


def _call(chance: Chance, columns: Sequence[Expr], overs: tuple[str, str]) -> tuple[Expr, str]:
    """A call, and for DuckDB the instant of the tuple that it shows."""
    offset, (value, default) = int(chance.integers(1, 4)), drawn_value(chance, columns)
    skips = bool(chance.random() < 0.4)
    ours, theirs = offset_call(chance, "LEAD", value, default, offset, skips)
    shown = f'LEAD("~ts", {offset}) {overs[1]}'
    if skips:
        known = f'CASE WHEN ({value.duck}) IS NOT NULL THEN "~ts" END'
        shown = f"LEAD({known}, {offset} IGNORE NULLS) {overs[1]}"
    return Expr(f"{ours} {overs[0]}", f"{theirs} {overs[1]}", value.kind), shown


def _counted(ours: str, rows: str) -> Query:
    """How many tuples are decided in each second: they count at those instants."""
    second = '"~at" - (("~at" % 1000000) + 1000000) % 1000000'
    counted = f'SELECT {second} AS "~from", COUNT(*) AS n FROM ({rows})'
    return Query(
        f"SELECT COUNT(*) AS n FROM ({ours}) [RANGE 1 SECOND]",
        f'SELECT n, "~from", "~from" + 1000000 AS "~to", "~from" + 999999 AS "~ts", '
        f'row_number() OVER (ORDER BY "~from") AS "~seq" FROM ({counted} GROUP BY 1)',
        {"n": LONG},
        windowed=True,
    )


def check_seed(seed: int) -> None:
    compare.check(seed, draw_lead, family=31)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], check_seed))
