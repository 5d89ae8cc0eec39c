"""The first rows of partitions of windows, beside a plain count."""

from __future__ import annotations

from math import inf
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.collect.numbering import RANKINGS, Numbering
from tidegate.collect.ranking import RankFilter
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


def plain(rows: list[Any], kind: str, least: float, most: float) -> list[Any]:
    """Rows by how many of their partition come before them, or values of them."""

    def value(row: Any) -> tuple[bool, int]:
        return (row[2] is None, -(row[2] or 0))  # descending, NULL last

    kept = []
    for row in rows:
        others = [r for r in rows if r[:2] == row[:2]]
        before = [r for r in others if value(r) < value(row)]
        ties = [r for r in others if value(r) == value(row) and r[3] < row[3]]
        alike = [r for r in others if value(r) <= value(row)]
        place, few, longer = len(before) + len(ties), *divmod(len(others), 3)
        tiles = [t for t in range(3) for _ in range(few + (t < longer))]
        number = {
            "ROW_NUMBER": place + 1,
            "RANK": len(before) + 1,
            "DENSE_RANK": len({value(r) for r in before}) + 1,
            "NTILE": tiles[place] + 1,
            "PERCENT_RANK": len(before) / max(len(others) - 1, 1),
            "CUME_DIST": len(alike) / len(others),
        }[kind]
        if least <= number <= most:
            kept.append(row)
    return kept


NUMBERS = st.sampled_from([0, 0.25, 0.5, 1, 2, 3, 4, inf])


@pytest.mark.parametrize("kind", RANKINGS)
@given(rows=ROWS, most=NUMBERS, least=st.just(-inf) | NUMBERS)
def test_rows_are_kept_by_their_number(
    kind: str, rows: list[Any], most: float, least: float
) -> None:
    rows = [(*row[:3], 10 * row[3] + place) for place, row in enumerate(rows[:10])]
    table = pa.table(
        {
            "window_end": pa.array([r[0] for r in rows], pa.int64()).cast(TIME),
            "~p000": pa.array([r[1] for r in rows], pa.string()),
            "~q000": pa.array([r[2] for r in rows], pa.int64()),
            "~k000": pa.array([r[3] for r in rows], pa.int64()),
        }
    )
    numbering = Numbering(most, least, kind, tiles=3 if kind == "NTILE" else 0)
    ranking = RankFilter(numbering, (Direction(descending=True, nulls_first=False),))
    whole = ranking.kept(table)
    assert whole.column("~k000").to_pylist() == [r[3] for r in plain(rows, kind, least, most)]
    halves = [ranking.kept(table.slice(a, b), partly=True) for a, b in ((0, 5), (5, 5))]
    assert ranking.kept(pa.concat_tables(halves)) == whole
