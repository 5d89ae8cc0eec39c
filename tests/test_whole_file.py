"""Whole files: what is there when a block ends, fails, is interrupted or is met by another."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from tidegate.storage.whole_file import FileWriter, is_temporary, temporary, whole_file


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with whole_file(path) as file:
        file.write(b"new")
        (aside,) = (n for n in names(tmp_path) if n != "a")
        assert is_temporary(aside)
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [OSError("full"), ValueError("odd"), KeyboardInterrupt()])
def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail() -> None:
        with whole_file(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert names(tmp_path) == ["a"]
    assert path.read_bytes() == b"old"


def test_two_writers_of_one_path_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with whole_file(path) as one:
        one.write(b"on")
        with whole_file(path) as two:
            two.write(b"two")
        assert path.read_bytes() == b"two"
        one.write(b"e")
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize(("sync", "calls"), [("nothing", 0), ("file", 1), ("folder", 2)])
def test_what_is_forced_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str, calls: int
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with whole_file(tmp_path / "a", sync=sync) as file:  # type: ignore[arg-type]
        file.write(b"x")
    assert len(synced) == calls


def test_folders_are_made_where_that_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a"
    with pytest.raises(FileNotFoundError), whole_file(path):
        pytest.fail("nothing to write into")
    assert names(tmp_path) == []
    with whole_file(path, parents=True) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


def test_temporary_names_are_beside_and_never_the_same() -> None:
    made = [temporary("folder/name") for _ in range(100)]
    assert len(set(made)) == 100
    assert all(n.startswith("folder/.name.") and is_temporary(n) for n in made)
    assert not is_temporary("folder/name")
    assert not is_temporary(".hidden/name.tmp")


def test_bytes_are_counted_and_checksummed_on_the_way(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a") as file:
        writer = FileWriter(file)
        assert writer.write(b"one ") == 4
        assert writer.write(memoryview(b"two")) == 3
        writer.close()
    assert (writer.tell(), writer.bytes, writer.checksum) == (7, 7, zlib.crc32(b"one two"))
