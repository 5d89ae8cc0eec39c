"""What the nemesis counts as wrong: rows that lack are only late, all else is an error."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kafka.reading import Record
from tests.nemesis.query import (
    NAMES,
    PARTITIONS,
    START,
    Row,
    body,
    difference,
    last_body,
    meant,
    plain,
)

RECORDS = [Record(n % PARTITIONS, None, body(n), {}) for n in range(120)]
LAST = [Record(partition, None, last_body(), {}) for partition in range(PARTITIONS)]


@pytest.fixture(scope="module")
def wanted() -> dict[str, list[Row]]:
    return meant([*RECORDS, *LAST])


def test_the_interpreter_gives_rows_of_every_output(wanted: dict[str, list[Row]]) -> None:
    assert [row["v"] for row in wanted["odd"]] == [n for n in range(120) if n % 2]
    first = wanted["counts"][0]
    assert first["window_end"] == plain({"": START + timedelta(seconds=1)})[""]
    of = [n for n in range(60) if f"k{n * 7919 % 5}" == first["k"]]  # a second has 60 records
    assert (first["n"], first["s"]) == (len(of), sum(of))
    # Every fifth record has the same key, and one in three of these is not two steps away.
    assert [(r["one"], r["other"]) for r in wanted["pairs"]] == [
        (n, n + 5) for n in range(0, 115, PARTITIONS)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_is_wrong_twice_or_out_of_order_is_told(
    name: str, wanted: dict[str, list[Row]]
) -> None:
    rows = wanted[name]
    assert difference(wanted, wanted) is None
    assert difference(wanted | {name: rows[:-3]}, wanted) is None
    for found in (
        [*rows[:5], rows[5], *rows[5:]],
        [*rows[:5], rows[6], rows[5], *rows[7:]],
        [*rows[:5], *rows[6:]],
        [*rows, rows[-1]],
        [rows[0] | {"k": "k9"}, *rows[1:]],
    ):
        told = difference(wanted | {name: found}, wanted)
        assert told is not None
        assert told.startswith(f"{name}: ")
