"""LAG, NTH_VALUE and the edges of frames, drawn by chance; `python -m tests.fuzz.over 17`.

At times they leave NULL out, and are over other queries, or below a window.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.fuzz import compare
from tests.fuzz.__main__ import main
from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.keyed import _over, draw_keys
from tests.fuzz.query import (
    Query,
    Relation,
    Script,
    _items,
    _newest,
    _one,
    _select,
    _stateless,
    _time_window,
    _where,
)
from tests.fuzz.row import INTEGER, LONG, REAL, Chance, Stream


def draw_over(chance: Chance, streams: Sequence[Stream]) -> Script:
    """Functions OVER earlier tuples; a window counts their rows at times."""
    script = Script()
    relations = [Relation(s.name, dict(s.kinds)) for s in streams]
    if chance.random() < 0.4:
        below = _one(chance, [_stateless, _time_window])
        relations.append(script.add(below(chance, relations)))
    query = _moving(chance, _newest(chance, relations))
    if chance.random() < 0.2:
        relations.append(script.add(query))
        query = _time_window(chance, relations[-1:])
    script.output = query
    return script


def _moving(chance: Chance, relation: Relation) -> Query:
    columns = relation.expressions()
    where = _where(chance, columns)
    time = "window_end" if relation.windowed else "ts"
    calls = [_lag, _lag, _in_frame, _in_frame, _over]
    texts = [_one(chance, calls)(chance, columns, time) for _ in range(chance.integers(1, 4))]
    texts += _select(chance, columns)[:1]
    names = [f"c{n}" for n in range(len(texts))]
    spark, duck = _items(texts, names)
    return Query(
        f"SELECT {spark} FROM {relation.name}{where[0]}",
        f'SELECT {duck}, "~ts", "~seq" FROM {relation.name}{where[1]}',
        {n: t.kind for n, t in zip(names, texts, strict=True)},
    )


def drawn_value(chance: Chance, columns: Sequence[Expr]) -> tuple[Expr, Expr | None]:
    """A value with a default at times: of its kind, or a float beside an integer."""
    grammar = Grammar(chance, columns)
    value = grammar.any(exact=False)
    if chance.random() < 0.4:  # often NULL
        given = grammar.of(_one(chance, (LONG, INTEGER)))
        value = Expr(
            f"CASE WHEN ({given.spark}) % 3 = 0 THEN NULL ELSE {value.spark} END",
            f"CASE WHEN ({given.duck}) % 3 = 0 THEN NULL ELSE {value.duck} END",
            value.kind,
        )
    if chance.random() < 0.6:
        return value, None
    if value.kind in (LONG, INTEGER) and chance.random() < 0.5:
        return Expr(value.spark, f"({value.duck})::DOUBLE", REAL), Expr(
            "1.5E0", "1.5::DOUBLE", REAL
        )
    return value, grammar.of(value.kind)


def offset_call(
    chance: Chance, word: str, value: Expr, default: Expr | None, offset: int, skips: bool
) -> tuple[str, str]:
    """LAG or LEAD in both dialects, without OVER."""
    more = ("", "") if default is None else (f", {default.spark}", f", {default.duck}")
    inside = " IGNORE NULLS" if skips else ""
    ours = f"{word}({value.spark}, {offset}{more[0]}{inside})"
    if skips and chance.random() < 0.5:
        ours = f"{word}({value.spark}, {offset}{more[0]}) IGNORE NULLS"
    return ours, f"{word}({value.duck}, {offset}{more[1]}{inside})"


def _parts(chance: Chance, columns: Sequence[Expr]) -> tuple[str, str]:
    keys = draw_keys(chance, columns, (0, 1, 1, 2))
    ours, theirs = ", ".join(k.spark for k in keys), ", ".join(k.duck for k in keys)
    return (f"PARTITION BY {ours} ", f"PARTITION BY {theirs} ") if keys else ("", "")


def _lag(chance: Chance, columns: Sequence[Expr], time: str) -> Expr:
    parts, (value, default) = _parts(chance, columns), drawn_value(chance, columns)
    skips = bool(chance.random() < 0.7)
    offset = int(chance.integers(1 if skips else 0, 4))
    ours, theirs = offset_call(chance, "LAG", value, default, offset, skips)
    return Expr(
        f"{ours} OVER ({parts[0]}ORDER BY {time})",
        f'{theirs} OVER ({parts[1]}ORDER BY "~seq")',
        value.kind,
    )


def _in_frame(chance: Chance, columns: Sequence[Expr], time: str) -> Expr:
    """One of the values of a frame, for DuckDB by its place in the list of them."""
    parts, (value, _) = _parts(chance, columns), drawn_value(chance, columns)
    value = value if value.kind is not REAL else Grammar(chance, columns).of(LONG)
    skips, number = bool(chance.random() < 0.5), int(chance.integers(1, 4))
    rows, span = int(_one(chance, [0, 1, 2, 5])), int(_one(chance, [0, 250_000, 4_000_000]))
    ours, theirs, by = _one(
        chance,
        [
            ("", "RANGE UNBOUNDED PRECEDING", '"~ts"'),
            (" ROWS UNBOUNDED PRECEDING", "ROWS UNBOUNDED PRECEDING", '"~seq"'),
            (f" ROWS {rows} PRECEDING", f"ROWS {rows} PRECEDING", '"~seq"'),
            (f" RANGE {span} MICROSECONDS PRECEDING", f"RANGE {span} PRECEDING", '"~ts"'),
        ],
    )
    call, place = _one(
        chance,
        [
            (f"FIRST_VALUE({value.spark})", 1),
            (f"LAST_VALUE({value.spark})", -1),
            (f"NTH_VALUE({value.spark}, {number})", number),
        ],
    )
    listed = f'list({value.duck} ORDER BY "~seq")'
    if skips:
        call, listed = f"{call} IGNORE NULLS", f"{listed} FILTER (WHERE ({value.duck}) IS NOT NULL)"
    frame = f"OVER ({parts[1]}ORDER BY {by} {theirs})"
    return Expr(
        f"{call} OVER ({parts[0]}ORDER BY {time}{ours})", f"({listed} {frame})[{place}]", value.kind
    )


def check_seed(seed: int) -> None:
    compare.check(seed, draw_over, family=41)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], check_seed))
