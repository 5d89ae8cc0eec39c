"""EXPLODE and UNNEST drawn by chance, of lists in columns and of pieces of texts."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.gathered import ELEMENTS, LISTS
from tests.fuzz.query import Query, Relation, _items, _newest, _one, _select, _where
from tests.fuzz.row import INTEGER, STRING, Chance, Kind

WRITTEN = {
    "SELECT {items}, EXPLODE({list}) AS {v} FROM {source}{where}": (False, None),
    "SELECT {items}, EXPLODE_OUTER({list}) AS {v} FROM {source}{where}": (True, None),
    "SELECT {items}, POSEXPLODE({list}) AS ({p}, {v}) FROM {source}{where}": (False, 0),
    "SELECT {items}, {v} FROM {source} CROSS JOIN UNNEST({list}) AS u({v}){where}": (False, None),
    "SELECT {items}, {p}, {v} FROM {source} CROSS JOIN UNNEST({list}) WITH ORDINALITY "
    "AS u({v}, {p}){where}": (False, 1),
    "SELECT {items}, {v} FROM {source} LATERAL VIEW EXPLODE({list}) u AS {v}{where}": (False, None),
    "SELECT {items}, {v} FROM {source} LATERAL VIEW OUTER EXPLODE({list}) u AS {v}{where}": (
        True,
        None,
    ),
}
"""By how it is written: whether tuples without values stay, and from where places are counted."""


def explode(chance: Chance, relations: Sequence[Relation]) -> Query:
    """A row for each value, in the order of the list."""
    relation = _newest(chance, relations)
    columns = relation.expressions()
    listed, kind = _list(chance, columns)
    written = _one(chance, list(WRITTEN))
    outer, first = WRITTEN[written]
    texts, where = _select(chance, columns), _where(chance, columns)
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    value, position = f"v_{relation.name}", f"p_{relation.name}"
    values = listed.duck
    if outer:
        values = f"CASE WHEN len({values}) > 0 THEN {values} ELSE [NULL] END"
    rows = (
        f'SELECT {duck}, unnest({values}) AS {value}, {relation.time}, "~seq" AS "~q", '
        f'generate_subscripts({values}, 1) AS "~n" FROM {relation.name}{where[1]}'
    )
    place = f'("~n" - {1 - (first or 0)})::INTEGER AS {position}, ' if first is not None else ""
    return Query(
        written.format(
            items=spark,
            list=listed.spark,
            source=relation.name,
            where=where[0],
            v=value,
            p=position,
        ),
        f'SELECT {", ".join(names)}, {place}{value}, "~ts", "~own", '
        f'row_number() OVER (ORDER BY "~q", "~n") AS "~seq" FROM ({rows})',
        {n: t.kind for n, t in zip(names, texts, strict=True)}
        | ({} if first is None else {position: INTEGER})
        | {value: kind},
        own=relation.own,
    )


def _list(chance: Chance, columns: Sequence[Expr]) -> tuple[Expr, Kind]:
    """A column that is a list, or the pieces of a text, and the kind of its values."""
    elements = {f"list of {kind.name}": kind for kind in ELEMENTS}
    found = [c for c in columns if c.kind.name in elements]
    if found and chance.random() < 0.8:
        column = _one(chance, found)
        return column, elements[column.kind.name]
    text, by = Grammar(chance, columns).of(STRING), str(chance.choice(["a", " ", "b"]))
    pieces = Expr(
        f"SPLIT({text.spark}, '{by}')", f"string_split({text.duck}, '{by}')", LISTS[STRING.name]
    )
    return pieces, STRING
