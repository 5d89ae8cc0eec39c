"""Samples of open panes are thinned as batches come, and windows are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import loop_of, memory, plan_of, rows_of, table
from tidegate.operate import instance_cache
from tidegate.sink.memory import MemorySink

SQL = "SELECT {} MEDIAN(v) AS m FROM s [RANGE 4 MINUTES] {} WITH ERROR 7 PERCENT BY MEAN"
ROWS = [(t / 100, "ab"[t % 2], t * t % 97) for t in range(15_000)]
BATCHES = 20


@pytest.mark.parametrize("grouped", [False, True], ids=["scalar", "grouped"])
def test_what_waits_grows_slowly_with_the_batches(grouped: bool, tmp_path: Path) -> None:
    sql = SQL.format("k,", "GROUP BY k") if grouped else SQL.format("", "")

    def ran(name: str, remembers: bool) -> tuple[int, list[Any]]:
        source, sink = memory(id="m"), MemorySink()
        loop, most = loop_of(plan_of(sql), [source], tmp_path / name, sink), 0
        size = len(ROWS) // BATCHES
        for first in range(0, len(ROWS), size):
            source.append(table(*ROWS[first : first + size]))
            if not remembers:
                instance_cache.forget()
            loop.step()
            most = max(most, loop.summary.as_dict()["state_bytes"])
        source.end()
        loop.run()
        return most, rows_of(sink)

    plenty, expected = ran("forgets", remembers=False)
    few, found = ran("remembers", remembers=True)
    assert found == expected
    assert {row[-1] for row in expected} == {False}
    assert few < plenty / 2
