"""Queries over the tuples of keys: DISTINCT ON ... KEEP, drawn by chance for both engines."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.query import Query, Relation, _items, _newest, _one, _select, _where
from tests.fuzz.row import Chance

WITHIN_US = (250_000, 1_000_000, 2_000_000, 30_000_000)


def draw_keys(chance: Chance, columns: Sequence[Expr], counts: Sequence[int]) -> list[Expr]:
    """Expressions that have a column, each once."""
    grammar = Grammar(chance, columns)
    keys = [grammar.any() for _ in range(chance.choice(counts))]
    return list({k.spark: k for k in keys if any(c.spark in k.spark for c in columns)}.values())


def dedup(chance: Chance, relations: Sequence[Relation]) -> Query:
    """KEEP FIRST: from one kept tuple of a key to the next, by recursion."""
    relation = _newest(chance, relations)
    columns = relation.expressions()
    keys = draw_keys(chance, columns, (1, 1, 2)) or columns[:1]
    where, duck_where = _where(chance, columns)
    texts = _select(chance, columns)
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    within_us = int(_one(chance, WITHIN_US))
    groups = ", ".join(k.duck for k in keys)
    base = (
        f'SELECT {duck}, "~ts", "~seq", dense_rank() OVER (ORDER BY {groups}) AS "~g" '
        f"FROM {relation.name}{duck_where}"
    )
    kept = (
        'SELECT "~g", min("~seq") AS "~q" FROM base GROUP BY "~g" UNION ALL '
        'SELECT b."~g", min(b."~seq") FROM kept k JOIN base x ON x."~seq" = k."~q" '
        f'JOIN base b ON b."~g" = x."~g" AND b."~ts" > x."~ts" + {within_us} GROUP BY b."~g"'
    )
    shown = ", ".join([*names, '"~ts"', '"~seq"'])
    return Query(
        f"SELECT DISTINCT ON ({', '.join(k.spark for k in keys)}) {spark} FROM {relation.name}"
        f"{where} KEEP FIRST WITHIN {within_us} MICROSECONDS",
        f"WITH RECURSIVE base AS ({base}), kept AS ({kept}) "
        f'SELECT {shown} FROM base WHERE "~seq" IN (SELECT "~q" FROM kept)',
        {n: t.kind for n, t in zip(names, texts, strict=True)},
    )


KEYED = (dedup,)
