"""Texts of tables that are grouped by come as codes; the results are those of the texts."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.operate.kernels.order import CODED
from tidegate.plan.lowering.lower import lower

RIDES = pa.table(
    {
        "ts": pa.array(range(40), pa.timestamp("s")).cast(pa.timestamp("us", "UTC")),
        "zone": [n % 6 for n in range(40)],
    }
)
ZONES = pa.table(
    {"id": [3, 1, 2, 4], "name": ["west", "north", None, "east"], "size": [1, 2, 3, 4]}
)


@pytest.mark.parametrize(
    ("column", "where", "coded"),
    [
        ("COUNT(*)", "TRUE", True),
        ("SUM(z.size)", "z.size < 4", True),
        ("MEDIAN(z.size)", "TRUE", True),
        ("COUNT(z.name)", "TRUE", False),
        ("COUNT(*)", "z.name <> 'east'", False),
    ],
)
def test_a_text_is_a_code_where_it_is_only_grouped_by(column: str, where: str, coded: bool) -> None:
    session = tg.Session(master="none")
    named = {"rides": session.stream(RIDES, time="ts"), "zones": session.table(ZONES)}
    query = (
        f"SELECT {{key}} AS name, {column} AS n FROM rides AS r [RANGE 4 SECONDS] "
        f"LEFT JOIN zones AS z ON r.zone = z.id WHERE {where} GROUP BY {{key}}"
    )
    grouped = session.sql(query.format(key="z.name"), **named)
    (prefix,) = lower(grouped.node).subqueries[0].prefixes
    assert (CODED[pa.string()] in {e.type for _, e in prefix.outputs}) is coded
    assert any(lookup.coded for lookup in prefix.lookups) is coded
    computed = session.sql(query.format(key="CONCAT(z.name, '')"), **named)
    rows, wanted = grouped.preview(100).table, computed.preview(100).table
    assert rows.num_rows > 10
    assert rows == wanted
