"""The simulated disk: as the one of the system, and what of it outlives a loss of power."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegate.storage import disk
from tidegate.storage.disk import Disk, SystemDisk
from tidegate.testing.simulation.disk import SimDisk
from tidegate.testing.simulation.world import World

LOSSES = 60


def put(on: Disk, path: str, data: bytes, sync: bool = False) -> None:
    with on.create(path) as file:
        file.write(data)
        if sync:
            on.sync(file)


def outcomes(
    work: Callable[[SimDisk], None], path: str = "/"
) -> set[tuple[tuple[str, bytes], ...]]:
    """What files there are after many losses of power."""
    found = set()
    for seed in range(LOSSES):
        on = World(seed).disk
        work(on)
        on.power_loss(seed)
        found.add(tuple((p, on.read(p)) for p in on.files(path)))
    return found


def test_what_was_synced_is_left_whole() -> None:
    def work(on: SimDisk) -> None:
        on.make_folder("/a")
        put(on, "/a/b", b"12345", sync=True)
        on.sync_folder("/a")
        on.sync_folder("/")

    assert outcomes(work) == {(("/a/b", b"12345"),)}


def test_a_name_needs_its_folder_and_all_above_it() -> None:
    def work(on: SimDisk) -> None:
        on.make_folder("/a")
        put(on, "/a/b", b"12345", sync=True)
        on.sync_folder("/a")

    assert outcomes(work) == {(), (("/a/b", b"12345"),)}


def test_bytes_that_were_not_synced_are_lost_cut_or_zeroed() -> None:
    data = bytes([7]) * 600

    def work(on: SimDisk) -> None:
        put(on, "/a", data)
        on.sync_folder("/")

    found = {after[0][1] for after in outcomes(work)}
    assert {b"", data} <= found
    assert any(len(d) < 600 and d and set(d) == {7} for d in found)
    assert any(len(d) == 600 and {0, 7} == set(d) for d in found)


def test_a_rename_is_done_or_not_done() -> None:
    def work(on: SimDisk) -> None:
        put(on, "/a", b"old", sync=True)
        on.sync_folder("/")
        put(on, "/.a.tmp", b"new", sync=True)
        on.replace("/.a.tmp", "/a")

    found = {dict(after)["/a"] for after in outcomes(work)}
    assert found == {b"old", b"new"}
    assert {(("/.a.tmp", b"new"), ("/a", b"new"))}.isdisjoint(outcomes(work))


def test_changes_of_names_are_lost_one_by_one() -> None:
    def work(on: SimDisk) -> None:
        for name in "abc":
            put(on, f"/{name}", b"1", sync=True)

    found = {tuple(p for p, _ in after) for after in outcomes(work)}
    assert {(), ("/a",), ("/b",), ("/a", "/c"), ("/a", "/b", "/c")} <= found


def test_what_was_moved_away_for_good_does_not_come_back() -> None:
    def work(on: SimDisk) -> None:
        for folder in ("/a", "/b"):
            on.make_folder(folder)
        on.sync_folder("/")
        put(on, "/a/x", b"1", sync=True)
        on.replace("/a/x", "/b/x")
        on.sync_folder("/b")

    assert outcomes(work) == {(("/b/x", b"1"),)}


def test_a_full_disk_takes_what_fits() -> None:
    on = World(1).disk
    on.room_bytes = 3
    with pytest.raises(OSError, match="No space left"):
        put(on, "/a", b"12345")
    assert on.read("/a") == b"123"


def test_a_hidden_file_can_be_opened_and_is_listed_later() -> None:
    world = World(1)
    world.disk.put("/in/a", b"1")
    world.disk.hidden["/in/a"] = world.schedule.clock.now() + 5
    assert world.disk.names("/in") == []
    assert world.disk.matching("/in/*") == []
    assert world.disk.open("/in/a").read() == b"1"
    world.schedule.clock.sleep(5)
    assert world.disk.names("/in") == ["a"]


class Twin:
    """The same operations on both disks, and what came of them."""

    def __init__(self, folder: Path) -> None:
        self.places: list[tuple[Disk, str]] = [
            (SystemDisk(), str(folder)),
            (World(1).disk, "/work"),
        ]
        self.places[1][0].make_folder("/work")

    def both(self, work: Callable[[Disk, str], object]) -> object:
        results = []
        for on, root in self.places:
            with disk.using(on):
                try:
                    results.append(work(on, root))
                except OSError as error:
                    known = isinstance(error, FileNotFoundError | FileExistsError)
                    results.append(errno.errorcode[error.errno or 0] if known else "refused")
        assert results[0] == results[1]
        return results[0]


NAMES = ("a", "b", "a/c", "b/c", "a/c/d")


@pytest.mark.parametrize("seed", range(20))
def test_it_does_what_the_disk_of_the_system_does(seed: int, tmp_path: Path) -> None:
    chance, twin = random.Random(seed), Twin(tmp_path)
    refused = 0
    for number in range(60):
        one, two = chance.choice(NAMES), chance.choice(NAMES)
        work = chance.choice(
            [
                lambda on, root, one=one, n=number: put(on, f"{root}/{one}", b"x" * n),
                lambda on, root, one=one: on.make_folder(f"{root}/{one}"),
                lambda on, root, one=one, two=two: on.replace(f"{root}/{one}", f"{root}/{two}"),
                lambda on, root, one=one, two=two: on.link(f"{root}/{one}", f"{root}/{two}"),
                lambda on, root, one=one: on.unlink(f"{root}/{one}"),
                lambda on, root, one=one: on.remove_folder(f"{root}/{one}"),
                lambda on, root, one=one: sorted(on.names(f"{root}/{one}")),
                lambda on, root, one=one: disk.read(f"{root}/{one}"),
                lambda on, root, one=one: len(disk.make_folders(f"{root}/{one}")),
                lambda on, root, one=one: disk.remove_tree(f"{root}/{one}"),
            ]
        )
        refused += isinstance(twin.both(work), str)
        twin.both(tree)
        twin.both(lambda on, root: sorted(p[len(root) :] for p in on.matching(f"{root}/**/c")))
    assert 5 < refused < 60


def tree(on: Disk, root: str) -> list[tuple[str, int, list[str]]]:
    found = []
    for folder, folders, files in on.walk(root):
        sizes = [on.status(os.path.join(folder, f)).bytes for f in sorted(files)]
        found.append((folder[len(root) :], sum(sizes), sorted(folders + files)))
    return sorted(found)
