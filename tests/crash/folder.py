"""Whole folders compared byte for byte, and what a checkpoint says of itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidegate.state.inspect import inspect
from tidegate.state.lock import LOCK
from tidegate.state.segment import Segment, read_segment
from tidegate.state.store import Store

CERTAIN = 5
"""[ROWS 8 SLIDE 3]: the next window ends three tuples on at most, so it has these of a group."""


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its name, and every empty folder; not who has it claimed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name == LOCK:
            continue
        if path.is_file():
            found[name] = path.read_bytes()
        elif not any(path.iterdir()):
            found[name + "/"] = b""
    return found


def difference(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """What is wrong with a folder, in words; empty where it is as expected."""
    wrong = [f"{name} is missing" for name in expected if name not in found]
    wrong += [f"{name} is too much" for name in found if name not in expected]
    wrong += [f"{n} differs" for n in found if n in expected and found[n] != expected[n]]
    return sorted(wrong)


def published(folder: Path) -> dict[str, bytes]:
    """What a reader of the results sees now: all but what waits to be published."""
    return {k: v for k, v in contents(folder).items() if not k.startswith("_staging")}


def results(found: dict[str, bytes]) -> dict[str, bytes]:
    """The batches themselves, without the side outputs."""
    return {k: v for k, v in found.items() if k.startswith("batch=")}


def facts(checkpoint: Path) -> dict[str, Any]:
    """What `tidegate state --verify --json` says, without what depends on the clock.

    How many layers windows of tuples have depends on when they were merged, and with them how many
    dead tuples there are. For these the live tuples stand here instead.
    """
    store = Store.open(str(checkpoint))
    found = inspect(store, verify=True)
    state = found["state"] or {}
    for epoch in state.get("epochs", []):
        epoch.pop("switch_ms")
    for name in state.get("operators", {}):
        if name.endswith("/tuples"):
            state["operators"][name] = live_tuples(store, store.kept()[-1].operators[name])
    return {k: v for k, v in found.items() if k != "location"}


def live_tuples(store: Store, layers: Sequence[Segment]) -> list[list[Any]]:
    """The newest tuples of each group, in the order of their arrival."""
    groups: dict[tuple[int, int], list[list[Any]]] = defaultdict(list)
    for layer in layers:
        for row in read_segment(store, layer).to_pylist():
            key = (row["bucket"], row["group"] & ~(1 << 62))
            groups[key].append([row["rank"], *(str(v) for k, v in row.items() if k != "group")])
    return [[key, sorted(rows)[-CERTAIN:]] for key, rows in sorted(groups.items())]
