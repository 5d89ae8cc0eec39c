"""A start trusts what it sees only when it is on the disk, and takes no error for emptiness."""

from __future__ import annotations

import errno

import pytest

from tests.state.mapping import mappings
from tidegate.errors import StateError
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.testing.simulation.world import World


def filled(world: World) -> Store:
    store = Store.open("/a/checkpoint")
    store.create({})
    store.publish(Manifest(0, mappings(0), 0))
    return store


def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty() -> None:
    world = World(1)

    def fail(operation: str, path: str) -> None:
        if (operation, path) == ("names", "/a/checkpoint/manifest"):
            raise OSError(errno.EIO, "Input/output error", path)

    with world.entered():
        store = filled(world)
        before = world.disk.files("/")
        world.disk.fail = fail
        with pytest.raises(
            StateError, match=r"/manifest: must be readable; got Input/output error"
        ):
            store.latest()
        with pytest.raises(StateError, match="must be readable"):
            store.clean()
        assert world.disk.files("/") == before


def test_what_a_killed_run_left_unsynced_is_made_to_last() -> None:
    lost = 0
    for seed in range(40):
        for settles in (False, True):
            world = World(seed)
            with world.entered():
                store = filled(world)
                last = world.disk.sync_folder
                world.disk.sync_folder = lambda path: None  # as when it was killed before
                store.publish(Manifest(1, mappings(0), 1))
                world.disk.sync_folder = last
                if settles:
                    store.settle()
                world.disk.power_loss(seed)
                newest = Store.open("/a/checkpoint").latest()
                if settles:
                    assert newest is not None
                    assert newest.batch == 1
                else:
                    lost += newest is None or newest.batch == 0
    assert lost > 5
