"""Files of another file system: those that the same folder has here, listed once."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from tests.source.check import all_rows, read_range
from tidegate.errors import GateError
from tidegate.remote.disk import RemoteDisk
from tidegate.source.files import FilesConnector
from tidegate.source.listing import paths_of
from tidegate.source.remote_listing import RemoteWatch, remote_paths
from tidegate.storage import disk
from tidegate.testing import ManualClock

TREE = (
    "a.csv b.csv _c.csv .d.csv day=1/a.csv day=1/b.json day=2/x/y.csv _late/a.csv .e/a.csv "
    "f.csv/g.csv"
).split()


@pytest.fixture
def elsewhere(tmp_path: Path) -> disk.RemotePath:
    """The folder `in` of a file system that knows nothing of this one's."""
    (tmp_path / "in").mkdir()
    tree = RemoteDisk(SubTreeFileSystem(str(tmp_path), LocalFileSystem()), "tree://")
    return tree.path("tree://in")


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("t,i\n2024-01-01,1\n")


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*.csv",
        "**/*.csv",
        "day=*",
        "day=*/*.csv",
        "day=?/**",
        "[ab].csv",
        "*",
        "**",
        ".d*",
        "_*",
    ],
)
def test_a_folder_and_globs_mean_what_they_mean_here(
    tmp_path: Path, elsewhere: disk.RemotePath, pattern: str
) -> None:
    write(tmp_path / "in", *TREE)
    here = paths_of(os.path.join(tmp_path / "in", pattern).rstrip("/"))
    there = remote_paths(disk.RemotePath(f"{elsewhere}/{pattern}".rstrip("/"), elsewhere.disk))
    assert sorted(p.removeprefix("tree://") for p in there) == sorted(
        os.path.relpath(p, tmp_path) for p in here
    )


def test_a_path_is_the_same_in_another_process(elsewhere: disk.RemotePath) -> None:
    listed = disk.Status(1, 2, 0, False)
    path = disk.RemotePath(f"{elsewhere}/a.csv", elsewhere.disk, listed)
    again = pickle.loads(pickle.dumps(path))
    assert (again, again.listed, again.disk.base) == (path, listed, "tree://")


def test_rows_are_those_of_the_same_files_here(tmp_path: Path, elsewhere: disk.RemotePath) -> None:
    lines = "".join(f"2024-01-01T00:{i // 60:02}:{i % 60:02},{i}\n" for i in range(3000))
    (tmp_path / "in" / "a.csv").write_text("t,i\n" + lines)
    (tmp_path / "in" / "b.csv").write_text("t,i\n" + lines[:-7])  # no line end
    connectors = [
        FilesConnector(path, "here", "t", block_bytes=4096)
        for path in (str(tmp_path / "in"), elsewhere)
    ]
    found = []
    for connector in connectors:
        sources = list(connector.discover())
        rows = [all_rows(source) for source in sources]
        found.append([read_range(s, n // 3, n) for s, n in zip(sources, rows, strict=True)])
        assert rows == [3000, 3000]
    assert found[0] == found[1]
    assert [s.id for s in connectors[1].discover()] == ["tree://in/a.csv", "tree://in/b.csv"]


def test_new_files_are_found_and_the_folder_is_not_listed_all_the_time(
    tmp_path: Path, elsewhere: disk.RemotePath
) -> None:
    clock = ManualClock()
    write(tmp_path / "in", "a.csv")
    watch = RemoteWatch(elsewhere, clock)
    assert watch.look() == ["tree://in/a.csv"]
    write(tmp_path / "in", "b.csv", "_c.csv")
    assert watch.look() == []  # listed just now
    clock.advance(2)
    assert watch.look() == ["tree://in/b.csv"]
    assert watch.has("tree://in/b.csv")
    assert not watch.has("tree://in/_c.csv")


def test_a_followed_file_that_got_longer_is_refused(
    tmp_path: Path, elsewhere: disk.RemotePath
) -> None:
    clock = ManualClock()
    write(tmp_path / "in", "a.csv")
    connector = FilesConnector(elsewhere, "here", "t", follow=True, clock=clock)
    (listed,) = connector.list_new()
    assert (listed.id, listed.grows) == ("tree://in/a.csv", False)
    write(tmp_path / "in", "b.csv")
    clock.advance(2)
    assert [listed.id for listed in connector.list_new()] == ["tree://in/b.csv"]
    with (tmp_path / "in" / "a.csv").open("a") as file:
        file.write("2024-01-02,2\n")
    clock.advance(2)
    with pytest.raises(
        GateError, match=r"tree://in/a\.csv: .* got 30 bytes where 17 had been\. Pu"
    ):
        connector.list_new()


def test_what_was_read_last_is_not_fetched_again(
    tmp_path: Path, elsewhere: disk.RemotePath
) -> None:
    write(tmp_path / "in", "a.csv")
    (path,) = remote_paths(elsewhere)
    assert disk.read(path, 2, 3) == b"i\n2"
    (tmp_path / "in" / "a.csv").unlink()
    assert disk.read(path, 2, 3) == b"i\n2"
    with pytest.raises(FileNotFoundError):
        disk.read(path, 2, 4)


def test_many_files_are_looked_at_side_by_side(
    tmp_path: Path, elsewhere: disk.RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is fetched once, though a folder is opened for its columns and again to be read."""
    names = [f"{number:03}.csv" for number in range(70)]
    write(tmp_path / "in", *names)
    opened: list[str] = []
    fetching: set[str] = set()
    two = threading.Event()
    open_arrow = RemoteDisk.open_arrow

    def counted(self: RemoteDisk, path: str) -> object:
        opened.append(str(path))
        name = threading.current_thread().name
        if name.startswith("tidegate-fetch"):
            fetching.add(name)
            two.set() if len(fetching) > 1 else two.wait(300)
        return open_arrow(self, path)

    monkeypatch.setattr(RemoteDisk, "open_arrow", counted)
    for _ in range(2):
        FilesConnector(elsewhere, "here", "t")
    assert sorted(set(opened)) == [f"tree://in/{name}" for name in names]
    assert len(opened) - len(names) <= 1  # of the first, more is looked at
    assert two.is_set()
