"""Calls of aggregates that gather or rank values, with an order and FILTER, by chance."""

from __future__ import annotations

import pyarrow as pa

from tests.fuzz.aggregate import Call
from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.row import DATE, DOUBLE, INTEGER, LONG, REAL, STRING, Chance, Kind

ELEMENTS = (INTEGER, LONG, STRING, DATE)
LISTS = {
    kind.name: Kind(f"list of {kind.name}", pa.list_(kind.arrow), "", "", kind.draw, exact=False)
    for kind in ELEMENTS
}


def draw_gathered(chance: Chance, grammar: Grammar) -> Call:
    kinds = (_edge, _list, _text, _set, _mode, _share)
    return kinds[int(chance.integers(len(kinds)))](chance, grammar)


def _edge(chance: Chance, grammar: Grammar) -> Call:
    """FIRST or LAST of the tuples for which a condition holds, or which are not NULL."""
    name, value = str(chance.choice(["FIRST", "LAST"])), grammar.any()
    if chance.random() < 0.3:
        where = f"WHERE ({value.duck}) IS NOT NULL"
        spark = f"{name}({value.spark}) IGNORE NULLS"
    else:
        condition = grammar.condition()
        where = f"WHERE {condition.duck}"
        spark = f"{name}({value.spark}) FILTER (WHERE {condition.spark})"
    return Call(spark, f'{name}({value.duck} ORDER BY "~seq") FILTER ({where})', value.kind)


def _order(chance: Chance, grammar: Grammar) -> tuple[str, str]:
    """ORDER BY of up to two keys for each engine; DuckDB is told of ties and of NULL."""
    spark, duck = [], []
    for _ in range(chance.choice([0, 1, 1, 2])):
        key = grammar.any()
        way, nulls = str(chance.choice(["", "DESC"])), str(chance.choice(["", "FIRST", "LAST"]))
        first = nulls or ("LAST" if way else "FIRST")
        spark.append(f"{key.spark} {way}{' NULLS ' + nulls if nulls else ''}")
        duck.append(f"{key.duck} {way} NULLS {first}")
    return (f" ORDER BY {', '.join(spark)}" if spark else ""), ", ".join([*duck, '"~seq"'])


def _list(chance: Chance, grammar: Grammar) -> Call:
    value = grammar.of(ELEMENTS[int(chance.integers(4))])
    order, theirs = _order(chance, grammar)
    listed = f"list({value.duck} ORDER BY {theirs}) FILTER (WHERE ({value.duck}) IS NOT NULL)"
    name = str(chance.choice(["ARRAY_AGG", "COLLECT_LIST"]))
    spark = f"{name}({value.spark}{order})"
    return Call(spark, f"coalesce({listed}, [])", LISTS[value.kind.name])


def _text(chance: Chance, grammar: Grammar) -> Call:
    value = grammar.of(STRING)
    order, theirs = _order(chance, grammar)
    spark = f"STRING_AGG({value.spark}, '|'{order})"
    if order and chance.random() < 0.5:
        spark = f"LISTAGG({value.spark}, '|') WITHIN GROUP ({order})"
    return Call(spark, f"string_agg({value.duck}, '|' ORDER BY {theirs})", STRING)


def _set(chance: Chance, grammar: Grammar) -> Call:
    if chance.random() < 0.3:
        value = grammar.of(STRING)
        theirs = f"string_agg(DISTINCT {value.duck}, '' ORDER BY {value.duck})"
        return Call(f"STRING_AGG(DISTINCT {value.spark})", theirs, STRING)
    value = grammar.of(ELEMENTS[int(chance.integers(4))])
    name = str(chance.choice(["COLLECT_SET(", "ARRAY_AGG(DISTINCT "]))
    there = f"FILTER (WHERE ({value.duck}) IS NOT NULL)"
    duck = f"coalesce(list_sort(list(DISTINCT {value.duck}) {there}), [])"
    return Call(f"{name}{value.spark})", duck, LISTS[value.kind.name])


def _mode(chance: Chance, grammar: Grammar) -> Call:
    """DuckDB gives any of several values: here the first by how often they occur, then by value."""
    value = grammar.of(ELEMENTS[int(chance.integers(4))])
    pairs = f"map_entries(histogram({value.duck}))"
    if chance.random() < 0.5:
        spark = str(chance.choice(["MODE({0})", "MODE() WITHIN GROUP (ORDER BY {0})"]))
        counted = "struct_pack(n := -(e.value::BIGINT), k := e.key)"
        duck = f"(list_sort(list_transform({pairs}, lambda e: {counted}))[1]).k"
    else:
        spark = "MODE() WITHIN GROUP (ORDER BY {0} DESC)"
        counted = "struct_pack(n := e.value, k := e.key)"
        duck = f"(list_reverse_sort(list_transform({pairs}, lambda e: {counted}))[1]).k"
    return Call(spark.format(value.spark), duck, value.kind)


def _share(chance: Chance, grammar: Grammar) -> Call:
    """Finite numbers only: DuckDB does not interpolate beside infinity as Spark does."""
    number = grammar.of(DOUBLE)
    finite = "CASE WHEN abs({0}) < 1e300 THEN {0} END"
    value = Expr(finite.format(number.spark), finite.format(number.duck), DOUBLE)
    share = float(chance.choice([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
    way = str(chance.choice(["", " DESC"]))
    name = str(chance.choice(["PERCENTILE_CONT", "PERCENTILE_DISC", "APPROX_PERCENTILE"]))
    if name == "APPROX_PERCENTILE":
        whole = grammar.of(LONG)
        duck = f"quantile_disc({whole.duck}, {share})"
        return Call(f"APPROX_PERCENTILE({whole.spark}, {share})", duck, LONG)
    text = f"{name}({share}) WITHIN GROUP (ORDER BY {{}}{way})"
    return Call(text.format(value.spark), text.format(value.duck), REAL)
