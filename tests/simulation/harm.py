"""What is done to files while no driver runs, and how it is undone when it was refused."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.simulation.check import CHECKPOINT, OUT, Check
from tests.simulation.data import encoded
from tests.simulation.fault import Damage
from tests.simulation.scenario import Scenario
from tidegate.testing.simulation.world import World

Undo = Callable[[], None]


def damage(world: World, check: Check, fault: Damage) -> tuple[str, Undo | None] | None:
    """Damage a file of the checkpoint, or of what is staged; None where there is none."""
    disk = world.disk
    staged = [p for p in disk.files(OUT) if "/_staging/" in p]
    found = staged if fault.staged and staged else disk.files(CHECKPOINT)
    found = [p for p in found if disk.read(p)]
    if not found:
        return None
    return damaged(world, check, found[int(fault.choice * len(found))], fault)


def damaged(world: World, check: Check, path: str, fault: Damage) -> tuple[str, Undo | None]:
    """Damage a file; it is repaired when a run was refused, but not where no run would be."""
    goes = check.goes_with(path)
    if goes is None:
        return _damaged(world, path, fault)
    check.let_go.append(goes)
    told, _ = _damaged(world, path, fault)
    return f"{told}, and with it batches {sorted(goes)}", None


def _damaged(world: World, path: str, fault: Damage) -> tuple[str, Undo]:
    disk = world.disk
    content, changed = disk.read(path), disk.status(path).modified_ns
    if fault.kind == "remove":
        disk.remove(path)

        def put_back() -> None:
            if path not in disk.files("/"):
                disk.put(path, content)
            elif _batch(disk.read(path)) < _batch(
                content
            ):  # a start that was refused took its name
                disk.rewrite(path, content)

        return f"removed {path}", put_back
    place = int(fault.choice * 7919) % len(content)
    other = {
        "flip": content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :],
        "cut": content[:place],
        "zero": content[:place] + bytes(len(content) - place),
    }[fault.kind]
    disk.rewrite(path, other, changed)

    def repair() -> None:
        if path in disk.files("/") and disk.read(path) == other:
            disk.rewrite(path, content, changed)

    return f"{fault.kind} of {path}", repair


def _batch(content: bytes) -> int:
    """The batch of a manifest; -1 for any other file."""
    try:
        return int(json.loads(content)["batch"])
    except (ValueError, KeyError, TypeError):
        return -1


def replace(
    world: World, scenario: Scenario, check: Check, kind: str, choice: float
) -> tuple[str, Undo] | None:
    """Put another file in the place of one that was begun and not consumed."""
    disk, begun = world.disk, sorted(check.begun())
    begun = [path for path in begun if path in disk.files("/in")]  # else it is gone already
    if not begun:
        return None
    path = begun[int(choice * len(begun))]
    stream = next(s for s in scenario.streams if path in s.paths())
    place = stream.paths().index(path)
    lines, spoilt = list(stream.sources[place]), stream.spoilt[place]
    after = (max(ts for ts, _, _ in lines) + 1, 1, 1)
    if kind in ("values", "another"):
        lines = [(ts, k, 77 if v is None else v + 1) for ts, k, v in lines]
    elif kind == "longer":
        lines = [*((ts, k, 5) for ts, k, _ in lines), after, after, after]
    else:
        lines, spoilt = [*lines[len(lines) // 2 :], after], ()
    other = b"" if kind == "gone" else encoded(lines, stream.format, spoilt)
    content, changed = disk.read(path), disk.status(path).modified_ns
    file = disk.remove(path) if kind in ("another", "gone") else None
    if file is None:
        disk.rewrite(path, other)
    elif kind == "another":
        disk.put(path, other)

    def put_back() -> None:
        """With what was written to it since."""
        since = disk.read(path)[len(other) :] if path in disk.files("/in") else b""
        if file is not None:
            disk.give_back(path, file)
        disk.rewrite(path, content + since, changed if not since else None)

    return f"replaced {path} ({kind})", put_back
