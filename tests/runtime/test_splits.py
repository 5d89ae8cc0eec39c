"""Map tasks and time cuts follow from the gate's cut alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from tests.runtime.scene import table
from tidegate.batch import MAX_US, MIN_US
from tidegate.gate.intake import Cut, Intake, Taken
from tidegate.gate.track import Slice
from tidegate.runtime import splits
from tidegate.runtime.splits import splits_of, time_cuts
from tidegate.schema import TIME
from tidegate.source.memory import MemorySource
from tidegate.source.uri import open_uri


def cut_of(*sources: MemorySource, hold: bool = False, limit: int = 100) -> Cut:
    intake = Intake(hold)
    for source in sources:
        intake.add(0, source, 0)
    cut = intake.next_cut(limit, 0.0)
    assert cut is not None
    return cut


def memory(*times: float, id: str = "m") -> MemorySource:
    return MemorySource(table(*[(t, "k", int(t)) for t in times]), time="ts", id=id)


def late(split: splits.Split) -> list[bool]:
    count = split.stop - split.start
    if split.late is None:
        return [False] * count
    bits = np.unpackbits(np.frombuffer(split.late, np.uint8), count=count)
    return [bool(b) for b in bits]


def test_a_source_is_cut_into_splits_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "SPLIT_ROWS", 3)
    made = splits_of(cut_of(memory(1, 2, 3, 4, 1, 5, 6, id="a"), memory(2, 3, id="b")))
    ranges = [(s.index, s.source, s.order, s.start, s.stop) for s in made]
    assert ranges == [(0, "a", 0, 0, 3), (1, "a", 0, 3, 6), (2, "a", 0, 6, 7), (3, "b", 1, 0, 2)]
    assert made[0].late is None
    assert late(made[1]) == [False, True, False]
    read = [v for s in made[:3] for v in s.reader.read(["v"]).table.column("v").to_pylist()]
    assert read == [1, 2, 3, 4, 1, 5, 6]


@pytest.mark.parametrize(
    ("stop", "breaks", "bounds"),
    [
        (10, None, [0, 4, 8, 10]),
        (10, [], [0, 4, 10]),  # one row group: the task that decodes it reads up to twice as many
        (8, [], [0, 8]),
        (12, [6], [0, 6, 12]),
        (12, [2, 4, 6, 8, 10], [0, 4, 8, 12]),
        (12, [3, 6, 9], [0, 3, 6, 9, 12]),
        (30, [2, 28], [0, 2, 6, 10, 14, 18, 22, 28, 30]),
    ],
)
def test_splits_begin_where_decoding_may_begin(
    stop: int, breaks: list[int] | None, bounds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "SPLIT_ROWS", 4)
    assert splits._bounds(0, stop, breaks) == bounds


def test_row_groups_and_blocks_are_read_by_one_task(tmp_path: Path) -> None:
    rows = pa.table({"ts": pa.array(range(10), TIME), "v": range(10)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=4)
    csv.write_csv(rows, tmp_path / "a.csv")
    for name, breaks in (("a.parquet", [4, 8]), ("a.csv", [])):
        source = open_uri(str(tmp_path / name), "s", "ts", follow=False).discover()[0]
        assert source.extend(10) == 10
        assert source.breaks(0, 10) == breaks


def test_tuples_that_waited_are_in_the_split_but_are_not_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(splits, "SPLIT_ROWS", 2)
    fast, slow = memory(10, 11, 12, id="fast"), memory(1, id="slow")
    intake = Intake(hold=True)
    for source in (fast, slow):
        intake.add(0, source, 0)
    intake.next_cut(100, 0.0)
    fast.append(table((13, "k", 13)))
    cut = intake.next_cut(100, 0.0)
    assert cut is not None
    made = [s for s in splits_of(cut) if s.source == "fast"]
    assert [(s.start, s.new_from, s.stop) for s in made] == [(0, 3, 2), (2, 3, 4)]


def test_an_empty_cut_has_no_splits() -> None:
    assert splits_of(Cut((), 0, MIN_US, MAX_US, True)) == []


@dataclass
class Anything:
    order: int = 0


def cut_between(low: int, high: int, previous: int, reached: int) -> Cut:
    track: Any = Anything()
    part = Taken(0, track, Slice(0, 0, 1, None, 0, low, high))
    return Cut((part,), 1, previous, reached, False)


@pytest.mark.parametrize("instances", [1, 2, 3, 7])
def test_time_cuts_divide_the_ready_range_evenly(instances: int) -> None:
    cuts = time_cuts(cut_between(0, 1000, MIN_US, MAX_US), instances)
    assert len(cuts) == instances - 1
    widths = np.diff([0, *cuts, 1000])
    assert widths.max() - widths.min() <= 1


def test_time_cuts_look_at_what_is_ready_only() -> None:
    assert time_cuts(cut_between(0, 1000, 100, 300), 2) == (200,)
    assert time_cuts(cut_between(MIN_US + 1, MAX_US - 1, MIN_US, MAX_US), 2) == (-1,)


def test_time_cuts_where_nothing_is_ready() -> None:
    assert time_cuts(Cut((), 0, 5, 9, False), 3) == (MAX_US, MAX_US)
    assert time_cuts(cut_between(7, 7, 5, 9), 3) == (7, 7)
    assert time_cuts(cut_between(MAX_US, MIN_US, 5, 9), 2) == (MAX_US,)
