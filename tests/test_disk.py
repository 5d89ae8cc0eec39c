"""The disk of the system, and another in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.storage import disk


def test_another_disk_stands_in_until_the_block_ends(tmp_path: Path) -> None:
    class Other(disk.SystemDisk):
        def names(self, folder: disk.Path) -> list[str]:
            return ["made up"]

    system, other = disk.current(), Other()
    with disk.using(other):
        assert disk.current() is other
        assert disk.current().names(tmp_path) == ["made up"]
    assert disk.current() is system
    assert disk.current().names(tmp_path) == []


def test_folders_that_are_made(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    assert disk.make_folders(below) == [str(tmp_path / "a"), str(below)]
    assert disk.make_folders(below) == []
    assert disk.is_folder(below)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        disk.make_folders(tmp_path / "file" / "c")
    with pytest.raises(FileExistsError):
        disk.make_folders(tmp_path / "file")


def test_a_tree_that_is_removed_keeps_what_its_links_point_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "x").write_bytes(b"x")
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "below" / "file").touch()
    (tree / "below" / "link").symlink_to(kept)
    (tree / "gone").symlink_to(tmp_path / "nothing")
    disk.remove_tree(tree)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kept"]
    assert (kept / "x").read_bytes() == b"x"
    disk.remove_tree(tree)


def test_an_empty_file_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert disk.current().map(tmp_path / "empty").size == 0


def test_a_name_that_is_taken_is_not_given_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with disk.current().create(tmp_path / name) as file:
            file.write(name.encode())
            disk.current().sync(file)
    with pytest.raises(FileExistsError):
        disk.current().create(tmp_path / "one")
    with pytest.raises(FileExistsError):
        disk.current().link(tmp_path / "one", tmp_path / "two")
    assert disk.read(tmp_path / "two", 1, 5) == b"wo"
