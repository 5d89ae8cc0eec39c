"""The rewriter of joins by itself: against answers by hand and the join tuple by tuple."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.duckdb.compare import Streamed, by_duckdb
from tests.oracle.join import Joined, Newest, Within
from tests.oracle.query import PlainStream, interpret

Rows = list[tuple[int, int | None]]


def table(rows: Rows) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array([t for t, _ in rows], pa.timestamp("us")),
            "v": pa.array([v for _, v in rows], pa.int64()),
        }
    )


def answer(text: str, **streams: list[Rows]) -> list[tuple[Any, ...]]:
    given = {n: Streamed([table(r) for r in rows]) for n, rows in streams.items()}
    found = by_duckdb(text, given)
    columns = [found.column("ts").cast(pa.int64()), *found.columns[1:]]
    return list(zip(*(c.to_pylist() for c in columns), strict=True))


@pytest.mark.parametrize(
    ("windows", "wanted"),
    [
        (("RANGE 2 MICROSECONDS", "RANGE 0 MICROSECONDS"), [(3, 1, 3), (5, 5, 5)]),
        (("RANGE 0 MICROSECONDS", "RANGE 2 MICROSECONDS"), [(5, 5, 3), (5, 5, 5)]),
        (("ROWS 1", "RANGE 0 MICROSECONDS"), [(3, 1, 3), (5, 5, 5)]),
        (("RANGE 0 MICROSECONDS", "ROWS 1"), [(5, 5, 3), (5, 5, 5), (9, 9, 5)]),
    ],
)
def test_pairs_and_their_order(
    windows: tuple[str, str], wanted: list[tuple[int, int, int]]
) -> None:
    text = f"SELECT l.v AS a, r.v AS b FROM l [{windows[0]}] JOIN r [{windows[1]}] ON TRUE"
    assert answer(text, l=[[(1, 1), (5, 5), (9, 9)]], r=[[(3, 3), (5, 5)]]) == wanted


def test_a_stream_meets_itself() -> None:
    text = "SELECT a.v AS x, b.v AS y FROM s AS a [ROWS 1] JOIN s AS b [ROWS 1] ON a.v <> b.v"
    # In the total order: a1 b1 a2 b2 a3 b3, where a1 and a2, b1 and b2 have one time.
    got = answer(text, s=[[(7, 1), (7, 2), (8, 3)]])
    assert got == [(7, 2, 1), (8, 3, 2)]


SOURCES = st.lists(
    st.lists(st.tuples(st.integers(-4, 9), st.sampled_from([None, 0, 1, 2])), max_size=7).map(
        lambda rows: sorted(rows, key=lambda row: row[0])
    ),
    min_size=1,
    max_size=3,
)
WINDOWS = st.one_of(st.integers(0, 6).map(Within), st.integers(1, 4).map(Newest))


def _text(window: Within | Newest) -> str:
    if isinstance(window, Within):
        return f"[RANGE {window.range_us} MICROSECONDS]"
    return f"[ROWS {window.rows}]"


@given(SOURCES, SOURCES, WINDOWS, WINDOWS)
def test_duckdb_and_the_join_tuple_by_tuple_agree(
    left: list[Rows], right: list[Rows], a: Within | Newest, b: Within | Newest
) -> None:
    text = (
        f"SELECT l.v AS a, r.v AS b, r.ts >= l.ts AS after FROM l {_text(a)} JOIN r {_text(b)} "
        "ON l.v <= r.v OR r.v IS NULL WHERE l.v > 0 OR r.v < 2"
    )

    def on(x: Any, y: Any) -> bool:
        below = y["v"] is None or (x["v"] is not None and x["v"] <= y["v"])
        small = y["v"] is not None and y["v"] < 2
        return below and ((x["v"] is not None and x["v"] > 0) or small)

    query = Joined(a, b, on, lambda x, y: (x["v"], y["v"], y["ts"] >= x["ts"]))
    streams = [
        PlainStream(name, [[{"ts": t, "v": v} for t, v in rows] for rows in sources])
        for name, sources in (("l", left), ("r", right))
    ]
    assert answer(text, l=left, r=right) == interpret(query, streams).rows
