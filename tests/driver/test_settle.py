"""Before a start adds to a checkpoint, what is there is made to outlive a loss of power."""

from __future__ import annotations

from tests.driver.scene import COUNTS, loop_of, memory, plan_of
from tidegate.state.store import Store
from tidegate.testing.simulation.world import World


def test_a_start_syncs_what_another_left_before_it_writes() -> None:
    """Its first manifest must not be there without the meta.json of the run before."""
    done: list[tuple[str, str]] = []
    world = World(1)
    with world.entered():
        source = memory((1, "a", 1), end=True)
        loop_of(plan_of(COUNTS), [source], "/checkpoint").close()
        world.disk.fail = lambda operation, path: done.append((operation, path))
        loop_of(plan_of(COUNTS), [memory((1, "a", 1), end=True)], "/checkpoint").close()
        assert Store.open("/checkpoint").meta() is not None
    changed = next(i for i, (op, path) in enumerate(done) if op in ("create", "link"))
    synced = [path for op, path in done[:changed] if op == "sync_folder"]
    assert {"/", "/checkpoint", "/checkpoint/manifest"} <= set(synced)
