"""When rows happen: the column that tells it, and how far it is off."""

from __future__ import annotations

import pytest

from tests.query.catalog import outputs, sql
from tidegate.query.node.instant import event_column, event_offset
from tidegate.query.node.node import Node

HOURLY = "SELECT route, COUNT(*) AS n FROM rides [RANGE 1 HOUR SLIDE 5 MINUTES] GROUP BY route"
NEWEST = "SELECT route, COUNT(*) AS n FROM rides [ROWS 5] GROUP BY route"


def instant(node: Node) -> tuple[str, int]:
    return event_column(node), event_offset(node)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT fare FROM rides WHERE tip > 1", ("ts", 0)),
        (HOURLY, ("window_end", -1)),
        (f"{HOURLY} HAVING n > 1 ORDER BY n LIMIT 3", ("window_end", -1)),
        (f"SELECT n + 1 AS m FROM ({HOURLY} LIMIT 3) WHERE n > 1", ("window_end", -1)),
        (NEWEST, ("window_end", 0)),
        (f"SELECT n + 1 AS m FROM ({NEWEST}) WHERE n > 1", ("window_end", 0)),
        (f"SELECT MAX(n) AS m FROM ({NEWEST}) [RANGE 1 DAY]", ("window_end", -1)),
        (f"SELECT MAX(n) AS m FROM ({HOURLY}) [ROWS 5]", ("window_end", 0)),
        (f"{HOURLY} UNION ALL {NEWEST}", ("ts", 0)),
        (f"SELECT a.n FROM ({HOURLY}) [ROWS 5] a JOIN ({NEWEST}) [ROWS 5] b ON TRUE", ("ts", 0)),
    ],
)
def test_the_instant_of_a_row(text: str, expected: tuple[str, int]) -> None:
    assert instant(sql(text)) == expected


def test_the_outputs_of_a_script_have_instants_of_their_own() -> None:
    found = outputs(f"INSERT INTO hourly {HOURLY}; INSERT INTO newest {NEWEST}")
    assert {name: instant(node) for name, node in found.items()} == {
        "hourly": ("window_end", -1),
        "newest": ("window_end", 0),
    }
