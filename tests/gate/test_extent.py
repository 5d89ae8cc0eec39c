"""How much of the input is read, and who holds the frontier back."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tidegate.gate.extent import Extent, Holder
from tidegate.gate.intake import Intake
from tidegate.source.registry import open_uri

FAR = 10**6
SECOND = 1_000_000
START_US = 1_704_067_200 * SECOND


def written(path: Path, rows: int, step: int = 1) -> Path:
    times = [f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z,1" for i in range(0, rows * step, step)]
    path.write_text("\n".join(["ts,v", *times]) + "\n")
    return path


def intake_of(*uris: str, follow: bool = False) -> Intake:
    intake = Intake(hold=False)
    for number, uri in enumerate(uris):
        intake.add(number, open_uri(uri, "s", "ts", follow), 0, uri=uri)
    return intake


def read(intake: Intake, rows: int) -> Extent | None:
    assert intake.next_cut(rows, 0.0) is not None
    intake.saved()
    return intake.standing()[0]


def test_a_text_file_is_read_by_bytes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 100)
    intake = intake_of(str(path))
    found = read(intake, 25)
    assert found is not None
    assert (found.whole, found.unit) == (path.stat().st_size, "bytes")
    assert found.share == pytest.approx(0.25, abs=0.01)
    assert read(intake, FAR) == Extent(path.stat().st_size, path.stat().st_size, "bytes")


def test_rows_of_several_generators_are_added() -> None:
    intake = intake_of("generator:r?rows=300&rate=100", "generator:s?rows=100&rate=100")
    assert read(intake, 100) == Extent(100, 400, "rows")


def test_units_that_differ_give_a_share_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 100)
    intake = intake_of(str(path), "generator:r?rows=100&rate=1")
    found = read(intake, FAR)
    assert found == Extent(2.0, 2, "")


def test_a_folder_is_read_by_files(tmp_path: Path) -> None:
    for name, first in (("a", 1), ("b", 2), ("c", 3)):
        written(tmp_path / f"{name}.csv", 10 * first)
    intake = intake_of(str(tmp_path))
    found = read(intake, 30)
    assert found is not None
    assert (found.whole, found.unit) == (3, "files")
    assert 1 < found.done < 3
    assert read(intake, FAR) == Extent(3, 3, "files")


def test_what_may_grow_or_is_compressed_has_no_known_end(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 100)
    assert read(intake_of(str(path), follow=True), 10) is None
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert intake_of(str(packed)).standing()[0] is None


def test_the_source_that_is_furthest_behind_holds_the_frontier(tmp_path: Path) -> None:
    fast, slow = written(tmp_path / "a.csv", 50, 2), written(tmp_path / "b.csv", 20)
    intake = intake_of(str(fast), str(slow), follow=True)
    assert read(intake, FAR) is None
    assert intake.standing()[1] == Holder(1, str(slow), START_US + 19 * SECOND)


def test_nobody_holds_it_at_the_end(tmp_path: Path) -> None:
    intake = intake_of(str(written(tmp_path / "a.csv", 10)))
    read(intake, FAR)
    assert intake.standing()[1] is None
