"""LEAD drawn by chance, over streams and over queries."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.keyed import _over, draw_keys
from tests.fuzz.query import Query, Relation, _items, _newest, _one, _select, _where
from tests.fuzz.row import LONG, Chance

LAST = "253402300799999999"
"""The last event time there is, at which tuples are decided that nothing follows."""


def lead(chance: Chance, relations: Sequence[Relation]) -> Query:
    relation = _newest(chance, relations)
    columns = relation.expressions()
    where = _where(chance, columns)
    time = "window_end" if relation.windowed else "ts"
    keys = draw_keys(chance, columns, (0, 1, 1, 2))
    by = [
        f"(PARTITION BY {', '.join(texts)} ORDER BY " if keys else "(ORDER BY "
        for texts in ([k.spark for k in keys], [k.duck for k in keys])
    ]
    overs = f"OVER {by[0]}{time})", f'OVER {by[1]}"~seq")'
    offsets = [int(chance.integers(1, 4)) for _ in range(chance.integers(1, 3))]
    texts = [_call(chance, columns, offset, overs) for offset in offsets]
    texts += _select(chance, columns)[:1]
    texts += [_over(chance, columns, time)] if chance.random() < 0.5 else []
    rank = _one(chance, ["RANK()", "DENSE_RANK()"])
    texts.append(Expr(f"{rank} {overs[0]}", f'{rank} OVER {by[1]}"~ts")', LONG))
    ahead = max(offsets)
    texts = _one(chance, [texts, texts[::-1]])
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    at = f'coalesce(LEAD("~ts", {ahead}) {overs[1]}, {LAST})'
    hidden = f'{relation.shown} AS "~own", "~seq" AS "~q", {at} AS "~at"'
    rows = f"SELECT {duck}, {hidden} FROM {relation.name}{where[1]}"
    if chance.random() < 0.3:
        return _counted(f"FROM {relation.name}{where[0]}", f"LEAD(1, {ahead}) {overs[0]}", rows)
    place = 'row_number() OVER (ORDER BY "~at", "~q") AS "~seq"'
    return Query(
        f"SELECT {spark} FROM {relation.name}{where[0]}",
        f'SELECT {", ".join(names)}, "~at" AS "~ts", "~own", {place} FROM ({rows})',
        {n: t.kind for n, t in zip(names, texts, strict=True)},
        own=True,
    )


def _call(chance: Chance, columns: Sequence[Expr], offset: int, overs: tuple[str, str]) -> Expr:
    grammar = Grammar(chance, columns)
    value = grammar.any(exact=False)
    default = grammar.of(value.kind) if chance.random() < 0.3 else None
    more = ("", "") if default is None else (f", {default.spark}", f", {default.duck}")
    return Expr(
        f"LEAD({value.spark}, {offset}{more[0]}) {overs[0]}",
        f"LEAD({value.duck}, {offset}{more[1]}) {overs[1]}",
        value.kind,
    )


def _counted(source: str, call: str, rows: str) -> Query:
    """How many tuples are decided in each second: they count at those instants."""
    second = '"~at" - (("~at" % 1000000) + 1000000) % 1000000'
    counted = f'SELECT {second} AS "~from", COUNT(*) AS n FROM ({rows}) WHERE "~at" < {LAST}'
    return Query(
        f"SELECT COUNT(*) AS n FROM (SELECT {call} AS one {source}) [RANGE 1 SECOND] "
        "WHERE one IS NOT NULL",
        f'SELECT n, "~from", "~from" + 1000000 AS "~to", "~from" + 999999 AS "~ts", '
        f'row_number() OVER (ORDER BY "~from") AS "~seq" FROM ({counted} GROUP BY 1)',
        {"n": LONG},
        windowed=True,
    )
