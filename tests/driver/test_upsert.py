"""Queries whose sink keeps the newest row of each key: what a run leaves, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.driver.scene import Row, loop_of, memory, plan_of, rows_of
from tidegate.errors import OptionError
from tidegate.plan.physical import Plan

ROWS: list[Row] = [(i * 0.7, "abcdef"[(i * i + i // 7) % 6], (i * 5) % 11) for i in range(60)]
EARLY = "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM s [RANGE 6 SECONDS SLIDE 3 SECONDS] GROUP BY k"

KEYED = {
    "early rows": (f"{EARLY} EMIT EVERY 1 SECOND", ("window_start", "window_end", "k")),
    "other names": (
        f"SELECT n, k AS who FROM ({EARLY} EMIT EVERY 1 SECOND) WHERE k <> 'a'",
        ("window_start", "window_end", "who"),
    ),
    "final rows": (
        f"{EARLY} HAVING n > 2 ORDER BY s DESC LIMIT 2",
        ("window_start", "window_end", "k"),
    ),
    "sessions": (
        "SELECT k, COUNT(*) AS n FROM s [SESSION GAP 2 SECONDS] GROUP BY k",
        ("window_start", "k"),
    ),
    "open sessions": (
        "SELECT k, COUNT(*) AS n FROM s [SESSION GAP 3 SECONDS] GROUP BY k EMIT EVERY 1 SECOND",
        ("window_start", "k"),
    ),
    "days": (
        "SELECT k, COUNT(*) AS n FROM s [RANGE 1 DAY TIME ZONE 'Asia/Tokyo'] GROUP BY k "
        "EMIT EVERY 5 SECONDS",
        ("window_start", "window_end", "k"),
    ),
    "distinct on": ("SELECT DISTINCT ON (k) k, v FROM s KEEP LAST WITHIN '4 seconds'", ("k",)),
    "rollup": (
        "SELECT k, GROUPING_ID() AS g, COUNT(*) AS n FROM s [RANGE 6 SECONDS] GROUP BY ROLLUP (k)",
        ("window_start", "window_end", "k", "g"),
    ),
}


def newest_of(plan: Plan, place: Path, key: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The last row of each key among all rows of the query, in their order."""
    sink = tg.sink.memory()
    loop_of(plan, [memory(*ROWS, end=True)], place, sink).run()
    names = sink.table().column_names
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows_of(sink):
        of = tuple(row[names.index(name)] for name in key)
        found.pop(of, None)
        found[of] = row
    return list(found.values())


@pytest.mark.parametrize("name", KEYED)
def test_the_newest_row_of_each_key_is_kept_across_restarts(name: str, tmp_path: Path) -> None:
    sql, key = KEYED[name]
    plan = plan_of(sql)
    assert plan.targets[0].key.names == key
    wanted = newest_of(plan, tmp_path / "all", key)
    assert len(wanted) > 3
    for batch_rows, instances in ((7, 1), (60, 3)):
        sink, place = tg.sink.memory(newest=True), tmp_path / str(batch_rows)
        for switched in range(100):
            source = memory(*ROWS, end=True)
            loop = loop_of(
                plan,
                [source],
                place,
                sink,
                batch_rows=batch_rows,
                instances=1 + switched % instances,
            )
            done = loop.step() is None
            loop.close()
            if done:
                break
        assert rows_of(sink) == wanted


def test_what_was_committed_and_not_published_is_kept_once(tmp_path: Path) -> None:
    plan = plan_of(f"{EARLY} EMIT EVERY 1 SECOND")
    sink = tg.sink.memory(newest=True)
    published = sink.publish

    def dies(*arguments: Any) -> None:
        raise RuntimeError("killed")

    for at in (1, 3):
        loop = loop_of(plan, [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=7)
        loop.step()
        sink.publish = dies  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="killed"):
            loop.step()
        loop.close()
        sink.publish = published  # type: ignore[method-assign]
        assert loop.manifest.batch >= at - 1
    loop_of(plan, [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=7).run()
    assert rows_of(sink) == newest_of(plan, tmp_path / "all", KEYED["early rows"][1])


@pytest.mark.parametrize(
    ("sql", "got"),
    [
        ("SELECT k, v FROM s WHERE v > 2", "got rows that each stand for themselves"),
        (
            "SELECT l.k FROM s l [RANGE 1 SECOND] JOIN s r [RANGE 1 SECOND] ON l.k = r.k",
            "got rows that each stand for themselves",
        ),
        ("SELECT k, SUM(v) AS s FROM s [ROWS 5] GROUP BY k", "got windows of tuples"),
        (f"SELECT n FROM ({EARLY})", "got rows without k, which tells them apart"),
        (
            "SELECT k, COUNT(*) AS n FROM s [RANGE 6 SECONDS] GROUP BY ROLLUP (k)",
            "got rows without grouping_id, which tells",
        ),
        (f"{EARLY} HAVING n > 2 EMIT EVERY 1 SECOND", "got a filter that a row may pass"),
        (f"{EARLY} ORDER BY s LIMIT 2 EMIT EVERY 1 SECOND", "got a limit that a row may be within"),
        ("SELECT DISTINCT ON (v % 2) k, v FROM s KEEP FIRST WITHIN 1 HOUR", "DISTINCT ON an expr"),
        (EARLY.replace("AS n", "AS _op"), "got a query with a column _op"),
    ],
)
def test_rows_without_a_key_are_refused_and_nothing_is_begun(
    sql: str, got: str, tmp_path: Path
) -> None:
    place = tmp_path / "checkpoint"
    with pytest.raises(OptionError) as refused:
        loop_of(plan_of(sql), [memory(*ROWS, end=True)], place, tg.sink.memory(newest=True))
    assert got in str(refused.value)
    assert not any(place.rglob("*"))
