"""Folders of many files: what the manifest keeps of them, and restarts with files come and gone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.driver.scene import COUNTS, PASSED, csv, drain, loop_of, opened, plan_of, rows_of, table
from tidegate.driver.loop import Loop
from tidegate.errors import SourceError
from tidegate.gate import names
from tidegate.schema import TIME
from tidegate.session.query import RunningQuery
from tidegate.sink.memory import MemorySink
from tidegate.source.parquet import ParquetFormat
from tidegate.state.inspect import describe
from tidegate.state.store import Store


def parquet_file(folder: Path, name: str, *seconds: float) -> None:
    folder.mkdir(exist_ok=True)
    rows = [(s, "k", int(s)) for s in seconds]
    pq.write_table(table(*rows), folder / f"{name}.parquet")


def folded(loop: Loop) -> dict[str, Any]:
    """The entry of the manifest for all sources that have none of their own."""
    (entry,) = [s for s in loop.manifest.sources if s["id"] == "(consumed)"]
    return dict(entry)


def manifest_bytes(checkpoint: Path) -> int:
    return max(checkpoint.joinpath("manifest").glob("*.json")).stat().st_size


def values(sink: MemorySink) -> list[int]:
    return [row[-1] for row in rows_of(sink)]


def test_the_manifest_does_not_grow_with_the_files_consumed(tmp_path: Path) -> None:
    folder, sizes = tmp_path / "in", []
    for number in range(300):
        parquet_file(folder, f"{number:04d}", 10 * number, 10 * number + 5)
    loop = loop_of(
        plan_of(COUNTS), [opened(str(folder), follow=False)], tmp_path / "c", batch_rows=20
    )
    while loop.step() is not None:
        sizes.append(manifest_bytes(tmp_path / "c"))
    loop.close()
    assert len(sizes) == 30
    assert max(sizes) - min(sizes) < 100
    entry = folded(loop)
    assert (entry["consumed"], entry["unread"], entry["ended"]) == (300, 0, True)
    assert entry["log"]["orders"] == [[0, 299]]
    assert entry["last"].endswith("0299.parquet")
    assert entry["floor_us"] == 2_995_000_000


def test_what_is_read_in_another_order_than_that_of_the_names(tmp_path: Path) -> None:
    """A first file that comes last in time is a gap, which closes when it has been read."""
    folder = tmp_path / "in"
    parquet_file(folder, "0", 1000)
    for number in range(1, 8):
        parquet_file(folder, str(number), number, number + 0.5)
    loop = loop_of(plan_of(PASSED), [opened(str(folder), False)], tmp_path / "c", batch_rows=4)
    loop.step()
    loop.step()
    assert folded(loop)["log"]["orders"] == [[1, 4]]
    assert folded(loop)["unread"] == 4
    drain(loop)
    loop.close()
    assert folded(loop)["log"]["orders"] == [[0, 7]]


def test_a_file_that_comes_below_those_consumed_is_read(tmp_path: Path) -> None:
    """While the query runs and while it does not; no file is read twice."""
    folder, sink, plan = tmp_path / "in", MemorySink(), plan_of(PASSED)
    parquet_file(folder, "m", 1, 2)
    loop = loop_of(plan, [opened(str(folder))], tmp_path / "c", sink)
    drain(loop)
    parquet_file(folder, "b", 3, 4)
    drain(loop)
    loop.close()
    assert folded(loop)["consumed"] == 1, "the tuple at 4 waits: more may come at that time"
    parquet_file(folder, "a", 5, 6)
    again = loop_of(plan, [opened(str(folder))], tmp_path / "c", sink)
    drain(again)
    parquet_file(folder, "c", 7, 8)
    drain(again)
    again.close()
    assert folded(again)["consumed"] == 3
    assert values(sink) == [1, 2, 3, 4, 5, 6, 7]
    third = loop_of(plan, [opened(str(folder), follow=False)], tmp_path / "c", sink)
    assert third.run().finished
    assert values(sink) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert third.manifest.counters["rows_in"] == 8


def test_consumed_files_may_be_gone(tmp_path: Path) -> None:
    folder, sink, plan = tmp_path / "in", MemorySink(), plan_of(COUNTS)
    for number in range(6):
        parquet_file(folder, str(number), 10 * number, 10 * number + 5)
    loop = loop_of(plan, [opened(str(folder))], tmp_path / "c", sink, batch_rows=6)
    loop.step()
    loop.close()
    for number in range(3):
        (folder / f"{number}.parquet").unlink()
    again = loop_of(plan, [opened(str(folder))], tmp_path / "c", sink, batch_rows=6)
    drain(again)
    again.close()
    assert again.manifest.counters["rows_in"] == 12
    assert [row[0] for row in rows_of(sink)] == [0.0, 10.0, 20.0, 30.0, 40.0]


@pytest.mark.parametrize("files", [6, names.FEW_NAMES + 20])
def test_an_unread_file_that_is_gone_is_named(tmp_path: Path, files: int) -> None:
    folder, plan = tmp_path / "in", plan_of(COUNTS)
    for number in range(files):
        parquet_file(folder, f"{number:03d}", 10 * number, 10 * number + 5)
    loop = loop_of(plan, [opened(str(folder), False)], tmp_path / "c", batch_rows=4)
    loop.step()
    loop.close()
    gone = folder / f"{files - 2:03d}.parquet"
    gone.rename(tmp_path / "away")
    with pytest.raises(SourceError) as raised:
        loop_of(plan, [opened(str(folder), False)], tmp_path / "c", batch_rows=4)
    assert str(raised.value) == (
        f"{gone}: was read up to row 0 by this checkpoint and must be there; got no such source. "
        "Put it back, or start from an empty checkpoint."
    )
    (tmp_path / "away").rename(gone)
    again = loop_of(plan, [opened(str(folder), False)], tmp_path / "c", batch_rows=1000)
    assert again.run().counters["rows_in"] == 2 * files


def test_a_folder_that_is_not_named_again_is_told_by_its_first_unread_file(tmp_path: Path) -> None:
    folder, other, plan = tmp_path / "in", tmp_path / "other", plan_of(COUNTS)
    for number in range(3):
        parquet_file(folder, str(number), 10 * number)
        parquet_file(other, str(number), 10 * number)
    inlets = [opened(str(place), False) for place in (other, folder)]
    loop = loop_of(plan, inlets, tmp_path / "c", batch_rows=2)
    loop.step()
    loop.close()
    with pytest.raises(SourceError, match=r"in/1\.parquet: was read up to row 0"):
        loop_of(plan, [opened(str(other), False)], tmp_path / "c")


def test_a_text_file_that_grew_after_it_was_consumed_is_read_on(tmp_path: Path) -> None:
    folder, sink, plan = tmp_path / "in", MemorySink(), plan_of(PASSED)
    folder.mkdir()
    csv(folder / "1.csv", (1, "k", 1), (2, "k", 2))
    csv(folder / "2.csv", (3, "k", 3), (9, "k", 9))
    csv(folder / "3.csv", (20, "k", 20))
    loop = loop_of(plan, [opened(str(folder))], tmp_path / "c", sink)
    drain(loop)
    loop.close()
    assert folded(loop)["consumed"] == 2
    csv(folder / "1.csv", (21, "k", 21), (22, "k", 22), more=True)
    again = loop_of(plan, [opened(str(folder), follow=False)], tmp_path / "c", sink)
    assert again.run().finished
    assert values(sink) == [1, 2, 3, 9, 20, 21, 22]
    assert again.manifest.counters["rows_late"] == 0
    assert folded(again)["consumed"] == 3


def test_names_go_into_files_of_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = 8
    monkeypatch.setattr(names, "FEW_NAMES", few)
    folder, plan = tmp_path / "in", plan_of(COUNTS)
    parquet_file(folder, "000", 0, 5)
    loop = loop_of(plan, [opened(str(folder))], tmp_path / "c")
    sizes = []
    for number in range(1, 6 * few):
        parquet_file(folder, f"{number:03d}", 10 * number, 10 * number + 5)
        drain(loop)
        sizes.append(manifest_bytes(tmp_path / "c"))
        assert set(loop.manifest.files) <= {f"gate/{p.name}" for p in _pages(tmp_path)}
    loop.close()
    assert 1 <= len(loop.manifest.files) <= 4
    assert max(sizes) < min(sizes) + 2 * few * len(str(folder / "000.parquet"))
    again = loop_of(plan, [opened(str(folder))], tmp_path / "c")
    assert drain(again) == 0
    again.close()
    assert {f"gate/{p.name}" for p in _pages(tmp_path)} == set(loop.manifest.files)


def _pages(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "c" / "gate").glob("names-*.arrow"))


class Stopped(Exception):
    """The end of a process."""


def test_a_crash_around_a_commit_loses_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are in a page before the manifest is there, or in no manifest at all."""
    monkeypatch.setattr(names, "FEW_NAMES", 2)
    arriving = [(f"{number * 7 % 10}", 10 * number, 10 * number + 5) for number in range(10)]

    def run(place: Path, crash: tuple[str, int] | None) -> tuple[list[Any], list[Any]]:
        def observe(step: str, batch: int) -> None:
            if (step, batch) == crash and not crashed:
                crashed.append(batch)
                raise Stopped

        sink, plan, folder = MemorySink(), plan_of(COUNTS), place / "in"
        crashed: list[int] = []
        place.mkdir()
        parquet_file(folder, *arriving[0])
        loop = loop_of(plan, [opened(str(folder))], place / "c", sink, observer=observe)
        for file in arriving[1:]:
            parquet_file(folder, *file)
            try:
                drain(loop)
            except Stopped:
                loop.close()
                loop = loop_of(plan, [opened(str(folder))], place / "c", sink, observer=observe)
                drain(loop)
        loop.close()
        assert bool(crashed) == (crash is not None)
        assert [f"gate/{p.name}" for p in _pages(place)] == sorted(loop.manifest.files)
        entry = folded(loop)
        pages = [[_of_any_owner(page[0]), page[1]] for page in entry["log"]["names"]["pages"]]
        recent = [[order, Path(n).name, e] for order, n, e, _ in entry["log"]["names"]["recent"]]
        return rows_of(sink), [entry["log"]["orders"], entry["consumed"], pages, recent]

    wanted = run(tmp_path / "whole", None)
    assert wanted[1][0] == [[0, 9]]
    tried = 0
    for step in ("before commit", "after commit", "after publish"):
        for batch in range(1, 9):
            found = run(tmp_path / f"{step}-{batch}", (step, batch))
            assert found == wanted
            tried += 1
    assert tried == 24


def _of_any_owner(page: str) -> str:
    return re.sub(r"\.\d+\.arrow$", ".arrow", page)


def test_what_is_shown_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number in range(4):
        parquet_file(folder, str(number), 10 * number, 10 * number + 5)
    loop = loop_of(plan_of(COUNTS), [opened(str(folder), False)], tmp_path / "c", batch_rows=3)
    loop.step()
    (first, reading) = RunningQuery(loop).status()["sources"]
    loop.close()
    assert (first["consumed"], first["unread"], "log" in first) == (1, 2, False)
    assert reading["position"] == 1
    lines = describe(Store.open(str(tmp_path / "c"))).splitlines()
    (shown,) = [line for line in lines if line.startswith("  id (consumed), ")]
    assert f"last {folder}/0.parquet" in shown
    assert "unread 2" in shown
    assert "names" not in shown


def test_an_unread_file_that_goes_away_fails_the_batch_that_reaches_it(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number in range(3):
        parquet_file(folder, str(number), 10 * number, 10 * number + 5)
    loop = loop_of(plan_of(COUNTS), [opened(str(folder), False)], tmp_path / "c", batch_rows=1)
    loop.step()
    (folder / "1.parquet").unlink()
    with pytest.raises(SourceError, match=r"1\.parquet: the file must be a whole, readable"):
        drain(loop)
    loop.close()


def test_an_announced_folder_keeps_its_promise_across_a_restart(tmp_path: Path) -> None:
    first, second, sink = tmp_path / "a", tmp_path / "b", MemorySink()
    parquet_file(first, "0", 1, 50)
    for number, seconds in enumerate([(49, 60), (61, 62), (63, 64)]):
        parquet_file(second, str(number), *seconds)
    plan = plan_of(PASSED, disorder_s=5)
    loop = loop_of(plan, [opened(str(first))], tmp_path / "c", sink, batch_rows=1)
    drain(loop)
    loop.controls.announce(opened(str(second)), 55_000_000)
    assert loop.step() is not None
    loop.close()
    again = loop_of(plan, [opened(str(first))], tmp_path / "c", sink, batch_rows=1, follow=True)
    parquet_file(first, "1", 90)
    drain(again)
    again.close()
    assert again.manifest.counters["rows_late"] == 1
    assert values(sink) == [1, 50]
    assert again.manifest.frontier_us == 59_000_000


@pytest.mark.parametrize("overlap", [0, 2000])
def test_a_batch_of_a_thousand_rows_decodes_a_few_of_a_thousand_files(
    tmp_path: Path, overlap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rows = tmp_path / "in", 5000
    folder.mkdir()
    keys = pa.array(["k"] * rows)
    for number in range(1000):
        first = number * (rows - overlap)
        times = pa.array(range(first, first + rows), pa.int64()).cast(TIME)
        columns = {"ts": times, "k": keys, "v": times.cast(pa.int64())}
        pq.write_table(pa.table(columns), folder / f"{number:04d}.parquet", compression="none")
    decoded: list[str] = []
    decode = ParquetFormat.decode

    def spy(
        self: ParquetFormat, path: str, version: Any, number: int, asked: pa.Schema, time: Any
    ) -> pa.Table:
        if asked.names == ["ts"]:
            decoded.append(Path(path).name)
        return decode(self, path, version, number, asked, time)

    monkeypatch.setattr(ParquetFormat, "decode", spy)
    loop = loop_of(plan_of(COUNTS), [opened(str(folder), False)], tmp_path / "c", batch_rows=1000)
    assert not decoded, "opening a folder reads footers"
    counts = []
    for _ in range(12):
        loop.step()
        counts.append(len(decoded))
        decoded.clear()
    loop.close()
    assert max(counts) <= 3
    assert 2 <= sum(counts) <= 10
