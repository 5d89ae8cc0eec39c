"""Joins of streams with windows of time or of tuples, drawn by chance for both engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fuzz.expression import Expr, Grammar, compared
from tests.fuzz.query import Query, Relation, _items, _newest, _one, _select, _where
from tests.fuzz.row import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    Chance,
)


@dataclass(frozen=True)
class Side:
    """One side of a join: a relation under an alias, with a window of time or of tuples."""

    relation: Relation
    alias: str
    number: int
    rows: int | None
    range_us: int

    @property
    def window(self) -> str:
        return f"RANGE {self.range_us} MICROSECONDS" if self.rows is None else f"ROWS {self.rows}"

    def numbered(self, other: Side) -> str:
        """The tuples, with how many of the other side came before each of them."""
        before = f'o."~ts" {"<=" if other.number < self.number else "<"} s."~ts"'
        return (
            f'(SELECT *, row_number() OVER (ORDER BY "~seq") AS "~rank", '
            f'(SELECT count(*) FROM {other.relation.name} o WHERE {before}) AS "~before" '
            f"FROM {self.relation.name} s) AS {self.alias}"
        )

    def met_by(self, later: Side) -> str:
        """That a tuple of this side is in its window when one of the other side comes."""
        mine, other = f'{self.alias}."~ts"', f'{later.alias}."~ts"'
        before = f"{mine} {'<=' if self.number < later.number else '<'} {other}"
        if self.rows is None:
            return f"({before} AND {other} - {mine} <= {self.range_us})"
        return f'({before} AND {self.alias}."~rank" > {later.alias}."~before" - {self.rows})'


def join(chance: Chance, relations: Sequence[Relation]) -> Query:
    left, right = (
        Side(
            _newest(chance, relations),
            alias,
            number,
            int(chance.integers(1, 9)) if chance.random() < 0.3 else None,
            int(_one(chance, [0, 250_000, 1_000_000, 5_000_000])),
        )
        for number, alias in enumerate("lr")
    )
    ours, theirs = left.relation.expressions("l"), right.relation.expressions("r")
    on = predicate(chance, ours, theirs)
    where = _where(chance, [*ours, *theirs], 0.2)
    texts = _select(chance, [*ours, *theirs])
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    first = 'l."~ts" <= r."~ts"'
    later = [f'CASE WHEN {first} THEN r."{c}" ELSE l."{c}" END' for c in ("~ts", "~seq")]
    earlier = [f'CASE WHEN {first} THEN l."{c}" ELSE r."{c}" END' for c in ("~ts", "~seq")]
    side = f"CASE WHEN {first} THEN 1 ELSE 0 END"
    place = ", ".join([later[0], side, later[1], *earlier])
    pairs = (
        f'SELECT {duck}, greatest(l."~ts", r."~ts") AS "~ts", '
        f'row_number() OVER (ORDER BY {place}) AS "~seq" '
        f"FROM {left.numbered(right)} JOIN {right.numbered(left)} "
        f"ON ({left.met_by(right)} OR {right.met_by(left)}) AND ({on.duck}){where[1]}"
    )
    return Query(
        f"SELECT {spark} FROM {left.relation.name} AS l [{left.window}] "
        f"JOIN {right.relation.name} AS r [{right.window}] ON {on.spark}{where[0]}",
        pairs,
        {n: t.kind for n, t in zip(names, texts, strict=True)},
    )


def predicate(chance: Chance, ours: Sequence[Expr], theirs: Sequence[Expr]) -> Expr:
    """Comparisons of the sides, joined with AND, OR and NOT, beside conditions on one of them."""
    parts = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        kind = _one(chance, (LONG, INTEGER, DOUBLE, STRING, DECIMAL, DATE, TIMESTAMP, BOOLEAN))
        left, right = Grammar(chance, ours).of(kind), Grammar(chance, theirs).of(kind)
        if kind in (LONG, DOUBLE) and chance.random() < 0.4:
            width = int(chance.integers(0, 4))
            parts.append(_band(left, right, width))
            continue
        parts.append(compared(chance, left, right, Grammar(chance, [*ours, *theirs]).of(kind)))
    found = parts[0]
    for part in parts[1:]:
        way = _one(chance, ["AND", "AND", "OR"])
        found = Expr(
            f"({found.spark} {way} {part.spark})", f"({found.duck} {way} {part.duck})", BOOLEAN
        )
    if chance.random() < 0.1:
        found = Expr(f"(NOT {found.spark})", f"(NOT {found.duck})", BOOLEAN)
    return found


def _band(left: Expr, right: Expr, width: int) -> Expr:
    text = f"(abs({{}} - {{}}) <= {width})"
    return Expr(text.format(left.spark, right.spark), text.format(left.duck, right.duck), BOOLEAN)
