"""Followed input: files that appear and files that grow, step by step."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.driver.scene import (
    COUNTS,
    PASSED,
    Row,
    csv,
    drain,
    loop_of,
    moment,
    opened,
    plan_of,
    rows_of,
    run_dry,
    table,
)
from tidegate.errors import GateError
from tidegate.sink.memory import MemorySink


def jsonl(path: Path, *rows: Row) -> None:
    with path.open("a") as file:
        for t, k, v in rows:
            file.write(json.dumps({"ts": moment(t), "k": k, "v": v}) + "\n")


def test_a_folder_that_gets_new_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(table((1, "a", 1), (12, "a", 2)), folder / "1.parquet")
    sink = MemorySink()
    loop = loop_of(plan_of(COUNTS), [opened(str(folder))], tmp_path / "c", sink)
    assert drain(loop) == 1
    assert rows_of(sink) == [(0.0, 10.0, "a", 1, 1)]
    assert drain(loop) == 0
    pq.write_table(table((13, "a", 3), (25, "b", 4)), folder / "2.parquet")
    assert drain(loop) == 1
    assert rows_of(sink)[1:] == [(10.0, 20.0, "a", 5, 2)]
    assert not loop.manifest.finished
    loop.close()


def test_a_restart_of_a_followed_folder_takes_only_what_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(table((1, "a", 1), (12, "a", 2)), folder / "1.parquet")
    sink, plan = MemorySink(), plan_of(COUNTS)
    loop = loop_of(plan, [opened(str(folder))], tmp_path / "c", sink)
    drain(loop)
    loop.close()
    pq.write_table(table((13, "a", 3), (25, "b", 4)), folder / "2.parquet")
    again = loop_of(plan, [opened(str(folder))], tmp_path / "c", sink)
    assert drain(again) == 1
    again.close()
    assert again.manifest.counters["rows_in"] == 4
    assert rows_of(sink) == [(0.0, 10.0, "a", 1, 1), (10.0, 20.0, "a", 5, 2)]


def test_a_followed_run_that_is_continued_without_following_ends(tmp_path: Path) -> None:
    place = csv(tmp_path / "s.csv", (1, "a", 1), (12, "a", 2))
    sink, plan = MemorySink(), plan_of(COUNTS)
    loop = loop_of(plan, [opened(place)], tmp_path / "c", sink)
    drain(loop)
    loop.close()
    again = loop_of(plan, [opened(place, follow=False)], tmp_path / "c", sink)
    assert again.run().finished
    assert rows_of(sink) == [(0.0, 10.0, "a", 1, 1), (10.0, 20.0, "a", 2, 1)]


def test_a_csv_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    csv(path, (1, "a", 1))
    sink = MemorySink()
    loop = loop_of(plan_of(COUNTS), [opened(str(path))], tmp_path / "c", sink)
    assert drain(loop) == 1
    with path.open("a") as file:
        file.write(f"{moment(5)},a,2\n{moment(11)},b")
    assert drain(loop) == 1
    assert loop.manifest.counters["rows_in"] == 2
    with path.open("a") as file:
        file.write(",3\n")
    assert drain(loop) == 1
    assert loop.manifest.counters["rows_in"] == 3
    assert rows_of(sink) == [(0.0, 10.0, "a", 3, 2)]
    loop.close()


def test_a_json_file_that_grows_across_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    jsonl(path, (1, "a", 1), (2, "b", 2))
    sink, plan = MemorySink(), plan_of(PASSED)
    run_dry(loop_of(plan, [opened(str(path))], tmp_path / "c", sink))
    jsonl(path, (3, "c", 3))
    loop = loop_of(plan, [opened(str(path))], tmp_path / "c", sink)
    assert drain(loop) == 1
    jsonl(path, (4, "d", 4))
    assert drain(loop) == 1
    assert rows_of(sink) == [(1.0, "a", 1), (2.0, "b", 2), (3.0, "c", 3)]
    loop.close()


def test_an_older_row_in_a_file_that_grows_is_late_whenever_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    csv(path, (1, "a", 1), (12, "a", 2))
    loop = loop_of(plan_of(COUNTS), [opened(str(path))], tmp_path / "c")
    drain(loop)
    csv(path, (11, "a", 9), (13, "a", 3), more=True)
    drain(loop)
    loop.close()
    assert loop.manifest.counters["rows_late"] == 1


def test_a_followed_file_that_shrinks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    csv(path, (1, "a", 1), (12, "a", 2))
    loop = loop_of(plan_of(COUNTS), [opened(str(path))], tmp_path / "c")
    drain(loop)
    csv(path, (1, "a", 1))
    with pytest.raises(GateError, match=r"s\.csv: a followed file must only grow"):
        drain(loop)
    loop.close()


def test_two_folders_of_one_stream_hold_each_other_back(tmp_path: Path) -> None:
    for name in "xy":
        (tmp_path / name).mkdir()
    csv(tmp_path / "x" / "1.csv", (1, "a", 1), (30, "a", 1))
    csv(tmp_path / "y" / "1.csv", (2, "b", 1))
    sink = MemorySink()
    connections = [opened(str(tmp_path / name)) for name in "xy"]
    loop = loop_of(plan_of(COUNTS), connections, tmp_path / "c", sink)
    drain(loop)
    assert loop.manifest.frontier_us == 2_000_000
    csv(tmp_path / "y" / "2.csv", (3, "b", 1), (40, "b", 1))
    drain(loop)
    assert loop.manifest.frontier_us == 30_000_000
    assert rows_of(sink) == [(0.0, 10.0, "a", 1, 1), (0.0, 10.0, "b", 2, 2)]
    loop.close()
