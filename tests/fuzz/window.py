"""Windows that DuckDB has no word for, each written with what it has."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.query import Query, Relation, _grouping, _one
from tests.fuzz.row import Chance


def session(chance: Chance, relations: Sequence[Relation]) -> Query:
    """Sessions: a tuple begins one where it is more than the gap after the one before."""
    grouping = _grouping(chance, relations)
    gap_ms = int(_one(chance, [1, 40, 250, 1000, 7000]))
    gap_us = gap_ms * 1000
    partition = f"PARTITION BY {', '.join(grouping.hidden)}" if grouping.hidden else ""
    begins = (
        f'SELECT *, coalesce("~ts" - lag("~ts") OVER ({partition} ORDER BY "~seq") > {gap_us}, '
        f'true)::INT AS "~begins" FROM ({grouping.rows})'
    )
    numbered = (
        f'SELECT *, sum("~begins") OVER ({partition} ORDER BY "~seq") AS "~session" FROM ({begins})'
    )
    groups = ", ".join(['"~session"', *grouping.hidden])
    grouped = (
        f'SELECT {grouping.results}, min("~ts") AS "~from", max("~ts") + {gap_us} AS "~to" '
        f"FROM ({numbered}) GROUP BY {groups}{grouping.having[1]}"
    )
    order = ", ".join(['"~to"', *(f"{name} NULLS FIRST" for name in grouping.names)])
    place = f'row_number() OVER (ORDER BY {order}) AS "~seq"'
    return Query(
        grouping.spark(f"SESSION GAP {gap_ms} MILLISECONDS"),
        f'SELECT *, "~to" AS "~ts", {place} FROM ({grouped})',
        grouping.columns,
        windowed=True,
    )


def calendar(chance: Chance, relations: Sequence[Relation]) -> Query:
    """Local days, weeks and months."""
    grouping = _grouping(chance, relations)
    unit = _one(chance, ["day", "day", "week", "month"])
    zone = _one(chance, ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
    local = f"""timezone('{zone}', make_timestamptz("~ts"))"""
    start = f"date_trunc('{unit}', {local})"
    utc = f"""epoch_us(timezone('{zone}', {start}))"""
    end = f"""epoch_us(timezone('{zone}', {start} + INTERVAL 1 {unit}))"""
    rows = f'SELECT *, {utc} AS "~start", {end} AS "~end" FROM ({grouping.rows})'
    groups = ", ".join(['"~start"', '"~end"', *grouping.hidden])
    grouped = (
        f'SELECT {grouping.results}, "~start" AS "~from", "~end" AS "~to" FROM ({rows}) '
        f"GROUP BY {groups}{grouping.having[1]}"
    )
    order = ", ".join(['"~to"', *(f"{name} NULLS FIRST" for name in grouping.names)])
    place = f'row_number() OVER (ORDER BY {order}) AS "~seq"'
    return Query(
        grouping.spark(f"RANGE 1 {unit.upper()} TIME ZONE '{zone}'"),
        f'SELECT *, "~to" - 1 AS "~ts", {place} FROM ({grouped})',
        grouping.columns,
        windowed=True,
    )
