"""Queries over the tuples of keys, DISTINCT ON ... KEEP and OVER, drawn for both engines."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.gathered import LISTS
from tests.fuzz.query import (
    Query,
    Relation,
    _items,
    _newest,
    _one,
    _select,
    _stateless,
    _where,
)
from tests.fuzz.row import INTEGER, LONG, REAL, Chance, Kind

WITHIN_US = (250_000, 1_000_000, 2_000_000, 30_000_000)


def draw_keys(chance: Chance, columns: Sequence[Expr], counts: Sequence[int]) -> list[Expr]:
    """Expressions that have a column, each once."""
    grammar = Grammar(chance, columns)
    keys = [grammar.any() for _ in range(chance.choice(counts))]
    return list({k.spark: k for k in keys if any(c.spark in k.spark for c in columns)}.values())


def plain_columns(columns: Sequence[Expr]) -> list[Expr]:
    """The columns that can be keys: a list cannot."""
    return [c for c in columns if c.kind not in LISTS.values()]


def dedup(chance: Chance, relations: Sequence[Relation]) -> Query:
    """From one first tuple of a key to the next, by recursion."""
    relation = _newest(chance, relations)
    columns = relation.expressions()
    keys = draw_keys(chance, columns, (1, 1, 2)) or plain_columns(columns)[:1]
    if not keys:
        return _stateless(chance, relations)
    where, duck_where = _where(chance, columns)
    texts = _select(chance, columns)
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    within_us = int(_one(chance, WITHIN_US))
    groups = ", ".join(k.duck for k in keys)
    base = (
        f'SELECT {duck}, {relation.time}, "~seq", dense_rank() OVER (ORDER BY {groups}) AS "~g" '
        f"FROM {relation.name}{duck_where}"
    )
    kept = (
        'SELECT "~g", min("~seq") AS "~q" FROM base GROUP BY "~g" UNION ALL '
        'SELECT b."~g", min(b."~seq") FROM kept k JOIN base x ON x."~seq" = k."~q" '
        f'JOIN base b ON b."~g" = x."~g" AND b."~ts" > x."~ts" + {within_us} GROUP BY b."~g"'
    )
    head = f"WITH RECURSIVE base AS ({base}), kept AS ({kept})"
    kinds = {n: t.kind for n, t in zip(names, texts, strict=True)}
    on = f"SELECT DISTINCT ON ({', '.join(k.spark for k in keys)}) {spark} FROM {relation.name}"
    if chance.random() < 0.4:
        return _last(f"{on}{where}", head, within_us, kinds)
    shown = ", ".join([*names, '"~ts"', '"~own"', '"~seq"'])
    return Query(
        f"{on}{where} KEEP FIRST WITHIN {within_us} MICROSECONDS",
        f'{head} SELECT {shown} FROM base WHERE "~seq" IN (SELECT "~q" FROM kept)',
        kinds,
        own=relation.own,
    )


def _last(spark: str, head: str, within_us: int, kinds: dict[str, Kind]) -> Query:
    """The last tuples within the time of the first, which count when that has passed."""
    chosen = (
        f'SELECT x."~ts" + {within_us} AS "~at", max(b."~seq") AS "~q" FROM kept k '
        'JOIN base x ON x."~seq" = k."~q" JOIN base b ON b."~g" = x."~g" AND b."~seq" >= x."~seq" '
        f'AND b."~ts" <= x."~ts" + {within_us} GROUP BY k."~q", 1'
    )
    place = 'row_number() OVER (ORDER BY c."~at", c."~q") AS "~seq"'
    shown = ", ".join([*(f"b.{n}" for n in kinds), 'c."~at" AS "~ts"', 'b."~own"', place])
    return Query(
        f"{spark} KEEP LAST WITHIN {within_us} MICROSECONDS",
        f'{head} SELECT {shown} FROM ({chosen}) c JOIN base b ON b."~seq" = c."~q"',
        kinds,
        own=True,
    )


def over(chance: Chance, relations: Sequence[Relation]) -> Query:
    """Aggregates over frames and LAG; rows of one instant are in the total order for both."""
    relation = _newest(chance, relations)
    columns = relation.expressions()
    where = _where(chance, columns)
    time = "window_end" if relation.windowed else "ts"
    texts = [_over(chance, columns, time) for _ in range(chance.integers(1, 4))]
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    qualify, plain = "", plain_columns(columns)
    if plain and chance.random() < 0.2:
        part = f"PARTITION BY {plain[0].spark} ORDER BY "
        qualify = f" QUALIFY ROW_NUMBER() OVER ({part}{{}}) <= {chance.integers(1, 4)}"
    return Query(
        f"SELECT {spark} FROM {relation.name}{where[0]}{qualify.format(time)}",
        f'SELECT {duck}, {relation.time}, "~seq" FROM {relation.name}{where[1]}'
        + qualify.format('"~seq"'),
        {n: t.kind for n, t in zip(names, texts, strict=True)},
        own=relation.own,
    )


def _over(chance: Chance, columns: Sequence[Expr], time: str) -> Expr:
    grammar = Grammar(chance, columns)
    keys = draw_keys(chance, columns, (0, 1, 1, 2))
    parts = [
        f"PARTITION BY {', '.join(texts)} " if keys else ""
        for texts in ([k.spark for k in keys], [k.duck for k in keys])
    ]
    if chance.random() < 0.3:
        value, offset = grammar.any(exact=False), int(chance.integers(0, 4))
        ours = f"LAG({value.spark}, {offset}) OVER ({parts[0]}ORDER BY {time})"
        return Expr(
            ours, f'LAG({value.duck}, {offset}) OVER ({parts[1]}ORDER BY "~seq")', value.kind
        )
    rows = int(_one(chance, [0, 1, 2, 5]))
    span = int(_one(chance, [0, 250_000, 1_000_000, 4_000_000]))
    frames = [
        ("", "RANGE UNBOUNDED PRECEDING", '"~ts"'),
        (" ROWS UNBOUNDED PRECEDING", "ROWS UNBOUNDED PRECEDING", '"~seq"'),
        (f" ROWS {rows} PRECEDING", f"ROWS {rows} PRECEDING", '"~seq"'),
        (
            f" RANGE {span} MICROSECONDS PRECEDING",
            f"RANGE BETWEEN {span} PRECEDING AND CURRENT ROW",
            '"~ts"',
        ),
    ]
    ours, theirs, by = _one(chance, frames)
    call = _call(chance, grammar, tied=by == '"~ts"')
    return Expr(
        f"{call.spark} OVER ({parts[0]}ORDER BY {time}{ours})",
        call.duck.replace("{over}", f"OVER ({parts[1]}ORDER BY {by} {theirs})"),
        call.kind,
    )


def _call(chance: Chance, grammar: Grammar, tied: bool) -> Expr:
    """An aggregate; for DuckDB with a place for its frame, in which tuples may be tied."""
    number = grammar.of(_one(chance, (LONG, INTEGER)))
    first = "MAX" if tied else "FIRST_VALUE"
    calls = [Expr("COUNT(*)", "COUNT(*) {over}", LONG)]
    for name, kind in (("COUNT", LONG), ("SUM", LONG), ("AVG", REAL), ("MIN", None), (first, None)):
        duck = f"{name}({number.duck}) {{over}}"
        duck = f"({duck})::BIGINT" if name == "SUM" else duck
        calls.append(Expr(f"{name}({number.spark})", duck, kind or number.kind))
    return _one(chance, calls)


KEYED = (dedup, over)
