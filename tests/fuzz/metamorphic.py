"""Random queries rewritten so that the answer must stay: no second engine is needed to judge them.

- **Three parts**: the rows for which a predicate is true, false and NULL are all rows.
- **No optimisation**: a filter keeps as many rows as have the predicate true in a select list.
- **Pushdown by hand**: a filter above an operator is the same filter below it.

What DuckDB has a text for is compared with its answer besides. `python -m tests.fuzz.metamorphic
0-999` runs seeds again.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from tests.fuzz import query, window
from tests.fuzz.__main__ import main
from tests.fuzz.compare import by_duckdb, by_tidegate, difference, draw_options
from tests.fuzz.construct import CONSTRUCTS, draw_construct
from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.join import predicate
from tests.fuzz.keyed import plain_columns
from tests.fuzz.query import Grouping, Query, Relation, Script, draw_script
from tests.fuzz.row import BOOLEAN, LONG, Chance, Stream, stream

FAMILY = 91
RANGES_US = (0, 250_000, 1_000_000)
NO_DUCK = "(not written for DuckDB)"
Tables = dict[str, pa.Table]


@dataclass
class Rewrites(Script):
    """A script with several outputs, and what must hold among their rows."""

    asked: dict[str, Query] = field(default_factory=dict)
    laws: list[Callable[[Tables], str | None]] = field(default_factory=list)

    @property
    def outputs(self) -> dict[str, Query]:
        return self.asked


def filtered(relation: Relation, condition: Expr | None = None) -> Query:
    """All columns of a relation, of the rows for which a condition is true."""
    names = ", ".join(relation.columns)
    texts = ("", "") if condition is None else (condition.spark, condition.duck)
    ours, theirs = (text and f" WHERE {text}" for text in texts)
    return Query(
        f"SELECT {names} FROM {relation.name}{ours}",
        f"SELECT {names}, {relation.hidden} FROM {relation.name}{theirs}",
        dict(relation.columns),
        relation.windowed,
        relation.own,
    )


def _condition(chance: Chance, columns: Sequence[Expr]) -> Expr:
    """A condition that has a column, if one of some can be found."""
    drawn = (Grammar(chance, columns).condition() for _ in range(20))
    return next(
        (c for c in drawn if any(of.spark in c.spark for of in columns)),
        Expr("TRUE", "TRUE", BOOLEAN),
    )


def wrapped(text: str, condition: Expr) -> Expr:
    return Expr(text.format(condition.spark), text.format(condition.duck), BOOLEAN)


PARTS = {"true": "({})", "false": "NOT ({})", "unknown": "({}) IS NULL"}


def three_parts(chance: Chance, script: Rewrites, relation: Relation) -> None:
    """Rows for which a predicate is true, false and NULL; all of them; and the predicate alone."""
    condition = _condition(chance, relation.expressions())
    parts = [filtered(relation, wrapped(text, condition)) for text in PARTS.values()]
    script.asked["whole"] = filtered(relation)
    script.asked |= dict(zip(PARTS, parts, strict=True))
    script.asked["united"] = _union(relation, [wrapped(text, condition) for text in PARTS.values()])
    script.asked["truth"] = Query(
        f"SELECT {condition.spark} AS c0 FROM {relation.name}",
        f"SELECT {condition.duck} AS c0, {relation.hidden} FROM {relation.name}",
        {"c0": BOOLEAN},
        relation.windowed,
        relation.own,
    )
    script.laws += [_parts_are_the_whole, _union_is_the_whole]
    count = f"FROM {relation.name} [RANGE 700 MILLISECONDS SLIDE 300 MILLISECONDS]"
    where = f"SELECT COUNT(*) AS n {count} WHERE {condition.spark}"
    counted = f"SELECT COUNT_IF({condition.spark}) AS n {count}"
    script.asked["kept"] = Query(where, NO_DUCK, {"n": LONG}, windowed=True)
    script.asked["counted"] = Query(counted, NO_DUCK, {"n": LONG}, windowed=True)
    script.laws.append(_counts_are_equal)


def _union(relation: Relation, conditions: Sequence[Expr]) -> Query:
    names = ", ".join(relation.columns)
    own = f'{relation.time}, "~seq"'
    ours = [f"SELECT {names} FROM {relation.name} WHERE {c.spark}" for c in conditions]
    theirs = [
        f'SELECT {names}, {own}, {n} AS "~n" FROM {relation.name} WHERE {c.duck}'
        for n, c in enumerate(conditions)
    ]
    place = 'row_number() OVER (ORDER BY "~ts", "~n", "~seq") AS "~seq"'
    return Query(
        " UNION ALL ".join(ours),
        f'SELECT {names}, "~ts", "~own", {place} FROM ({" UNION ALL ".join(theirs)})',
        dict(relation.columns),
        own=relation.own,
    )


def _rows(table: pa.Table, first: int = 0) -> list[str]:
    """Each row as text, in which NaN equals NaN, from a column on."""
    columns = [column.to_pylist() for column in table.columns[first:]]
    return list(map(repr, zip(*columns, strict=True)))


def _parts_are_the_whole(tables: Tables) -> str | None:
    """Each part has just the rows whose predicate is so where it is shown, in their order."""
    truth = tables["truth"].column("c0").to_pylist()
    whole = _rows(tables["whole"])
    if len(whole) != len(truth):
        return f"{len(whole)} rows, and {len(truth)} with the predicate"
    for part, value in zip(PARTS, (True, False, None), strict=True):
        wanted = [row for row, shown in zip(whole, truth, strict=True) if shown is value]
        got = _rows(tables[part])
        if got != wanted:
            return f"{part} has {len(got)} rows {got[:3]} instead of {len(wanted)} {wanted[:3]}"
    return None


def _union_is_the_whole(tables: Tables) -> str | None:
    columns = len(tables["united"].column_names) - 1
    ours, whole = (
        Counter(_rows(table, len(table.column_names) - columns))
        for table in (tables["united"], tables["whole"])
    )
    return None if ours == whole else f"more {ours - whole}, fewer {whole - ours}"


def _counts_are_equal(tables: Tables) -> str | None:
    kept = _rows(tables["kept"])
    counted = [row for row in _rows(tables["counted"]) if not row.endswith(", 0)")]
    return None if kept == counted else f"{kept[:5]} instead of {counted[:5]}"


def same(one: str, other: str) -> Callable[[Tables], str | None]:
    """That two outputs have the same rows in the same order."""

    def differs(tables: Tables) -> str | None:
        ours, theirs = _rows(tables[one]), _rows(tables[other])
        if ours == theirs and tables[one].schema.equals(tables[other].schema):
            return None
        found = [pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]][:2]
        return f"{one} has {len(ours)} rows, {other} {len(theirs)}: {found}"

    return differs


WINDOWS = (
    partial(query._time_window, sets=0.0),
    query._tuple_window,
    window.session,
    window.calendar,
)


def below_groups(chance: Chance, script: Rewrites, relation: Relation) -> None:
    """A condition on keys takes whole groups, so it may stand below the window as well."""
    operator = query._one(chance, WINDOWS)
    seeds = (int(chance.integers(2**32)) for _ in range(100))
    for seed in seeds:
        grouping = query._grouping(np.random.default_rng(seed), [relation])
        made = operator(np.random.default_rng(seed), [relation])
        if grouping.keys and " LIMIT " not in made.spark and " QUALIFY " not in made.spark:
            break
    else:
        return  # a relation without a column that can be a key
    of_keys, of_columns = _on_keys(next(seeds, 0), grouping)
    script.asked["above"] = filtered(script.add(made), of_keys)
    under = script.add(filtered(relation, of_columns))
    script.asked["below"] = operator(np.random.default_rng(seed), [under])
    script.laws.append(same("above", "below"))


def _on_keys(seed: int, grouping: Grouping) -> tuple[Expr, Expr]:
    """One condition by the names of keys, and by what they are made of."""
    named = [Expr(n, n, k.kind) for n, k in zip(grouping.names, grouping.keys, strict=True)]
    made = [Expr(f"({k.spark})", f"({k.duck})", k.kind) for k in grouping.keys]
    above, below = (_condition(np.random.default_rng(seed), each) for each in (named, made))
    return above, below


KEYED = (
    "SELECT DISTINCT ON ({key}) {names} FROM {name} KEEP FIRST WITHIN 1 SECOND",
    "SELECT DISTINCT ON ({key}) {names} FROM {name} KEEP LAST WITHIN 1 SECOND",
    "SELECT {names}, COUNT(*) OVER (PARTITION BY {key} ORDER BY {time}) AS n FROM {name}",
    "SELECT {names}, LAG({key}, 2) OVER (PARTITION BY {key} ORDER BY {time}) AS n FROM {name}",
    "SELECT {names} FROM {name} "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {time}) <= 2",
)


def below_keys(chance: Chance, script: Rewrites, relation: Relation) -> None:
    """The same for what keeps tuples of a key: deduplication, OVER, first rows."""
    plain = plain_columns(relation.expressions())
    if not plain:
        return
    key = query._one(chance, plain)
    condition = _condition(chance, [key])
    text = str(query._one(chance, KEYED[:-1] if relation.windowed else KEYED))
    kinds = {
        **relation.columns,
        **({"n": key.kind if "LAG" in text else LONG} if "AS n" in text else {}),
    }
    own = relation.own or "LAST" in text
    words = {"key": key.spark, "names": ", ".join(relation.columns)}
    words["time"] = "window_end" if relation.windowed else "ts"

    def over(of: Relation) -> Query:
        return Query(text.format(name=of.name, **words), NO_DUCK, kinds, own=own)

    script.asked["above"] = filtered(script.add(over(relation)), condition)
    script.asked["below"] = over(script.add(filtered(relation, condition)))
    script.laws.append(same("above", "below"))


JOINS = ("JOIN", "JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", "ASOF JOIN", "ASOF LEFT JOIN")


def below_join(chance: Chance, script: Rewrites, relation: Relation, other: Relation) -> None:
    """A condition on the left side may stand above a join, in its WHERE, in its ON, or below it."""
    how = query._one(chance, JOINS)
    as_of = how.startswith("ASOF")
    if as_of and relation.own:
        return
    left = relation.expressions("l")
    on = predicate(chance, left, other.expressions("r"))
    ranges = [int(query._one(chance, RANGES_US)) for _ in range(2)]
    seed = int(chance.integers(2**32))
    named, qualified = (
        _condition(np.random.default_rng(seed), each) for each in (relation.expressions(), left)
    )
    shown = ", ".join(f"l.{name} AS {name}" for name in relation.columns)
    early = "l.window_end >" if relation.windowed else "l.ts >="

    def joined(of: Relation, more: str = "", where: str = "") -> Query:
        windows = [f"[RANGE {us} MICROSECONDS]" for us in ranges]
        met = f"MATCH_CONDITION ({early} r.ts)" if as_of else f"ON {on.spark}{more}"
        sides = [f"{of.name} AS l", how, f"{other.name} AS r {windows[1]}"]
        sides[0] += "" if as_of else f" {windows[0]}"
        text = f"SELECT {shown} FROM {' '.join(sides)} {met}{where}"
        return Query(text, NO_DUCK, dict(relation.columns), own=True)

    script.asked["below"] = joined(script.add(filtered(relation, named)))
    script.asked["beside"] = joined(relation, where=f" WHERE {qualified.spark}")
    script.asked["above"] = filtered(script.add(joined(relation)), named)
    script.laws += [same("below", "beside"), same("below", "above")]
    if how == "JOIN":
        script.asked["inside"] = joined(relation, more=f" AND {qualified.spark}")
        script.laws.append(same("below", "inside"))


SKIPPED = ("emit",)
"""Constructs whose rows no other operator takes."""

NAMES = (None, *(name for name in CONSTRUCTS if name not in SKIPPED))


def draw_rewrites(chance: Chance, streams: Sequence[Stream], name: str | None) -> Rewrites:
    """Something that any query gives, rewritten in one of the ways."""
    drawn = draw_script if name is None else partial(draw_construct, CONSTRUCTS[name])
    script = drawn(chance, streams)
    made = Rewrites(script.creates, script.tables, given=script.given)
    assert script.output is not None
    relation = made.add(script.output)
    if chance.random() < 0.3:
        relation = Relation("s", dict(streams[0].kinds))
    ways = [three_parts, three_parts, below_groups, below_groups, below_keys, below_join]
    way = query._one(chance, ways)
    if way is below_join:
        below_join(chance, made, relation, Relation("t", dict(streams[1].kinds)))
    else:
        way(chance, made, relation)
    return made


def check_seed(seed: int, name: str | None = None) -> bool:
    """Run a script and its rewrites, together or each alone; whether rows came out."""
    chance = np.random.default_rng([FAMILY, seed])
    make = stream if name is None else CONSTRUCTS[name].streams
    streams = [make(chance, each) for each in ("s", "t")]
    script = draw_rewrites(chance, streams, name)
    if not script.laws:
        return False
    alone = bool(chance.random() < 0.5)
    scripts = (
        [replace(script, asked={n: q}) for n, q in script.asked.items()] if alone else [script]
    )
    told = f"seed {seed} of {name}, {'each alone' if alone else 'together'}\n{script.spark}\n"
    tables: Tables = {}
    try:
        for each in scripts:
            rows = by_tidegate(each, streams, draw_options(chance, each))
            tables |= dict(zip(each.asked, rows.values(), strict=True))
    except Exception as error:
        error.add_note(told)
        raise
    for law in script.laws:
        problem = law(tables)
        assert problem is None, f"{told}{problem}"
    for output, asked in script.asked.items():
        if NO_DUCK not in f"{script.tables}{asked.duck}":
            problem = difference(asked, tables[output], by_duckdb(script, asked, streams))
            assert problem is None, f"{told}{output}: {script.duck(asked)}\n{problem}"
    return any(table.num_rows for table in tables.values())


def check_all(seed: int) -> bool:
    """The same for a plain query and for one with each construct."""
    return sum(check_seed(seed, name) for name in NAMES) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], check_all))
