"""Segments on the disk of an executor: fetched once for all its workers, and checked by each."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow.fs import _MockFileSystem

from tests.state.conftest import remember
from tests.state.rows import rows
from tidegate.errors import OptionError, StateError
from tidegate.state.segment import nearby as nearby_module
from tidegate.state.segment import segment as segment_module
from tidegate.state.segment.nearby import LIMIT, Nearby, nearby
from tidegate.state.segment.piece import fetched_bytes
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

ROWS = rows([(b, p, 10 * b + p) for b in range(3) for p in range(5)])


@pytest.fixture
def remote() -> Store:
    made = Store.open((_MockFileSystem(), "ckpt"))
    made.create({})
    return made


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process is a worker of Spark."""
    folder = tmp_path / "blockmgr-1"
    folder.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{folder},{tmp_path}/blockmgr-2")
    nearby_module._at.cache_clear()
    return folder / "tidegate-segments"


def written(store: Store, name: str = "one") -> Segment:
    return write_segment(store, name, ROWS, "pane", 0)


def other_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on as a process that has read nothing yet."""
    segment_module._verified.clear()
    nearby_module._at.cache_clear()
    remember(monkeypatch, 2**28)


def test_what_one_worker_has_written_or_fetched_others_have(
    remote: Store, executor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = written(remote)
    (file,) = executor.iterdir()
    file.unlink()
    assert read_segment(remote, segment).equals(ROWS)
    remote.delete(segment.path)
    other_worker(monkeypatch)
    assert read_segment(remote, segment, [1]).num_rows == 5
    assert len(list(executor.iterdir())) == 1


def test_buckets_that_one_worker_has_fetched_others_have(
    remote: Store, executor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of rows that were written in another order than by bucket."""
    monkeypatch.setattr(segment_module, "WORTH_BYTES", 0)
    monkeypatch.setattr("tidegate.state.segment.piece.PIECE_BYTES", 1)
    monkeypatch.setattr("tidegate.state.segment.piece._END_BYTES", 2_048)
    mixed = ROWS.take([3, 14, 7, 0, 8, 2, 11])
    segment = write_segment(remote, "mixed", mixed, "pane", 0, grouped=False)
    (file,) = executor.iterdir()
    assert read_segment(remote, segment).equals(mixed)
    file.unlink()
    other_worker(monkeypatch)
    before = fetched_bytes()
    assert read_segment(remote, segment, [0]).equals(mixed.take([0, 3, 5]))
    assert 0 < fetched_bytes() - before < segment.bytes
    remote.delete(segment.path)
    other_worker(monkeypatch)
    assert read_segment(remote, segment, [0]).equals(mixed.take([0, 3, 5]))


def test_a_damaged_file_is_fetched_again(
    remote: Store, executor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = written(remote)
    (file,) = executor.iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    other_worker(monkeypatch)
    assert read_segment(remote, segment).equals(ROWS)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    remote.delete(segment.path)
    other_worker(monkeypatch)
    with pytest.raises(StateError, match="must be there"):
        read_segment(remote, segment)


def test_the_oldest_go_first_and_what_is_mapped_stays(
    remote: Store, executor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(remote, "sample")
    (sample,) = executor.iterdir()
    monkeypatch.setenv(LIMIT, str(3 * sample.stat().st_size))
    segments = [written(remote, f"s{n}") for n in range(5)]
    first = read_segment(remote, segments[0])
    for n in range(5, 9):
        written(remote, f"s{n}")
    assert first.equals(ROWS)
    assert len(list(executor.iterdir())) == 3
    monkeypatch.setenv(LIMIT, "0")
    other_worker(monkeypatch)
    assert read_segment(remote, written(remote, "none")).equals(ROWS)
    assert len(list(executor.iterdir())) == 3


def test_a_disk_that_takes_no_more_is_done_without(
    remote: Store, executor: Path, caplog: pytest.LogCaptureFixture
) -> None:
    executor.write_text("in the way")
    segments = [written(remote, f"s{n}") for n in range(2)]
    assert all(read_segment(remote, segment).equals(ROWS) for segment in segments)
    assert caplog.text.count("segments are not kept there any more") == 1


def test_only_the_folder_of_an_executor_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver may have the variable too, as a setting of its host."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    assert nearby() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "blockmgr-1"))
    assert isinstance(nearby(), Nearby)
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(OptionError, match=f"{LIMIT}: must be a size"):
        nearby()


def test_a_local_store_is_mapped_where_it_is(tmp_path: Path, executor: Path) -> None:
    store = Store.open(tmp_path / "ckpt")
    store.create({})
    assert read_segment(store, written(store)).equals(ROWS)
    assert not executor.exists()
