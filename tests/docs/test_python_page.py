"""The lines of docs/python.md that look at streams and choose columns, run as they stand."""

from __future__ import annotations

import tidegate as tg
from tests.docs.block import blocks
from tidegate import col

WORDS = (
    "rides.columns",
    'rides.select("*"',
    "level = tg.when",
    "orders = s.stream",
    "once = rides",
    "busy = (",
    "totals = rides",
)


def test_the_lines_about_columns_run() -> None:
    s = tg.Session(master="none")
    row = {"ts": "2024-01-31T12:00:00Z", "route": "a", "fare": 5.0, "tip": 1.0}
    row |= {"medallion": "m", "dropoff_time": "2024-01-31", "payment": "CRD"}
    rides = s.stream([row])
    names = {"tg": tg, "s": s, "rides": rides, "top": rides, "col": col}
    names |= {n: getattr(tg, n) for n in ("count", "lag", "lead", "mean", "row_number", "sum")}
    ran = [b for b in blocks("docs/python.md", "python") if any(w in b for w in WORDS)]
    assert len(ran) == len(WORDS)
    for block in ran:
        exec(compile(block, "docs/python.md", "exec"), names)
    levels = rides.select(level=names["level"]).preview().to_pylist()
    assert [r["level"] for r in levels] == ["low"]
