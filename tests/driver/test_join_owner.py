"""Who takes buckets of a join over: it computes nothing of what others have stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.driver.test_join_state import BANDS, EQUAL, loop_of
from tidegate.driver.loop import Loop
from tidegate.elastic.request import Request, Scale
from tidegate.operate import instance_cache, segment_cache
from tidegate.operate.join import instance, match, state, tuple_order
from tidegate.operate.join.chain import run_index
from tidegate.operate.join.placement import division
from tidegate.operate.join.predicate import bound
from tidegate.state.segment.segment import read_segment

SIZES = {"rows": 60_000, "rate": 8_000, "domain": 16_000}


def new_process() -> None:
    """Go on as one that has searched nothing yet."""
    instance_cache.forget()
    run_index._INDEXES.clear()
    segment_cache._OPENED._kept.clear()


def to_the_switch(sql: str, folder: Path) -> tuple[Loop, Any]:
    """A loop with some state and few rows to come before its next batch, which has three owners."""
    loop, sink = loop_of(sql, folder, 40_000, **SIZES)
    loop.step()
    loop.step()
    loop.controls.ask(Request(Scale(3)))
    new_process()
    return loop, sink


@pytest.mark.parametrize("sql", [BANDS, EQUAL], ids=["band", "equal"])
def test_keys_and_counts_are_in_the_segments(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, sink = to_the_switch(sql, tmp_path / "switched")
    stored = sum(s.rows for s in loop.manifest.segments())
    assert stored > 60_000
    looked: list[int] = []

    def key_of(probe: Any, side: int, table: pa.Table) -> Any:
        looked.append(table.num_rows)
        return bound.key_of(probe, side, table)

    def counted(*_: Any) -> Any:
        raise AssertionError("the buckets of stored tuples are counted in their segments")

    monkeypatch.setattr(match, "key_of", key_of)
    monkeypatch.setattr(division, "known", counted)
    loop.step()
    assert sum(looked) < stored / 10
    loop.run()
    whole, expected = loop_of(sql, tmp_path / "whole", 240_000, **SIZES)
    whole.run()
    assert expected.table().num_rows > 100
    assert sink.table().equals(expected.table())


def test_segments_without_keys_are_searched_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions before wrote them."""
    for module in (instance, state):
        monkeypatch.setattr(module, "with_key", lambda table, key: table)
    loop, sink = to_the_switch(BANDS, tmp_path / "old")
    names = [read_segment(loop.store, s).column_names for s in loop.manifest.segments()]
    assert all(tuple_order.KEY not in columns for columns in names)
    monkeypatch.undo()
    loop.step()
    new_process()
    loop.run()
    whole, expected = loop_of(BANDS, tmp_path / "whole", 240_000, **SIZES)
    whole.run()
    assert sink.table().equals(expected.table())
