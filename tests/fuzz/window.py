"""Windows that DuckDB has no word for, each written with what it has."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.query import Query, Relation, _grouping, _one
from tests.fuzz.row import Chance


def session(chance: Chance, relations: Sequence[Relation]) -> Query:
    """Sessions: from one first tuple of a session to the next, by recursion."""
    grouping = _grouping(chance, relations)
    gap_ms = int(_one(chance, [1, 40, 250, 1000, 7000]))
    most_ms = int(_one(chance, [1, 300, 1000, 5000])) if chance.random() < 0.4 else None
    gap_us = gap_ms * 1000
    groups = ", ".join(grouping.hidden) or "1"
    base = f'SELECT *, dense_rank() OVER (ORDER BY {groups}) AS "~g" FROM ({grouping.rows})'
    begins = (
        f'SELECT *, coalesce("~ts" - lag("~ts") OVER (PARTITION BY "~g" ORDER BY "~seq") '
        f'> {gap_us}, true) AS "~begins" FROM ({base})'
    )
    longer = "" if most_ms is None else f' OR b."~ts" > x."~ts" + {most_ms * 1000}'
    starts = (
        'SELECT "~g", min("~seq") AS "~q" FROM base GROUP BY "~g" UNION ALL '
        'SELECT b."~g", min(b."~seq") FROM starts k JOIN base x ON x."~seq" = k."~q" '
        f'JOIN base b ON b."~g" = x."~g" AND b."~seq" > x."~seq" AND (b."~begins"{longer}) '
        'GROUP BY b."~g"'
    )
    numbered = (
        'SELECT *, (SELECT max("~q") FROM starts k WHERE k."~g" = base."~g" '
        'AND k."~q" <= base."~seq") AS "~session" FROM base'
    )
    keys = ", ".join(['"~session"', *grouping.hidden])
    grouped = (
        f'SELECT {grouping.results}, min("~ts") AS "~from", max("~ts") + {gap_us} AS "~to" '
        f"FROM ({numbered}) GROUP BY {keys}{grouping.having[1]}"
    )
    order = ", ".join(['"~to"', *(f"{name} NULLS FIRST" for name in grouping.names)])
    place = f'row_number() OVER (ORDER BY {order}, "~from") AS "~seq"'
    most = "" if most_ms is None else f" MAX {most_ms} MILLISECONDS"
    return Query(
        grouping.spark(f"SESSION GAP {gap_ms} MILLISECONDS{most}"),
        f"WITH RECURSIVE base AS ({begins}), starts AS ({starts}) "
        f'SELECT *, "~to" AS "~ts", {place} FROM ({grouped})',
        grouping.columns,
        windowed=True,
    )


ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Berlin")


def calendar(chance: Chance, relations: Sequence[Relation]) -> Query:
    """Local days, weeks and months; clocks are changed in the middle of none of the offsets."""
    grouping = _grouping(chance, relations)
    zone, offset_min = _one(chance, ZONES), int(_one(chance, [0, 0, 30, 300]))
    offset = f"INTERVAL {offset_min} MINUTES"
    local = f"""timezone('{zone}', make_timestamptz("~ts")) - {offset}"""
    if chance.random() < 0.3:
        window, rows = "1 MONTH", grouping.rows
        start, end = f"date_trunc('month', {local})", "INTERVAL 1 MONTH"
    else:
        unit, days = _one(chance, [("DAY", 1), ("DAY", 1), ("WEEK", 7)])
        length = int(chance.integers(1, 4))
        slide = int(chance.integers(1, length + 1))
        window, end = f"{length} {unit} SLIDE {slide} {unit}", f"INTERVAL {length * days} DAYS"
        first = "1970-01-05" if length * days % 7 == slide * days % 7 == 0 else "1970-01-01"
        number = f"date_diff('day', DATE '{first}', ({local})::DATE) // {slide * days}"
        rows = (
            f"SELECT *, unnest(generate_series({number} - {length // slide + 2}, {number} + 1)) "
            f'AS "~n" FROM ({grouping.rows})'
        )
        start = f"""(DATE '{first}' + to_days(("~n" * {slide * days})::INTEGER))"""
    edges = [f"timezone('{zone}', {at} + {offset})" for at in (start, f"{start} + {end}")]
    rows = (
        f'SELECT *, epoch_us({edges[0]}) AS "~start", epoch_us({edges[1]}) AS "~end" FROM ({rows})'
    )
    groups = ", ".join(['"~start"', '"~end"', *grouping.hidden])
    grouped = (
        f'SELECT {grouping.results}, "~start" AS "~from", "~end" AS "~to" FROM ({rows}) '
        f'WHERE "~start" <= "~ts" AND "~ts" < "~end" GROUP BY {groups}{grouping.having[1]}'
    )
    order = ", ".join(['"~to"', *(f"{name} NULLS FIRST" for name in grouping.names)])
    place = f'row_number() OVER (ORDER BY {order}) AS "~seq"'
    shift = f" OFFSET {offset_min} MINUTES" if offset_min else ""
    return Query(
        grouping.spark(f"RANGE {window}{shift} TIME ZONE '{zone}'"),
        f'SELECT *, "~to" - 1 AS "~ts", {place} FROM ({grouped})',
        grouping.columns,
        windowed=True,
    )
