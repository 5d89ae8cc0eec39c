"""Counts what has arrived at live sources and no batch has taken, for status and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.gate.inlet import Inlet


UNITS = ("rows", "bytes", "files")


@dataclass(frozen=True)
class Backlog:
    """What live sources have and no batch has taken, by unit: in all, and by URI or name.

    Units are rows where these are known without reading, bytes of text, and unread files of a
    folder. `rows` has by stream and order of a source its id and its rows, None where these are not
    known. Grows with the URIs of a query and the open sources.
    """

    total: Mapping[str, int]
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rows: Mapping[tuple[int, int], tuple[str, int | None]] = field(default_factory=dict)


def backlog_of(inlets: Sequence[Inlet]) -> Backlog | None:
    """The backlog of all inlets that are live; None where none is."""
    sources: dict[str, Counter[str]] = {}
    rows: dict[tuple[int, int], tuple[str, int | None]] = {}
    for inlet in inlets:
        if inlet.live and not inlet.removed:
            sources.setdefault(inlet.name, Counter()).update(_of(inlet, rows))
    if not sources:
        return None
    total: Counter[str] = Counter()
    for counts in sources.values():
        total.update(counts)
    every = {unit: total[unit] for unit in UNITS}
    return Backlog(every, {name: dict(counts) for name, counts in sources.items()}, rows)


def _of(inlet: Inlet, rows: dict[tuple[int, int], tuple[str, int | None]]) -> Counter[str]:
    """The backlog of an inlet by unit; adds the rows of its sources to `rows`."""
    found: Counter[str] = Counter()
    if inlet.folder is not None:
        found["files"] += inlet.unread()
    unseen = inlet.connector.unseen_rows()
    if unseen is not None:
        found["rows"] += unseen
    for track in inlet.tracks.values():
        if track.removed:
            continue
        left = track.source.untaken(track.position)
        counted = left[0] if left is not None and left[1] == "rows" else None
        rows[inlet.stream, track.order] = track.source.id, counted
        if left is not None:
            found[left[1]] += left[0]
    return found
