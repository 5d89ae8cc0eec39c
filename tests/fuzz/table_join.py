"""Streams and queries joined to tables, drawn by chance and written for both engines.

For DuckDB a table has a hidden column `~p` besides, the place of a row in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.fuzz import query as fuzz
from tests.fuzz.join import predicate
from tests.fuzz.query import Query, Relation
from tests.fuzz.row import KINDS, TIMESTAMP, Chance, Kind, plain

VALID = "v"
HOWS = {
    "JOIN": "JOIN",
    "LEFT JOIN": "LEFT JOIN",
    "SEMI JOIN": "SEMI JOIN",
    "ANTI JOIN": "ANTI JOIN",
}


@dataclass(frozen=True)
class Table:
    """A table of one name in both engines; `versions` says that VALID FROM v stands after it."""

    name: str
    rows: pa.Table
    kinds: dict[str, Kind]
    versions: bool

    @property
    def relation(self) -> Relation:
        return Relation(self.name, self.kinds)

    @property
    def placed(self) -> pa.Table:
        """The rows as DuckDB gets them."""
        columns = {n: self.rows[n].cast(plain(k.arrow)) for n, k in self.kinds.items()}
        return pa.table({**columns, "~p": pa.array(range(self.rows.num_rows), pa.int64())})

    def opened(self, session: Any) -> Any:
        valid = VALID if self.versions else None
        return session.table(self.rows, name=self.name, valid_from=valid)


def draw_table(chance: Chance, name: str) -> Table:
    """Columns of all kinds, with NULL, and few rows, so that many a tuple finds none or several."""
    chosen = chance.choice(len(KINDS), int(chance.integers(2, 5)), replace=False)
    kinds = {f"c{n}": KINDS[k] for n, k in enumerate(chosen)}
    count = int(chance.choice([0, 1, 5, 12, 30]))
    columns = {
        n: pa.array(
            [None if chance.random() < 0.1 else k.draw(chance) for _ in range(count)], k.arrow
        )
        for n, k in kinds.items()
    }
    versions = bool(chance.random() < 0.3)
    if versions:
        times = [
            None if chance.random() < 0.1 else int(chance.integers(-30, 30)) for _ in range(count)
        ]
        us = pa.array([None if t is None else t * 1_000_000 for t in times], pa.int64())
        columns[VALID] = us.cast(TIMESTAMP.arrow)
        kinds[VALID] = TIMESTAMP
    return Table(name, pa.table(columns), kinds, versions)


def table_join(chance: Chance, relations: Sequence[Relation], tables: Sequence[Table]) -> Query:
    relation, table = fuzz._newest(chance, relations), fuzz._one(chance, tables)
    how = fuzz._one(chance, sorted(HOWS))
    ours, theirs = relation.expressions("l"), table.relation.expressions("z")
    on, key = predicate(chance, ours, theirs), None
    if table.versions:
        key = _key(chance, relation, table)
        if key is None:
            return fuzz._stateless(chance, relations)
    filters = how in ("SEMI JOIN", "ANTI JOIN")
    seen = ours if filters else [*ours, *theirs]
    texts, where = fuzz._select(chance, seen), fuzz._where(chance, seen, 0.2)
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = fuzz._items(texts, names)
    source, condition, extra = f"{table.name} AS z", on.duck, ""
    if key is not None:
        extra = f"l.{key[0]} = z.{key[1]} AND "
        source = (
            f"(SELECT * FROM {table.name} AS y WHERE y.{key[1]} = l.{key[0]} AND "
            f'epoch_us(y.{VALID}) <= l."~ts" ORDER BY y.{VALID} DESC, y."~p" DESC LIMIT 1) AS z'
        )
    if filters:
        word = "" if how == "SEMI JOIN" else "NOT "
        asked = f"{word}EXISTS (SELECT 1 FROM {source} WHERE {condition})"
        head = ", ".join(f"l.{h}" for h in relation.hidden.split(", "))
        rest = f" AND ({where[1].removeprefix(' WHERE ')})" if where[1] else ""
        joined = f"SELECT {duck}, {head} FROM {relation.name} AS l WHERE {asked}{rest}"
        windowed = relation.windowed
    else:
        place = 'row_number() OVER (ORDER BY l."~seq", z."~p") AS "~seq"'
        lateral = "LATERAL " if key is not None else ""
        joined = (
            f'SELECT {duck}, l."~ts", l.{relation.shown} AS "~own", {place} '
            f"FROM {relation.name} AS l "
            f"{how} {lateral}{source} ON {condition}{where[1]}"
        )
        windowed = False
    return Query(
        f"SELECT {spark} FROM {relation.name} AS l {how} {table.name} AS z ON {extra}({on.spark})"
        f"{where[0]}",
        joined,
        {n: t.kind for n, t in zip(names, texts, strict=True)},
        windowed,
        relation.own,
    )


def _key(chance: Chance, relation: Relation, table: Table) -> tuple[str, str] | None:
    """Columns of one kind that the versions of a key can be told by."""
    pairs = [
        (mine, other)
        for mine, kind in relation.columns.items()
        for other, its in table.kinds.items()
        if kind == its and kind.exact and other != VALID
    ]
    return fuzz._one(chance, pairs) if pairs else None
