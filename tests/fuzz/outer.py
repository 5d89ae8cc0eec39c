"""Outer, semi and anti joins, drawn by chance; the pairs of the inner join tell who has none."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.join import Side, predicate
from tests.fuzz.query import Query, Relation, _items, _newest, _one, _select, _where
from tests.fuzz.row import Chance

KEPT = {
    "LEFT JOIN": "l",
    "RIGHT OUTER JOIN": "r",
    "FULL JOIN": "lr",
    "SEMI JOIN": "",
    "ANTI JOIN": "l",
}
"""Of which sides tuples without a partner are put out."""


def outer_join(chance: Chance, relations: Sequence[Relation]) -> Query:
    """Rows without a partner are of the instant at which their window has passed."""
    sides = [
        Side(_newest(chance, relations), alias, number, None, int(_one(chance, RANGES_US)))
        for number, alias in enumerate("lr")
    ]
    how = _one(chance, list(KEPT))
    filters = how in ("SEMI JOIN", "ANTI JOIN")
    ours, theirs = (side.relation.expressions(side.alias) for side in sides)
    on = predicate(chance, ours, theirs)
    seen = ours if filters else [*ours, *theirs]
    where, texts = _where(chance, seen, 0.2), _select(chance, seen)
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    left, right = sides
    source = f"FROM ({_rows(how, sides, on.duck)}) AS m"
    for side in sides:
        source += (
            f" LEFT JOIN {side.relation.name} AS {side.alias} "
            f'ON {side.alias}."~seq" = m."~{side.alias}"'
        )
    place = 'row_number() OVER (ORDER BY m."~at", m."~nth") AS "~seq"'
    return Query(
        f"SELECT {spark} FROM {left.relation.name} AS l [{left.window}] "
        f"{how} {right.relation.name} AS r [{right.window}] ON {on.spark}{where[0]}",
        f'SELECT {duck}, m."~at" AS "~ts", m."~own" AS "~own", {place} {source}{where[1]}',
        {n: t.kind for n, t in zip(names, texts, strict=True)},
        own=True,
    )


RANGES_US = (0, 250_000, 1_000_000, 5_000_000)


def _rows(how: str, sides: Sequence[Side], on: str) -> str:
    """Each row's instant, shown time, place at that instant, and the tuples it is made of."""
    left, right = sides
    first = 'l."~ts" <= r."~ts"'
    columns = [f'CASE WHEN {first} THEN {{}}."{c}" ELSE {{}}."{c}" END' for c in ("~ts", "~seq")]
    later, earlier = ([c.format(*pair) for c in columns] for pair in ("rl", "lr"))
    place = ", ".join([later[0], f"CASE WHEN {first} THEN 1 ELSE 0 END", later[1], *earlier])
    pairs = (
        f'SELECT greatest(l."~ts", r."~ts") AS "~at", greatest(l."~ts", r."~ts") AS "~own", '
        f'[0, row_number() OVER (ORDER BY {place})] AS "~nth", l."~seq" AS "~l", r."~seq" AS "~r" '
        f"FROM {left.relation.name} AS l JOIN {right.relation.name} AS r "
        f"ON ({left.met_by(right)} OR {right.met_by(left)}) AND ({on})"
    )
    given = []
    if how == "SEMI JOIN":
        given.append(
            f'SELECT min("~at") AS "~at", any_value(l."~ts") AS "~own", min("~nth") AS "~nth", '
            f'"~l", NULL AS "~r" FROM ({pairs}) p JOIN {left.relation.name} AS l '
            'ON l."~seq" = p."~l" GROUP BY p."~l"'
        )
    elif how != "ANTI JOIN":
        given.append(pairs)
    for side in sides:
        if side.alias in KEPT[how]:
            cells = ['"~seq"' if alias == side.alias else "NULL" for alias in "lr"]
            given.append(
                f'SELECT "~ts" + {side.range_us} AS "~at", "~ts" AS "~own", '
                f'[1, "~ts", {side.number}, "~seq"] AS "~nth", '
                f'{cells[0]} AS "~l", {cells[1]} AS "~r" FROM {side.relation.name} '
                f'WHERE "~seq" NOT IN (SELECT "~{side.alias}" FROM ({pairs}))'
            )
    return " UNION ALL ".join(f"({query})" for query in given)
