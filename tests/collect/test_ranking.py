"""The first rows of partitions of windows, beside a plain count."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.collect.ranking import RANKINGS, RankFilter
from tidegate.order import Direction
from tidegate.schema import TIME

ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, 1, 2, 3]),
        st.integers(0, 9),
    ),
    max_size=30,
)


def plain(rows: list[Any], kind: str, most: int) -> list[Any]:
    """Rows by how many of their partition come before them, or values of them."""

    def value(row: Any) -> tuple[bool, int]:
        return (row[2] is None, -(row[2] or 0))  # descending, NULL last

    kept = []
    for row in rows:
        others = [r for r in rows if r[:2] == row[:2]]
        before = [r for r in others if value(r) < value(row)]
        ties = [r for r in others if value(r) == value(row) and r[3] < row[3]]
        number = {
            "ROW_NUMBER": len(before) + len(ties),
            "RANK": len(before),
            "DENSE_RANK": len({value(r) for r in before}),
        }[kind]
        if number < most:
            kept.append(row)
    return kept


@pytest.mark.parametrize("kind", RANKINGS)
@given(rows=ROWS, most=st.integers(0, 4))
def test_rows_are_kept_by_their_number(kind: str, rows: list[Any], most: int) -> None:
    rows = [(*row[:3], 10 * row[3] + place) for place, row in enumerate(rows[:10])]
    table = pa.table(
        {
            "window_end": pa.array([r[0] for r in rows], pa.int64()).cast(TIME),
            "~p000": pa.array([r[1] for r in rows], pa.string()),
            "~q000": pa.array([r[2] for r in rows], pa.int64()),
            "~k000": pa.array([r[3] for r in rows], pa.int64()),
        }
    )
    ranking = RankFilter(kind, most, (Direction(descending=True, nulls_first=False),))
    whole = ranking.first(table)
    assert whole.column("~k000").to_pylist() == [r[3] for r in plain(rows, kind, most)]
    halves = [ranking.first(table.slice(a, b)) for a, b in ((0, 5), (5, 5))]
    assert ranking.first(pa.concat_tables(halves)) == whole
