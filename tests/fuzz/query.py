"""Queries as trees, drawn by chance and written for both engines.

For DuckDB a relation is a table expression with two hidden columns: `~ts`, the event time in
microseconds, and `~seq`, the place of a row among all of its relation in the total order. Results
of windows have theirs in `~from` and `~to` besides, and rows that are decided later than at their
own time show that in `~own`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from tests.fuzz.aggregate import Call, draw_call
from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.first import first_of_each
from tests.fuzz.gathered import draw_gathered
from tests.fuzz.row import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    Chance,
    Kind,
    Stream,
)

T = TypeVar("T")

HIDDEN = '"~ts", "~seq"'
WINDOW = '"~from", "~to"'


@dataclass(frozen=True)
class Relation:
    """A stream, or what a query gives, under a name that both scripts know."""

    name: str
    columns: dict[str, Kind]
    windowed: bool = False
    own: bool = False

    @property
    def hidden(self) -> str:
        hidden = f"{HIDDEN}, {WINDOW}" if self.windowed else HIDDEN
        return f'{hidden}, "~own"' if self.own else hidden

    @property
    def shown(self) -> str:
        """Where DuckDB has the time that a tuple shows."""
        return '"~own"' if self.own else '"~ts"'

    @property
    def time(self) -> str:
        """The event time and the time that is shown, of rows that are passed on as tuples."""
        return f'"~ts", {self.shown} AS "~own"'

    def expressions(self, alias: str = "") -> list[Expr]:
        prefix = f"{alias}." if alias else ""
        return [Expr(prefix + n, prefix + n, kind) for n, kind in self.columns.items()]


@dataclass(frozen=True)
class Query:
    """The text of a query for both engines, and whether its rows are windows or decided late."""

    spark: str
    duck: str
    columns: dict[str, Kind]
    windowed: bool = False
    own: bool = False

    @property
    def head(self) -> dict[str, str]:
        """The columns before the select list, and where DuckDB has them."""
        if self.windowed:
            return {"window_start": '"~from"', "window_end": '"~to"'}
        return {"ts": '"~own"' if self.own else '"~ts"'}


class Given(Protocol):
    """A table that a script reads."""

    @property
    def name(self) -> str: ...

    @property
    def placed(self) -> pa.Table:
        """The rows as DuckDB gets them."""

    def opened(self, session: Any) -> Any: ...


@dataclass
class Script:
    """A query over queries: every statement makes a relation, the last ones are the outputs."""

    creates: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    output: Query | None = None
    second: Query | None = None
    given: Sequence[Given] = ()

    def add(self, query: Query) -> Relation:
        """Name a query as a stream that others may read."""
        name = f"q{len(self.tables)}"
        self.creates.append(f"CREATE STREAM {name} AS {query.spark};")
        relation = Relation(name, query.columns, query.windowed, query.own)
        shown = ", ".join([*query.columns, relation.hidden])
        self.tables.append(f"{name} AS (SELECT {shown} FROM ({query.duck}))")
        return relation

    @property
    def outputs(self) -> dict[str, Query]:
        """By the names that INSERT INTO gives them."""
        given = [query for query in (self.output, self.second) if query is not None]
        return {f"o{n}": query for n, query in enumerate(given)}

    @property
    def spark(self) -> str:
        inserts = [f"INSERT INTO {name} {query.spark};" for name, query in self.outputs.items()]
        return "\n".join([*self.creates, *inserts])

    def duck(self, output: Query) -> str:
        head = [f"make_timestamp({hidden}) AS {name}" for name, hidden in output.head.items()]
        shown = ", ".join([*head, *output.columns])
        tables = ",\n".join([*self.tables, f'"~out" AS ({output.duck})'])
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


def has_join(script: Script, how: str = "(LEFT |RIGHT OUTER |FULL |SEMI |ANTI )?") -> bool:
    """Whether streams are joined in what the output is made of; what is not used is not run."""
    used = " ".join(query.spark for query in script.outputs.values())
    for number, create in reversed(list(enumerate(script.creates))):
        if re.search(rf"\bq{number}\b", used):
            used += f" {create}"
    return re.search(rf"\] {how}JOIN ", used) is not None


def draw_query(chance: Chance, relations: Sequence[Relation], joins: bool) -> Query:
    """One operator over relations, the newest one among them; pairs of pairs would be too many."""
    from tests.fuzz import join, outer, unnest, window
    from tests.fuzz.keyed import KEYED

    kinds = [_stateless, _union, _time_window, _time_window, _tuple_window]
    kinds += [window.session, window.calendar, unnest.explode, *KEYED]
    kinds += [join.join, join.join, outer.outer_join] if joins else []
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
        relation.own,
    )


def _union(chance: Chance, relations: Sequence[Relation]) -> Query:
    kinds = [_one(chance, (BOOLEAN, LONG, DOUBLE, STRING, DATE, INTEGER)) for _ in range(2)]
    spark, duck, own = [], [], False
    for number in range(int(chance.choice([2, 2, 3]))):
        relation = _newest(chance, relations)
        columns = relation.expressions()
        texts = [Grammar(chance, columns).of(kind) for kind in kinds]
        ours, theirs = _items(texts, ["c0", "c1"])
        where, duck_where = _where(chance, columns)
        spark.append(f"SELECT {ours} FROM {relation.name}{where}")
        hidden = f'{relation.time}, "~seq", {number} AS "~n"'
        duck.append(f"SELECT {theirs}, {hidden} FROM {relation.name}{duck_where}")
        own = own or relation.own
    place = 'row_number() OVER (ORDER BY "~ts", "~n", "~seq") AS "~seq"'
    return Query(
        " UNION ALL ".join(spark),
        f'SELECT c0, c1, "~ts", "~own", {place} FROM ({" UNION ALL ".join(duck)})',
        {"c0": kinds[0], "c1": kinds[1]},
        own=own,
    )


@dataclass(frozen=True)
class Grouping:
    """What both kinds of windows share: keys k0, k1, ... and calls a0, a1, ... over a relation."""

    relation: Relation
    keys: Sequence[Expr]
    calls: Sequence[Call]
    where: tuple[str, str]
    having: tuple[str, str]
    sets: str = ""
    """ROLLUP or CUBE, GROUPING SETS with places of keys, or nothing for one grouping."""

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
        ids = {"g": LONG} if self.sets else {}
        return keys | ids | {f"a{n}": c.kind for n, c in enumerate(self.calls)}

    def spark(self, window: str, tail: str = "") -> str:
        items = [f"{k.spark} AS {n}" for n, k in zip(self.names, self.keys, strict=True)]
        items += ["GROUPING_ID() AS g"] if self.sets else []
        items += [f"{c.spark} AS a{n}" for n, c in enumerate(self.calls)]
        keys = self.grouped([k.spark for k in self.keys])
        group = f" GROUP BY {keys}" if keys else ""
        source = f"{self.relation.name} [{window}]{self.where[0]}"
        return f"SELECT {', '.join(items)} FROM {source}{group}{self.having[0]}{tail}"

    def grouped(self, keys: Sequence[str]) -> str:
        """The keys of a GROUP BY as they are written in one of the engines."""
        listed = ", ".join(keys)
        if "SETS" in self.sets:
            return self.sets.format(*keys)
        return f"{self.sets} ({listed})" if self.sets else listed

    @property
    def rows(self) -> str:
        """The tuples that count, with their keys."""
        items = ["*", *(f"{k.duck} AS {n}" for n, k in zip(self.hidden, self.keys, strict=True))]
        return f"SELECT {', '.join(items)} FROM {self.relation.name}{self.where[1]}"

    @property
    def results(self) -> str:
        keys = [f"{h} AS {n}" for h, n in zip(self.hidden, self.names, strict=True)]
        keys += [f"GROUPING({', '.join(self.hidden)}) AS g"] if self.sets else []
        return ", ".join([*keys, *(f"{c.duck} AS a{n}" for n, c in enumerate(self.calls))])


def _grouping(chance: Chance, relations: Sequence[Relation]) -> Grouping:
    relation = _newest(chance, relations)
    columns = relation.expressions()
    grammar = Grammar(chance, columns)
    keys = [grammar.any() for _ in range(chance.choice([0, 1, 1, 2]))]
    keys = list({k.spark: k for k in keys if any(c.spark in k.spark for c in columns)}.values())
    draws = (draw_call, draw_call, draw_call, draw_gathered)
    calls = [_one(chance, draws)(chance, grammar) for _ in range(chance.integers(1, 4))]
    having = ("", "")
    if chance.random() < 0.2:
        having = (" HAVING COUNT(*) > 1", " HAVING COUNT(*) > 1")
    return Grouping(relation, keys, calls, _where(chance, columns), having)


def _time_window(chance: Chance, relations: Sequence[Relation], sets: float = 0.25) -> Query:
    grouping = _grouping(chance, relations)
    if grouping.keys and chance.random() < sets:
        grouping = replace(grouping, sets=draw_sets(chance, len(grouping.keys)))
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
    groups = f'"~start", {grouping.grouped(grouping.hidden)}'.removesuffix(", ")
    grouped = (
        f'SELECT "~start", {grouping.results} FROM ({members}) GROUP BY {groups}'
        f"{grouping.having[1]}"
    )
    named = [*grouping.names, *(["g"] if grouping.sets else [])]
    inside = ", ".join([*(o[1] for o in order), *(f"{n} NULLS FIRST" for n in named), "1"])
    rank = f'row_number() OVER (PARTITION BY "~start" ORDER BY {inside}) AS "~rank"'
    kept = f' WHERE "~rank" <= {limit}' if limit is not None else ""
    first, by, place = "", "", ""
    if limit is None:
        first, by, place = first_of_each(chance, grouping.columns, grouping.names, order)
    rank, kept = (f"{rank}, {place}", ' WHERE "~place"') if place else (rank, kept)
    duck = (
        f'SELECT *, "~start" AS "~from", "~start" + {range_us} AS "~to", '
        f'"~start" + {range_us - 1} AS "~ts", row_number() OVER (ORDER BY "~start", '
        f'"~rank") AS "~seq" FROM (SELECT *, {rank} FROM ({grouped})){kept}'
    )
    tail = f" ORDER BY {', '.join(o[0] for o in order)}" if order else ""
    tail += f" LIMIT {limit}" if limit is not None else by
    return Query(
        grouping.spark(
            f"RANGE {range_ms} MILLISECONDS SLIDE {slide_ms} MILLISECONDS", first + tail
        ),
        duck,
        grouping.columns,
        windowed=True,
    )


def draw_sets(chance: Chance, keys: int) -> str:
    """Several groupings of so many keys."""
    kind = _one(chance, ["ROLLUP", "CUBE", "GROUPING SETS"])
    if kind != "GROUPING SETS":
        return kind
    places = [[k for k in range(keys) if chance.random() < 0.6] for _ in range(3)]
    named = {
        f"({', '.join(f'{{{k}}}' for k in each)})": None for each in [list(range(keys)), *places]
    }
    return f"GROUPING SETS ({', '.join(named)})"


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
