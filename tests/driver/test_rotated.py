"""Followed text files that are rotated or written anew: told, within a run and at a restart.

As logrotate does it: `create` renames the file and makes a new one, `copytruncate` copies it and
empties the one that is there. What the writer does then may make it longer than it was before.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.driver.scene import PASSED, Row, csv, drain, loop_of, moment, opened, plan_of, rows_of
from tidegate.driver.loop import Loop
from tidegate.errors import GateError, SourceError
from tidegate.sink.memory import MemorySink

OLD: list[Row] = [(second, "old", second) for second in range(10)]
FEW: list[Row] = [(20, "new", 20)]
MANY: list[Row] = [(20 + second, "new", 20 + second) for second in range(30)]


def renamed(path: Path, rows: list[Row]) -> None:
    path.rename(path.with_suffix(".1"))
    csv(path, *rows)


def copied_and_truncated(path: Path, rows: list[Row]) -> None:
    shutil.copy(path, path.with_suffix(".1"))
    with path.open("r+b") as file:
        file.truncate()
        file.write(csv_text(rows).encode())


def replaced(path: Path, rows: list[Row]) -> None:
    path.with_suffix(".new").write_text(csv_text(rows))
    path.with_suffix(".new").replace(path)


def csv_text(rows: list[Row]) -> str:
    return "ts,k,v\n" + "".join(f"{moment(t)},{k},{v}\n" for t, k, v in rows)


def followed(path: Path, checkpoint: Path, sink: MemorySink) -> Loop:
    return loop_of(plan_of(PASSED), [opened(str(path))], checkpoint, sink)


def old_values(sink: MemorySink) -> list[int]:
    return [row[-1] for row in rows_of(sink)]


WAYS = [renamed, copied_and_truncated, replaced]
Rotate = Callable[[Path, list[Row]], None]


@pytest.mark.parametrize("rows", [FEW, MANY], ids=["shorter", "longer"])
@pytest.mark.parametrize("rotate", WAYS)
class TestRotated:
    def test_within_a_run(self, tmp_path: Path, rotate: Rotate, rows: list[Row]) -> None:
        path, sink = Path(csv(tmp_path / "app.csv", *OLD)), MemorySink()
        read = path.stat().st_size
        loop = followed(path, tmp_path / "c", sink)
        drain(loop)
        rotate(path, rows)
        with pytest.raises(GateError, match=r"app\.csv: a followed file must only grow") as told:
            drain(loop)
        loop.close()
        assert f"it was read up to byte {read} of {read}" in str(told.value)
        assert (f"what was read is {path.with_suffix('.1')} now" in str(told.value)) == (
            rotate is renamed
        )
        assert old_values(sink) == list(range(9))

    def test_at_a_restart(self, tmp_path: Path, rotate: Rotate, rows: list[Row]) -> None:
        path, sink = Path(csv(tmp_path / "app.csv", *OLD)), MemorySink()
        loop = followed(path, tmp_path / "c", sink)
        drain(loop)
        loop.close()
        rotate(path, rows)
        with pytest.raises(SourceError, match=r"app\.csv: was read up to row 10 by this") as told:
            followed(path, tmp_path / "c", sink)
        assert (f"what was read is {path.with_suffix('.1')} now" in str(told.value)) == (
            rotate is renamed
        )

    def test_the_remedy(self, tmp_path: Path, rotate: Rotate, rows: list[Row]) -> None:
        """Both in one file again: nothing is lost, and nothing is read twice."""
        path, sink = Path(csv(tmp_path / "app.csv", *OLD)), MemorySink()
        loop = followed(path, tmp_path / "c", sink)
        drain(loop)
        csv(path, (10, "old", 10), more=True)
        rotate(path, rows)
        with pytest.raises(GateError, match="Put the new rows behind the old ones, in one file"):
            drain(loop)
        loop.close()
        path.write_text(csv_text([*OLD, (10, "old", 10), *rows]))
        loop = followed(path, tmp_path / "c", sink)
        drain(loop)
        loop.close()
        assert old_values(sink) == [v for _, _, v in [*OLD, (10, "", 10), *rows]][:-1]


def test_bytes_that_were_not_read_are_named(tmp_path: Path) -> None:
    path, sink = Path(csv(tmp_path / "app.csv", *OLD)), MemorySink()
    loop = followed(path, tmp_path / "c", sink)
    drain(loop)
    read = path.stat().st_size
    with path.open("a") as file:
        file.write("1970-01-01T00:00")
    drain(loop)
    csv(path, (10, "old", 10), more=True)
    whole = path.stat().st_size
    renamed(path, MANY)
    with pytest.raises(GateError, match=f"up to byte {read} of {read + 16}; .* of {whole} bytes"):
        drain(loop)
    loop.close()


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    path, sink = Path(csv(tmp_path / "app.csv", *OLD)), MemorySink()
    loop = followed(path, tmp_path / "c", sink)
    drain(loop)
    path.rename(path.with_suffix(".1"))
    with pytest.raises(GateError, match=r"got no file; it was read .* what was read is .*app\.1"):
        drain(loop)
    loop.close()


@pytest.mark.parametrize("rotate", WAYS)
def test_the_same_rows_and_more(tmp_path: Path, rotate: Rotate) -> None:
    """An editor that writes the file anew, with more at its end."""
    path, sink = Path(csv(tmp_path / "app.csv", *OLD)), MemorySink()
    loop = followed(path, tmp_path / "c", sink)
    drain(loop)
    rotate(path, [*OLD, (10, "old", 10), (11, "old", 11)])
    assert drain(loop) == 1
    loop.close()
    rotate(path, [*OLD, (10, "old", 10), (11, "old", 11), (12, "old", 12)])
    loop = followed(path, tmp_path / "c", sink)
    assert drain(loop) == 1
    loop.close()
    assert old_values(sink) == list(range(12))


def test_written_anew_between_the_cut_and_the_tasks(tmp_path: Path) -> None:
    path, sink = Path(csv(tmp_path / "app.csv", *OLD)), MemorySink()

    def rewrite(step: str, batch: int) -> None:
        if step == "after gate":
            copied_and_truncated(path, MANY)

    plan = plan_of(PASSED)
    loop = loop_of(plan, [opened(str(path))], tmp_path / "c", sink, observer=rewrite)
    with pytest.raises(GateError, match="must not change while it is read; got another content at"):
        loop.step()
    loop.close()


class TestFolder:
    def test_the_newest_file_is_renamed(self, tmp_path: Path) -> None:
        """Under a name that counts it would be read twice."""
        folder, sink = tmp_path / "in", MemorySink()
        folder.mkdir()
        path = Path(csv(folder / "app.csv", *OLD))
        loop = followed(folder, tmp_path / "c", sink)
        drain(loop)
        path.rename(folder / "app-1.csv")
        csv(path, *MANY)
        with pytest.raises(GateError, match=r"must keep its name; got .*app-1\.csv, which is the"):
            drain(loop)
        loop.close()
        with pytest.raises(SourceError, match=r"app\.csv: was read up to row 10 by this"):
            followed(folder, tmp_path / "c", sink)

    @pytest.mark.parametrize("rotate", WAYS)
    def test_under_a_name_that_does_not_count(self, tmp_path: Path, rotate: Rotate) -> None:
        folder, sink = tmp_path / "in", MemorySink()
        folder.mkdir()
        path = Path(csv(folder / "app.csv", *OLD))
        loop = followed(folder, tmp_path / "c", sink)
        drain(loop)
        rotate(path, MANY)
        csv(folder / "more.csv", *MANY)
        with pytest.raises(GateError, match=r"app\.csv: a followed file must only grow"):
            drain(loop)
        loop.close()
