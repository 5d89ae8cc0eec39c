"""What is gathered to be synced: each file and folder once, under the name it has by then."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import IO, TypeVar

import pytest

from tidegate import schedule
from tidegate.storage import disk, durable
from tidegate.storage.durable import Due, gathered, gathering
from tidegate.storage.whole_file import whole_file

T = TypeVar("T")


class Noting(disk.SystemDisk):
    """Notes what is synced; does not sync some."""

    def __init__(self, *failing: str) -> None:
        self.synced: Counter[str] = Counter()
        self._failing = failing

    def sync(self, file: IO[bytes]) -> None:
        self._note(file.name)
        super().sync(file)

    def sync_file(self, path: disk.Path) -> None:
        self._note(path)
        super().sync_file(path)

    def sync_folder(self, path: disk.Path) -> None:
        self._note(path)
        super().sync_folder(path)

    def _note(self, path: disk.Path) -> None:
        name = Path(path).name
        self.synced[name] += 1
        if name in self._failing:
            raise OSError(5, "Input/output error", str(path))


def test_writers_leave_their_syncs_to_who_gathers(tmp_path: Path) -> None:
    with disk.using(Noting()) as noting:
        assert isinstance(noting, Noting)
        with gathering() as due:
            for name in ("a", "b"):
                with whole_file(tmp_path / name, sync="folder") as file:
                    file.write(b"bytes")
            assert not noting.synced
        assert gathered() is None
        due.sync()
        assert noting.synced == {"a": 1, "b": 1, tmp_path.name: 1}
        due.sync()
        assert noting.synced.total() == 3, "nothing is due any more"


def test_a_file_that_replaces_one_is_synced_before(tmp_path: Path) -> None:
    """A task that runs twice may end when its batch is over: nobody syncs its file then."""
    (tmp_path / "a").write_bytes(b"bytes")
    with disk.using(Noting()) as noting, gathering():
        assert isinstance(noting, Noting)
        with whole_file(tmp_path / "a", sync="folder") as file:
            file.write(b"bytes")
        assert noting.synced.total() == 1


def test_a_file_is_synced_under_its_last_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever moves it may know it by a path from where the process is."""
    monkeypatch.chdir(tmp_path)
    due = Due()
    due.add_file(tmp_path / "first")
    Path("last").write_bytes(b"bytes")
    due.move("first", "last")
    due.move("unknown", "other")
    assert due.files == (os.path.join(tmp_path, "last"),)
    due.sync()


@pytest.mark.parametrize("slow", [False, True], ids=["one by one", "side by side"])
@pytest.mark.parametrize("failing", range(6))
def test_one_that_fails_is_told(
    failing: int, slow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it was begun before the others were written."""
    monkeypatch.setattr(durable, "SLOW_S", 0.0 if slow else 60.0)
    due = Due()
    with disk.using(Noting(f"file{failing}")):
        for number in range(6):
            path = tmp_path / f"file{number}"
            path.write_bytes(b"bytes")
            due.add_file(path)
            if number == 2:
                due.begin()
        with pytest.raises(OSError, match=f"file{failing}"):
            due.sync()
    with disk.using(Noting()) as noting:
        assert isinstance(noting, Noting)
        for number in range(6):
            due.add_file(tmp_path / f"file{number}")
            if number == 2:
                due.begin()
        due.sync()
        assert noting.synced == {f"file{number}": 1 for number in range(6)}


class NoThreads(schedule.Threads):
    """Python while it is ending."""

    def start(self, name: str, work: Callable[[], T], daemon: bool = False) -> Future[T]:
        raise RuntimeError("can't create new thread at interpreter shutdown")


def test_where_python_is_ending_all_is_synced_without_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "SLOW_S", 0.0)
    due = Due()
    with disk.using(Noting()) as noting, schedule.using(NoThreads()):
        assert isinstance(noting, Noting)
        for number in range(6):
            path = tmp_path / f"file{number}"
            path.write_bytes(b"bytes")
            due.add_file(path)
            if number == 2:
                due.begin()
        due.sync()
        assert noting.synced == {f"file{number}": 1 for number in range(6)}
