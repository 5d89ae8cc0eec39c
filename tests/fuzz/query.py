"""Queries as trees, drawn by chance and written for both engines.

For DuckDB a relation is a table expression with two hidden columns: `~ts`, the event time in
microseconds, and `~seq`, the place of a row among all of its relation in the total order. Results
of windows have theirs in `~from` and `~to` besides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.fuzz.aggregate import Call, draw_call
from tests.fuzz.expression import Expr, Grammar, compared
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
    Kind,
    Stream,
)

T = TypeVar("T")

HIDDEN = '"~ts", "~seq"'
WINDOW = '"~from", "~to"'
TIME_SHOWN = ('make_timestamp("~ts") AS ts',)
WINDOW_SHOWN = (
    'make_timestamp("~from") AS window_start',
    'make_timestamp("~to") AS window_end',
)


@dataclass(frozen=True)
class Relation:
    """A stream, or what a query gives, under a name that both scripts know."""

    name: str
    columns: dict[str, Kind]
    windowed: bool = False

    @property
    def hidden(self) -> str:
        return f"{HIDDEN}, {WINDOW}" if self.windowed else HIDDEN

    def expressions(self, alias: str = "") -> list[Expr]:
        prefix = f"{alias}." if alias else ""
        return [Expr(prefix + n, prefix + n, kind) for n, kind in self.columns.items()]


@dataclass(frozen=True)
class Query:
    """The text of a query for both engines, and whether its rows are windows."""

    spark: str
    duck: str
    columns: dict[str, Kind]
    windowed: bool = False


@dataclass
class Script:
    """A query over queries: every statement makes a relation, the last one is the output."""

    creates: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    output: Query | None = None

    def add(self, query: Query) -> Relation:
        """Name a query as a stream that others may read."""
        name = f"q{len(self.tables)}"
        self.creates.append(f"CREATE STREAM {name} AS {query.spark};")
        relation = Relation(name, query.columns, query.windowed)
        shown = ", ".join([*query.columns, relation.hidden])
        self.tables.append(f"{name} AS (SELECT {shown} FROM ({query.duck}))")
        return relation

    @property
    def spark(self) -> str:
        assert self.output is not None
        return "\n".join([*self.creates, f"{self.output.spark};"])

    @property
    def duck(self) -> str:
        assert self.output is not None
        head = WINDOW_SHOWN if self.output.windowed else TIME_SHOWN
        shown = ", ".join([*head, *self.output.columns])
        tables = ",\n".join([*self.tables, f'"~out" AS ({self.output.duck})'])
        return f'WITH {tables}\nSELECT {shown} FROM "~out" ORDER BY "~seq"'


def draw_script(chance: Chance, streams: Sequence[Stream]) -> Script:
    """A query over streams, up to three levels deep, whose results others may share."""
    script = Script()
    relations = [Relation(s.name, dict(s.kinds)) for s in streams]
    for level in range(int(chance.choice([1, 1, 2, 3]))):
        if level:
            assert script.output is not None
            relations.append(script.add(script.output))
        joined = any(" JOIN " in create for create in script.creates)
        script.output = draw_query(chance, relations, joins=not joined)
    return script


def has_join(script: Script, word: str = " JOIN ") -> bool:
    """Whether there is a join among what the output is made of; what is not used is not run."""
    assert script.output is not None
    used = script.output.spark
    for number, create in reversed(list(enumerate(script.creates))):
        if re.search(rf"\bq{number}\b", used):
            used += f" {create}"
    return word in re.sub(r"ASOF (LEFT )?JOIN", "", used)


def draw_query(chance: Chance, relations: Sequence[Relation], joins: bool) -> Query:
    """One operator over relations, the newest one among them; pairs of pairs would be too many."""
    kinds = [_stateless, _union, _time_window, _time_window, _tuple_window]
    kinds += [_join, _join] if joins else []
    return _one(chance, kinds)(chance, relations)


def _one(chance: Chance, options: Sequence[T]) -> T:
    return options[int(chance.integers(len(options)))]


def _newest(chance: Chance, relations: Sequence[Relation]) -> Relation:
    return relations[-1] if chance.random() < 0.7 else _one(chance, relations)


def _where(chance: Chance, columns: Sequence[Expr], share: float = 0.4) -> tuple[str, str]:
    if chance.random() >= share:
        return "", ""
    condition = Grammar(chance, columns).condition()
    return f" WHERE {condition.spark}", f" WHERE {condition.duck}"


def _items(texts: Sequence[Expr], names: Sequence[str]) -> tuple[str, str]:
    pairs = list(zip(texts, names, strict=True))
    return (
        ", ".join(f"{e.spark} AS {n}" for e, n in pairs),
        ", ".join(f"{e.duck} AS {n}" for e, n in pairs),
    )


def _select(chance: Chance, columns: Sequence[Expr]) -> list[Expr]:
    grammar = Grammar(chance, columns)
    return [grammar.any(exact=False) for _ in range(chance.integers(1, 4))]


def _stateless(chance: Chance, relations: Sequence[Relation]) -> Query:
    relation = _newest(chance, relations)
    columns = relation.expressions()
    texts = _select(chance, columns)
    names = [f"c{n}" for n in range(len(texts))]
    where, duck_where = _where(chance, columns)
    spark, duck = _items(texts, names)
    return Query(
        f"SELECT {spark} FROM {relation.name}{where}",
        f"SELECT {duck}, {relation.hidden} FROM {relation.name}{duck_where}",
        {n: t.kind for n, t in zip(names, texts, strict=True)},
        relation.windowed,
    )


def _union(chance: Chance, relations: Sequence[Relation]) -> Query:
    kinds = [_one(chance, (BOOLEAN, LONG, DOUBLE, STRING, DATE, INTEGER)) for _ in range(2)]
    spark, duck = [], []
    for number in range(int(chance.choice([2, 2, 3]))):
        relation = _newest(chance, relations)
        columns = relation.expressions()
        texts = [Grammar(chance, columns).of(kind) for kind in kinds]
        ours, theirs = _items(texts, ["c0", "c1"])
        where, duck_where = _where(chance, columns)
        spark.append(f"SELECT {ours} FROM {relation.name}{where}")
        duck.append(f'SELECT {theirs}, {HIDDEN}, {number} AS "~n" FROM {relation.name}{duck_where}')
    place = 'row_number() OVER (ORDER BY "~ts", "~n", "~seq") AS "~seq"'
    return Query(
        " UNION ALL ".join(spark),
        f'SELECT c0, c1, "~ts", {place} FROM ({" UNION ALL ".join(duck)})',
        {"c0": kinds[0], "c1": kinds[1]},
    )


@dataclass(frozen=True)
class Grouping:
    """What both kinds of windows share: keys k0, k1, ... and calls a0, a1, ... over a relation."""

    relation: Relation
    keys: Sequence[Expr]
    calls: Sequence[Call]
    where: tuple[str, str]
    having: tuple[str, str]

    @property
    def names(self) -> list[str]:
        return [f"k{n}" for n in range(len(self.keys))]

    @property
    def hidden(self) -> list[str]:
        """The keys under names that no relation has."""
        return [f'"~{name}"' for name in self.names]

    @property
    def columns(self) -> dict[str, Kind]:
        keys = {n: k.kind for n, k in zip(self.names, self.keys, strict=True)}
        return keys | {f"a{n}": c.kind for n, c in enumerate(self.calls)}

    def spark(self, window: str, tail: str = "") -> str:
        items = [f"{k.spark} AS {n}" for n, k in zip(self.names, self.keys, strict=True)]
        items += [f"{c.spark} AS a{n}" for n, c in enumerate(self.calls)]
        group = f" GROUP BY {', '.join(k.spark for k in self.keys)}" if self.keys else ""
        source = f"{self.relation.name} [{window}]{self.where[0]}"
        return f"SELECT {', '.join(items)} FROM {source}{group}{self.having[0]}{tail}"

    @property
    def rows(self) -> str:
        """The tuples that count, with their keys."""
        items = ["*", *(f"{k.duck} AS {n}" for n, k in zip(self.hidden, self.keys, strict=True))]
        return f"SELECT {', '.join(items)} FROM {self.relation.name}{self.where[1]}"

    @property
    def results(self) -> str:
        keys = [f"{h} AS {n}" for h, n in zip(self.hidden, self.names, strict=True)]
        return ", ".join([*keys, *(f"{c.duck} AS a{n}" for n, c in enumerate(self.calls))])


def _grouping(chance: Chance, relations: Sequence[Relation]) -> Grouping:
    relation = _newest(chance, relations)
    columns = relation.expressions()
    grammar = Grammar(chance, columns)
    keys = [grammar.any() for _ in range(chance.choice([0, 1, 1, 2]))]
    keys = list({k.spark: k for k in keys if any(c.spark in k.spark for c in columns)}.values())
    calls = [draw_call(chance, grammar) for _ in range(chance.integers(1, 4))]
    having = ("", "")
    if chance.random() < 0.2:
        having = (" HAVING COUNT(*) > 1", " HAVING COUNT(*) > 1")
    return Grouping(relation, keys, calls, _where(chance, columns), having)


def _time_window(chance: Chance, relations: Sequence[Relation]) -> Query:
    grouping = _grouping(chance, relations)
    range_ms = int(_one(chance, [1, 250, 1000, 2500, 7000, 60_000]))
    slide_ms = max(1, range_ms // int(chance.integers(1, 5)))
    if range_ms > 1 and chance.random() < 0.3:  # one that does not divide the range
        slide_ms = int(chance.integers(max(1, range_ms // 6), range_ms + 1))
    range_us, slide_us = range_ms * 1000, slide_ms * 1000
    order, limit = _order(chance, grouping)
    starts = (
        f'SELECT *, unnest(generate_series(("~ts" - {range_us}) // {slide_us} - 1, '
        f'"~ts" // {slide_us} + 1)) * {slide_us} AS "~start" FROM ({grouping.rows})'
    )
    members = f'SELECT * FROM ({starts}) WHERE "~start" <= "~ts" AND "~ts" < "~start" + {range_us}'
    groups = ", ".join(['"~start"', *grouping.hidden])
    grouped = (
        f'SELECT "~start", {grouping.results} FROM ({members}) GROUP BY {groups}'
        f"{grouping.having[1]}"
    )
    inside = ", ".join([*(o[1] for o in order), *(f"{n} NULLS FIRST" for n in grouping.names), "1"])
    rank = f'row_number() OVER (PARTITION BY "~start" ORDER BY {inside}) AS "~rank"'
    kept = f' WHERE "~rank" <= {limit}' if limit is not None else ""
    duck = (
        f'SELECT *, "~start" AS "~from", "~start" + {range_us} AS "~to", '
        f'"~start" + {range_us - 1} AS "~ts", row_number() OVER (ORDER BY "~start", '
        f'"~rank") AS "~seq" FROM (SELECT *, {rank} FROM ({grouped})){kept}'
    )
    tail = f" ORDER BY {', '.join(o[0] for o in order)}" if order else ""
    tail += f" LIMIT {limit}" if limit is not None else ""
    return Query(
        grouping.spark(f"RANGE {range_ms} MILLISECONDS SLIDE {slide_ms} MILLISECONDS", tail),
        duck,
        grouping.columns,
        windowed=True,
    )


def _order(chance: Chance, grouping: Grouping) -> tuple[list[tuple[str, str]], int | None]:
    """Columns to order by, in both dialects, and how many rows a window may have."""
    exact = [n for n, kind in grouping.columns.items() if kind.exact]
    order = []
    if exact and chance.random() < 0.4:
        name, way = _one(chance, exact), _one(chance, ["ASC", "DESC"])
        nulls = "FIRST" if way == "ASC" else "LAST"
        order.append((f"{name} {way}", f"{name} {way} NULLS {nulls}"))
    limit = int(chance.integers(0, 4)) if chance.random() < 0.3 else None
    return order, limit


def _tuple_window(chance: Chance, relations: Sequence[Relation]) -> Query:
    grouping = _grouping(chance, relations)
    rows = int(_one(chance, [1, 2, 3, 5, 8]))
    slide = int(chance.integers(1, rows + 1))
    partition = f"PARTITION BY {', '.join(grouping.hidden)}" if grouping.hidden else ""
    ranked = (
        f'SELECT *, row_number() OVER ({partition} ORDER BY "~seq") - 1 AS "~rank" '
        f"FROM ({grouping.rows})"
    )
    windows = (
        f'SELECT *, unnest(generate_series(0, "~rank" // {slide})) AS "~window" FROM ({ranked})'
    )
    members = (
        f'SELECT * FROM ({windows}) WHERE "~window" * {slide} <= "~rank" '
        f'AND "~rank" < "~window" * {slide} + {rows}'
    )
    groups = ", ".join(['"~window"', *grouping.hidden])
    whole = f" HAVING COUNT(*) = {rows}" + grouping.having[1].replace("HAVING", "AND")
    duck = (
        f'SELECT {grouping.results}, min("~ts") AS "~from", max("~ts") AS "~to", '
        f'max("~seq") AS "~trigger" FROM ({members}) GROUP BY {groups}{whole}'
    )
    return Query(
        grouping.spark(f"ROWS {rows} SLIDE {slide}"),
        f'SELECT *, "~to" AS "~ts", "~trigger" AS "~seq" FROM ({duck})',
        grouping.columns,
        windowed=True,
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


def _join(chance: Chance, relations: Sequence[Relation]) -> Query:
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
    on = _predicate(chance, ours, theirs)
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


def _predicate(chance: Chance, ours: Sequence[Expr], theirs: Sequence[Expr]) -> Expr:
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
