"""EMIT EVERY drawn by chance: rows of open windows at marks, beside those that are final."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.first import first_of_each
from tests.fuzz.query import Query, Relation, _grouping, _one, _order
from tests.fuzz.row import BOOLEAN, Chance


def emit(chance: Chance, relations: Sequence[Relation]) -> Query:
    """A group gives a row for a window at the mark after each of its tuples, and at its end."""
    grouping = _grouping(chance, relations)
    range_ms = int(_one(chance, [250, 1000, 2500, 7000]))
    slide_ms = max(1, range_ms // int(chance.integers(1, 5)))
    every_ms = int(_one(chance, [range_ms // 5, range_ms // 2, range_ms - 1, 100]))
    shift_ms = int(_one(chance, [0, 0, 70]))
    range_us, slide_us, every_us = (1000 * each for each in (range_ms, slide_ms, every_ms))
    order, limit = _order(chance, grouping)
    first, by, among = "", "", ""
    if limit is None:
        first, by, among = first_of_each(chance, grouping.columns, grouping.names, order)
    near = f'("~ts" - {1000 * shift_ms}) // {slide_us}'
    starts = (
        f"SELECT *, unnest(generate_series({near} - {range_us // slide_us + 2}, {near} + 1)) "
        f'* {slide_us} + {1000 * shift_ms} AS "~start" FROM ({grouping.rows})'
    )
    members = f'SELECT * FROM ({starts}) WHERE "~start" <= "~ts" AND "~ts" < "~start" + {range_us}'
    group = ", ".join(['"~start"', *grouping.hidden])
    mark = f'"~ts" - (("~ts" % {every_us}) + {every_us}) % {every_us} + {every_us}'
    marks = (
        f'SELECT DISTINCT {group}, {mark} AS "~mark" FROM members '
        f'WHERE "~mark" < "~start" + {range_us} '
        f'UNION ALL SELECT DISTINCT {group}, "~start" + {range_us} FROM members'
    )
    same = " AND ".join(f"m.{k} IS NOT DISTINCT FROM k.{k}" for k in ['"~start"', *grouping.hidden])
    seen = f'SELECT m.*, k."~mark" FROM members m JOIN marks k ON {same} AND m."~ts" < k."~mark"'
    grouped = (
        f'SELECT "~start", "~mark", "~mark" = "~start" + {range_us} AS final, {grouping.results} '
        f'FROM ({seen}) GROUP BY "~mark", {group}{grouping.having[1]}'
    )
    inside = ", ".join([*(o[1] for o in order), *(f"{n} NULLS FIRST" for n in grouping.names), "1"])
    ranked = f'row_number() OVER (PARTITION BY "~start", "~mark" ORDER BY {inside}) AS "~rank"'
    kept = f' WHERE "~rank" <= {limit}' if limit is not None else ""
    if among:
        ranked += ", " + among.replace('BY "~start"', 'BY "~start", "~mark"')
        kept = ' WHERE "~place"'
    place = 'row_number() OVER (ORDER BY "~mark", final, "~start", "~rank") AS "~seq"'
    tail = f" ORDER BY {', '.join(o[0] for o in order)}" if order else ""
    tail += f" LIMIT {limit}" if limit is not None else by
    shift = f" OFFSET {shift_ms} MILLISECONDS" if shift_ms else ""
    return Query(
        grouping.spark(
            f"RANGE {range_ms} MILLISECONDS SLIDE {slide_ms} MILLISECONDS{shift}",
            f"{first}{tail} EMIT EVERY {every_ms} MILLISECONDS",
        ),
        f"WITH members AS ({members}), marks AS ({marks}) "
        f'SELECT *, "~start" AS "~from", "~start" + {range_us} AS "~to", "~mark" - 1 AS "~ts", '
        f"{place} FROM (SELECT *, {ranked} FROM ({grouped})){kept}",
        {**grouping.columns, "final": BOOLEAN},
        windowed=True,
    )
