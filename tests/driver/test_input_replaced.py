"""Input that is another one than was read: between two runs on a checkpoint, and within a run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.driver.scene import (
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
from tests.driver.test_replay import Leaky
from tidegate.driver.loop import Loop
from tidegate.errors import GateError, LostOutputError, SourceError
from tidegate.sink.memory import MemorySink

ROWS: list[Row] = [(second, "a", second * 3 % 7) for second in range(40)]
OTHER: list[Row] = [(t, k, v if t != 3 else v + 1) for t, k, v in ROWS]
FORMATS = ["csv", "jsonl", "parquet"]


def write(path: Path, rows: list[Row]) -> Path:
    """A file of rows, of the same size for values of the same number of digits."""
    if path.suffix == ".csv":
        csv(path, *rows)
    elif path.suffix == ".jsonl":
        objects = [{"ts": moment(t), "k": k, "v": v} for t, k, v in rows]
        path.write_text("".join(json.dumps(o) + "\n" for o in objects))
    else:
        pq.write_table(table(*rows), path)
    return path


def begun(path: Path, checkpoint: Path, sink: MemorySink, follow: bool = False) -> None:
    """Read the first ten rows, in a batch of their own, and stop."""
    loop = again(path, checkpoint, sink, follow)
    assert loop.step() is not None
    loop.close()


def again(path: Path, checkpoint: Path, sink: MemorySink, follow: bool = False) -> Loop:
    connection = opened(str(path), follow)
    return loop_of(plan_of(PASSED), [connection], checkpoint, sink, batch_rows=10)


def values(sink: MemorySink) -> list[int]:
    return [row[-1] for row in rows_of(sink)]


def held(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("manifest/*"))}


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("format_", FORMATS)
def test_a_file_of_as_many_rows_in_its_place(tmp_path: Path, format_: str, follow: bool) -> None:
    path = write(tmp_path / f"s.{format_}", ROWS)
    sink = MemorySink()
    begun(path, tmp_path / "c", sink, follow)
    before = held(tmp_path / "c")
    size = path.stat().st_size
    write(path, OTHER)
    assert format_ == "parquet" or path.stat().st_size == size
    with pytest.raises(SourceError, match=r"was read up to row 10 .* must be the same up to"):
        again(path, tmp_path / "c", sink, follow)
    assert held(tmp_path / "c") == before
    write(path, ROWS)
    loop = again(path, tmp_path / "c", sink, follow)
    drain(loop)
    loop.close()
    assert values(sink) == [v for _, _, v in ROWS][: -1 if follow else None]


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def copied(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


def rewritten(path: Path) -> None:
    path.write_bytes(path.read_bytes())


@pytest.mark.parametrize("change", [touched, copied, rewritten])
@pytest.mark.parametrize("format_", FORMATS)
def test_the_same_content_goes_on(
    tmp_path: Path, format_: str, change: Callable[[Path], None]
) -> None:
    """Another time of change or another inode alone is nothing: `touch`, `cp`, an editor, git."""
    path = write(tmp_path / f"s.{format_}", ROWS)
    sink = MemorySink()
    begun(path, tmp_path / "c", sink)
    change(path)
    assert again(path, tmp_path / "c", sink).run().finished
    assert values(sink) == [v for _, _, v in ROWS]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_file_that_was_read_to_its_end(tmp_path: Path, format_: str) -> None:
    """Who replaces it and runs the query once more gets an error, not the old results."""
    path = write(tmp_path / f"s.{format_}", ROWS)
    sink = MemorySink()
    assert again(path, tmp_path / "c", sink).run().finished
    again(path, tmp_path / "c", sink).close()
    write(path, OTHER)
    with pytest.raises(SourceError, match=r"was read up to row 40 .* must be the same"):
        again(path, tmp_path / "c", sink)


def test_a_file_that_left_the_query_may_be_another(tmp_path: Path) -> None:
    left, stays = write(tmp_path / "a.csv", ROWS), write(tmp_path / "b.csv", ROWS)
    sink = MemorySink()

    def both() -> Loop:
        connections = [opened(str(path), False) for path in (left, stays)]
        return loop_of(plan_of(PASSED), connections, tmp_path / "c", sink, batch_rows=10)

    loop = both()
    loop.step()
    loop.controls.remove(str(left))
    loop.step()
    loop.close()
    write(left, OTHER)
    loop = both()
    assert loop.step() is not None
    loop.close()
    assert both().run().finished
    assert len(values(sink)) == len(ROWS) + 5


def test_a_change_of_one_byte_behind_a_megabyte(tmp_path: Path) -> None:
    rows: list[Row] = [(second / 1000, "x" * 90, 7) for second in range(12_000)]
    path = write(tmp_path / "s.csv", rows)
    sink = MemorySink()
    loop = loop_of(
        plan_of(PASSED), [opened(str(path), False)], tmp_path / "c", sink, batch_rows=9000
    )
    loop.step()
    loop.close()
    whole = path.read_bytes()
    at = len(whole) // 2
    path.write_bytes(whole[:at] + b"y" + whole[at + 1 :])
    with pytest.raises(SourceError, match="another content in its first"):
        loop_of(plan_of(PASSED), [opened(str(path), False)], tmp_path / "c", sink)


@pytest.mark.parametrize("format_", FORMATS)
def test_replaced_while_it_is_read(tmp_path: Path, format_: str) -> None:
    path = write(tmp_path / f"s.{format_}", ROWS)

    def replace(step: str, batch: int) -> None:
        if (step, batch) == ("after gate", 0):
            write(path, OTHER)
            os.utime(path, ns=(1, 1))  # a change within a tick of the clock is not to be found

    sink, plan = MemorySink(), plan_of(PASSED)
    loop = loop_of(plan, [opened(str(path), False)], tmp_path / "c", sink, observer=replace)
    with pytest.raises(GateError, match=r"a file must not change while it is read"):
        loop.step()
    loop.close()
    assert values(sink) == []


@pytest.mark.parametrize(("cuts", "lost"), [((0, 40), 0), ((0, 10, 40), 1), ((0, 10, 20, 40), 1)])
@pytest.mark.parametrize("format_", FORMATS)
def test_replaced_before_a_batch_runs_again(
    tmp_path: Path, format_: str, cuts: tuple[int, ...], lost: int
) -> None:
    """Its output was lost, and rows that only it has read are others: nothing is made up.

    They are of a file that it has begun, of a folder too, or that it has consumed.
    """
    folder = tmp_path / "in"
    folder.mkdir()
    files = {folder / f"{a:02d}.{format_}": slice(a, b) for a, b in pairwise(cuts)}
    for path, rows in files.items():
        write(path, ROWS[rows])
    place = folder if len(files) > 1 else next(iter(files))
    changed = list(files)[lost]
    sink, plan = Leaky(), plan_of(PASSED)

    def loop() -> Loop:
        sink.loses = {lost}
        return loop_of(plan, [opened(str(place), False)], tmp_path / "c", sink, batch_rows=10)

    with pytest.raises(LostOutputError):
        loop().run()
    write(changed, [(t, k, v + (t == 10 * lost + 5)) for t, k, v in ROWS[files[changed]]])
    with pytest.raises(LostOutputError, match="the batch cannot run again"):
        loop().run()
    assert sink.given == list(range(lost))
    write(changed, ROWS[files[changed]])
    assert loop().run().finished
    made = [v for table in sink.batches.values() for v in table.column("v").to_pylist()]
    assert made == [v for _, _, v in ROWS]


class TestFolder:
    """Files of a folder that were consumed, and are needed no more."""

    @staticmethod
    def two_files(folder: Path, format_: str) -> tuple[Path, Path]:
        folder.mkdir()
        names = [folder / f"{n}.{format_}" for n in (1, 2)]
        write(names[0], ROWS[:10])
        write(names[1], ROWS[10:])
        return names[0], names[1]

    @pytest.mark.parametrize("follow", [False, True])
    @pytest.mark.parametrize("format_", FORMATS)
    def test_another_content_is_told(self, tmp_path: Path, format_: str, follow: bool) -> None:
        folder, sink = tmp_path / "in", MemorySink()
        first, _ = self.two_files(folder, format_)
        loop = again(folder, tmp_path / "c", sink, follow)
        loop.step()
        loop.step()
        loop.close()
        write(first, OTHER[:10])
        with pytest.raises(SourceError, match="was consumed by this checkpoint, and its name must"):
            again(folder, tmp_path / "c", sink, follow)
        first.rename(folder / f"3.{format_}")  # the remedy: another name
        loop = again(folder, tmp_path / "c", sink, follow)
        drain(loop)
        loop.close()
        assert loop.manifest.counters["rows_in"] == 50

    @pytest.mark.parametrize("format_", FORMATS)
    def test_more_and_fewer_rows_are_told(self, tmp_path: Path, format_: str) -> None:
        folder, sink = tmp_path / "in", MemorySink()
        first, _ = self.two_files(folder, format_)
        begun(folder, tmp_path / "c", sink)
        for rows in (OTHER[:15], OTHER[:5]):
            write(first, rows)
            with pytest.raises(SourceError, match="was consumed by this checkpoint"):
                again(folder, tmp_path / "c", sink)

    @pytest.mark.parametrize("change", [touched, copied, rewritten, Path.unlink])
    @pytest.mark.parametrize("format_", FORMATS)
    def test_the_same_content_or_none(
        self, tmp_path: Path, format_: str, change: Callable[[Path], None]
    ) -> None:
        folder, sink = tmp_path / "in", MemorySink()
        first, second = self.two_files(folder, format_)
        begun(folder, tmp_path / "c", sink)
        change(first)
        if change is not Path.unlink:
            change(second)
        assert again(folder, tmp_path / "c", sink).run().finished
        assert values(sink) == [v for _, _, v in ROWS]

    def test_a_line_that_was_taken_as_whole_and_goes_on(self, tmp_path: Path) -> None:
        folder, sink = tmp_path / "in", MemorySink()
        first, _ = self.two_files(folder, "csv")
        first.write_text(first.read_text() + f"{moment(9)},a,1")
        loop = again(folder, tmp_path / "c", sink)
        loop.step()
        loop.step()
        loop.close()
        first.write_text(first.read_text() + "2\n")
        with pytest.raises(SourceError, match="more of its last line, which was taken as whole"):
            again(folder, tmp_path / "c", sink)

    def test_a_file_that_grew_while_followed_is_not_read_twice(self, tmp_path: Path) -> None:
        folder, sink = tmp_path / "in", MemorySink()
        folder.mkdir()
        path = write(folder / "1.csv", ROWS[:5])
        loop = again(folder, tmp_path / "c", sink, follow=True)
        drain(loop)
        csv(path, *ROWS[5:10], more=True)
        drain(loop)
        loop.close()
        write(folder / "2.csv", ROWS[10:])
        begun(folder, tmp_path / "c", sink)
        loop = again(folder, tmp_path / "c", sink)
        assert loop.run().finished
        assert values(sink) == [v for _, _, v in ROWS]
        assert loop.manifest.counters["rows_in"] == len(ROWS)


class TestStillWritten:
    """A file that another program writes while a run takes all there is."""

    def test_a_last_line_without_an_end_counts(self, tmp_path: Path) -> None:
        path, sink = write(tmp_path / "s.csv", ROWS), MemorySink()
        path.write_text(path.read_text() + f"{moment(50)},a,1")
        assert again(path, tmp_path / "c", sink).run().finished
        assert values(sink) == [*(v for _, _, v in ROWS), 1]

    @pytest.mark.parametrize("format_", ["csv", "jsonl"])
    def test_one_that_goes_on_meanwhile_is_not_read(
        self, tmp_path: Path, format_: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        path, sink = write(tmp_path / f"s.{format_}", ROWS), MemorySink()
        whole = path.read_bytes()
        path.write_bytes(whole[:-3])
        loop = again(path, tmp_path / "c", sink)
        with path.open("ab") as file:
            file.write(whole[-3:] + whole.splitlines(keepends=True)[-1])
        assert loop.run().finished
        assert values(sink) == [v for _, _, v in ROWS[:-1]]
        assert "is still being written: it is read up to byte" in caplog.text

    def test_rows_that_come_meanwhile_are_left_out(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path, sink = write(tmp_path / "s.csv", ROWS), MemorySink()
        loop = again(path, tmp_path / "c", sink)
        while loop.step() is not None:
            csv(path, (90, "b", 9), more=True)
        loop.close()
        assert values(sink) == [v for _, _, v in ROWS]
        assert "is still being written" in caplog.text

    @pytest.mark.parametrize("folder", [False, True])
    def test_one_that_goes_on_before_the_commit(self, tmp_path: Path, folder: bool) -> None:
        (tmp_path / "in").mkdir()
        path = csv(tmp_path / "in" / "s.csv", *ROWS[:5])
        with open(path, "a") as file:
            file.write(f"{moment(5)},a,1")
        place = tmp_path / "in" if folder else Path(path)

        def go_on(step: str, batch: int) -> None:
            if step == "after operate":
                with open(path, "a") as file:
                    file.write("234\n")

        sink, plan = MemorySink(), plan_of(PASSED)
        loop = loop_of(plan, [opened(str(place), False)], tmp_path / "c", sink, observer=go_on)
        with pytest.raises(GateError, match="a line must be whole before it is read"):
            loop.step()
        loop.close()
        assert again(place, tmp_path / "c", sink).run().finished
        assert values(sink) == [*(v for _, _, v in ROWS[:5]), 1234]

    @pytest.mark.parametrize("tail", ["1", '"1'])
    def test_one_that_went_on_after_the_run(self, tmp_path: Path, tail: str) -> None:
        path, sink = write(tmp_path / "s.csv", ROWS[:5]), MemorySink()
        path.write_text(path.read_text() + f"{moment(5)},a,{tail}")
        assert again(path, tmp_path / "c", sink).run().finished
        with path.open("a") as file:
            file.write(f"2{tail[:-1]}\n{moment(6)},a,3\n")
        with pytest.raises(SourceError, match="more of its last line, which was taken as whole"):
            again(path, tmp_path / "c", sink)


def test_a_parquet_file_with_a_long_footer_is_covered_by_it(tmp_path: Path) -> None:
    """With many columns the footer alone is longer than what is read of most files' ends."""
    times = table(*ROWS).column("ts")
    names = {f"column {i:04d} with a long name": pa.array(range(40)) for i in range(2000)}
    path = tmp_path / "s.parquet"
    columns = {"ts": times, "k": pa.array(["a"] * 40), "v": pa.array([1] * 40), **names}
    pq.write_table(pa.table(columns), path, row_group_size=20)
    loop = again(path, tmp_path / "c", MemorySink())
    loop.step()
    loop.close()
    run_dry(again(path, tmp_path / "c", MemorySink()))
    columns["column 0000 with a long name"] = pa.array([*range(19), 99, *range(20)])
    pq.write_table(pa.table(columns), path, row_group_size=20)
    with pytest.raises(SourceError, match="must be the same up to there"):
        again(path, tmp_path / "c", MemorySink())
