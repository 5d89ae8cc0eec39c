"""Whole folders compared byte for byte, and what a checkpoint says of itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.entry import EntryKeeper
from tidegate.state.inspect import inspect
from tidegate.state.lock import LOCK
from tidegate.state.segment.segment import Segment, read_segment
from tidegate.state.store import Store

CERTAIN = {"aggregate/tuples": 5, "aggregate2/tuples": 5, "over/tuples": 1}
"""Of [ROWS 8 SLIDE 3] the next window ends three tuples on at most, so it has these of a group; of
running sums the newest tuple has all."""


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
    return {k: v for k, v in contents(folder).items() if "_staging" not in k}


def begins(seen: dict[str, bytes], whole: dict[str, bytes]) -> bool:
    """Whether what is seen of each output is the beginning of the whole of it."""
    everything = results(whole)
    return all(
        list(part.items()) == list(everything[output].items())[: len(part)]
        for output, part in results(seen).items()
    )


def results(found: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The batches of each output, without the side outputs; the folder of an only one is empty."""
    outputs: dict[str, dict[str, bytes]] = defaultdict(dict)
    for name, content in found.items():
        output, batch, _ = name.rpartition("batch=")
        if batch and not output.startswith("_") and not output.endswith("_ledger/"):
            outputs[output][name] = content
    return outputs


def facts(checkpoint: Path) -> dict[str, Any]:
    """What `tidegate state --verify --json` says, without what depends on the clock.

    How many layers windows of tuples and processes have depends on when they were merged, and with
    them how many dead rows there are. For these the rows that count stand here instead.
    """
    store = Store.open(str(checkpoint))
    found = inspect(store, verify=True)
    state = found["state"] or {}
    for epoch in state.get("epochs", []):
        for name in ("switch_ms", "control_ms", "asked", "applied", "completed"):
            epoch.pop(name, None)
    for version in (v for versions in state.get("tables", {}).values() for v in versions):
        for name in ("read", "file"):
            version.pop(name)
    state.pop("files", None)  # names have the number of the attempt
    for name in state.get("operators", {}):
        layers = store.kept()[-1].operators[name]
        if name in CERTAIN:
            state["operators"][name] = live_tuples(store, layers, CERTAIN[name])
        elif name.startswith("process/"):
            state["operators"][name] = live_entries(store, layers)
    return {k: v for k, v in found.items() if k != "location"}


def live_entries(store: Store, layers: Sequence[Segment]) -> list[dict[str, Any]]:
    """What the objects of a process keep, by bucket and entry."""
    if not layers:
        return []
    keeper = EntryKeeper()
    merged = keeper.arrange(pa.concat_tables(read_segment(store, layer) for layer in layers))
    rows = [row for row in merged.to_pylist() if row[keeper.order] < HIDES]
    return sorted(rows, key=lambda row: (row["bucket"], row[keeper.order], row["name"]))


def live_tuples(store: Store, layers: Sequence[Segment], certain: int) -> list[list[Any]]:
    """The newest tuples of each group, in the order of their arrival."""
    groups: dict[tuple[int, int], list[list[Any]]] = defaultdict(list)
    for layer in layers:
        for row in read_segment(store, layer).to_pylist():
            key = (row["bucket"], row["group"] & ~(1 << 62))
            groups[key].append([row["rank"], *(str(v) for k, v in row.items() if k != "group")])
    return [[key, sorted(rows)[-certain:]] for key, rows in sorted(groups.items())]
