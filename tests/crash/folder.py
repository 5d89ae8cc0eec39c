"""Whole folders compared byte for byte, and what a checkpoint says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidegate.state.inspect import inspect
from tidegate.state.lock import LOCK
from tidegate.state.store import Store


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
    """What `tidegate state --verify --json` says, without what depends on the clock."""
    found = inspect(Store.open(str(checkpoint)), verify=True)
    for epoch in (found["state"] or {}).get("epochs", []):
        epoch.pop("switch_ms")
    return {k: v for k, v in found.items() if k != "location"}
