"""Expressions that mean the same in Spark's dialect and in DuckDB's, by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.fuzz.row import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGERS,
    LONG,
    STRING,
    TIMESTAMP,
    Chance,
    Kind,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Expr:
    """One expression in both dialects."""

    spark: str
    duck: str
    kind: Kind


COMPARED = (BOOLEAN, LONG, DOUBLE, STRING, DATE, TIMESTAMP, DECIMAL, INTEGER)

Columns = Sequence[Expr]
"""What expressions may be made of; the names are qualified where they must be."""


def both(text: str, kind: Kind, *parts: Expr) -> Expr:
    """The same text in both dialects, around parts."""
    return Expr(text.format(*(p.spark for p in parts)), text.format(*(p.duck for p in parts)), kind)


def literal(chance: Chance, kind: Kind) -> Expr:
    value = kind.draw(chance)
    if kind is STRING:
        spark, duck = (value.replace("'", quote) for quote in ("\\'", "''"))
        return Expr(f"'{spark}'", f"'{duck}'", STRING)
    if kind is BOOLEAN:
        return both("TRUE" if value else "FALSE", BOOLEAN)
    if kind in (DATE, TIMESTAMP):
        return both(f"{kind.duck} '{str(value).removesuffix('+00:00')}'", kind)
    if kind in (DOUBLE, FLOAT):
        value = value if abs(value) < 1e9 else 1.5
    return Expr(f"CAST('{value}' AS {kind.spark})", f"CAST('{value}' AS {kind.duck})", kind)


class Grammar:
    """Draws expressions over some columns."""

    def __init__(self, chance: Chance, columns: Columns) -> None:
        self.chance = chance
        self.columns = columns

    def choose(self, options: Sequence[T]) -> T:
        return options[int(self.chance.integers(len(options)))]

    def of(self, kind: Kind, depth: int = 2) -> Expr:
        """An expression of just this kind."""
        found = [c for c in self.columns if c.kind is kind]
        if found and self.chance.random() < 0.7:
            return self.choose(found)
        if depth == 0 or self.chance.random() < 0.15:
            return literal(self.chance, kind)
        if self.chance.random() < 0.25:
            return self._conditional(kind, depth - 1)
        made = {BOOLEAN: self.condition, LONG: self._whole, DOUBLE: self._double}
        made |= {STRING: self._text, DATE: self._date, INTEGER: self._part}
        return made[kind](depth - 1) if kind in made else self._conditional(kind, depth - 1)

    def any(self, exact: bool = True) -> Expr:
        """A column, or an expression, of any kind."""
        found = [c for c in self.columns if c.kind.exact or not exact]
        if found and self.chance.random() < 0.6:
            return self.choose(found)
        return self.of(self.choose((BOOLEAN, LONG, DOUBLE, STRING, DATE, INTEGER, DECIMAL)))

    def condition(self, depth: int = 2) -> Expr:
        if depth <= 0:
            return self._comparison(0)
        draw = self.chance.random()
        if draw < 0.5:
            return self._comparison(depth - 1)
        if draw < 0.75:
            way = self.choose(["({} AND {})", "({} OR {})"])
            return both(way, BOOLEAN, self.condition(depth - 1), self.condition(depth - 1))
        if draw < 0.85:
            return both("(NOT {})", BOOLEAN, self.condition(depth - 1))
        way = self.choose(["({} IS NULL)", "({} IS NOT NULL)"])
        return both(way, BOOLEAN, self.any())

    def _comparison(self, depth: int) -> Expr:
        kinds = [c.kind for c in self.columns if c.kind in COMPARED]
        kind = self.choose(kinds if kinds and self.chance.random() < 0.8 else COMPARED)
        left, right = self.of(kind, depth), self.of(kind, depth)
        return compared(self.chance, left, right, self.of(kind, depth))

    def _conditional(self, kind: Kind, depth: int) -> Expr:
        first, second = self.of(kind, depth), self.of(kind, depth)
        if self.chance.random() < 0.5:
            return both("coalesce({}, {})", kind, first, second)
        return both("(CASE WHEN {} THEN {} ELSE {} END)", kind, self.condition(0), first, second)

    def _whole(self, depth: int) -> Expr:
        narrow = [c for c in self.columns if c.kind in INTEGERS]
        if narrow and self.chance.random() < 0.5:
            return both("CAST({} AS BIGINT)", LONG, self.choose(narrow))
        if self.chance.random() < 0.2:
            return both("CAST(length({}) AS BIGINT)", LONG, self.of(STRING, depth))
        way = self.choose(["({} + {})", "({} - {})", "({} * {})", "(-{})", "abs({})", "({} % 3)"])
        return both(way, LONG, self.of(LONG, depth), self.of(LONG, depth))

    def _double(self, depth: int) -> Expr:
        if self.chance.random() < 0.3:
            return both("CAST({} AS DOUBLE)", DOUBLE, self.of(self.choose((LONG, FLOAT)), depth))
        way = self.choose(["({} + {})", "({} - {})", "(-{})", "abs({})", "({} * 2)"])
        return both(way, DOUBLE, self.of(DOUBLE, depth), self.of(DOUBLE, depth))

    def _text(self, depth: int) -> Expr:
        way = self.choose(["upper({})", "lower({})", "concat({}, {})", "substring({}, 1, 2)"])
        first, second = self.of(STRING, depth), self.of(STRING, depth)
        if way.startswith("concat"):  # in DuckDB the function passes over NULL
            return Expr(
                way.format(first.spark, second.spark), f"({first.duck} || {second.duck})", STRING
            )
        return both(way, STRING, first)

    def _date(self, depth: int) -> Expr:
        return both("CAST({} AS DATE)", DATE, self.of(TIMESTAMP, depth))

    def _part(self, depth: int) -> Expr:
        part = self.choose(["year", "month", "day", "hour", "minute"])
        return both(f"CAST({part}({{}}) AS INT)", INTEGER, self.of(TIMESTAMP, depth))


def compared(chance: Chance, left: Expr, right: Expr, third: Expr) -> Expr:
    """A comparison of values of one kind."""
    ways = ["({} = {})", "({} <> {})", "({} < {})", "({} <= {})", "({} > {})", "({} >= {})"]
    ways += ["({} IN ({}, {}))", "({} BETWEEN {} AND {})", "({} NOT IN ({}, {}))"]
    ways += ["({} IS NOT DISTINCT FROM {})", "({} <=> {})"]
    way = ways[int(chance.integers(len(ways)))]
    found = both(way, BOOLEAN, left, right, third)
    return Expr(found.spark, found.duck.replace(" <=> ", " IS NOT DISTINCT FROM "), BOOLEAN)
