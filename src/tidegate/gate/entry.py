"""Reads and checks what a manifest says of one source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.connector import Source
from tidegate.errors import SourceError

CONSUMED = "(consumed)"
"""The id under which a manifest keeps what is known of sources that have no entry of their own."""

Entry = Mapping[str, Any]


def waits(saved: Entry) -> bool:
    """Whether tuples of a source wait in the gate and will be read once more."""
    return bool(saved.get("waiting_from", 0) < saved.get("position", 0))


def is_needed(saved: Entry) -> bool:
    """Whether a source of a manifest has more to give: rows to read, or tuples that wait."""
    return waits(saved) or not (saved["ended"] or saved["removed"])


def check_same(source: Source, saved: Entry) -> None:
    """Refuse a source in which what was read is not what it was."""
    again = is_needed(saved)
    if "mark" in saved and (again or not saved["removed"]):
        source.check(saved["mark"], saved["position"], again)


def check_whole(source: Source, saved: Entry, live: bool) -> None:
    """Refuse a source that has fewer rows than were read of it; a live one may still get them."""
    needed = waits(saved) or not (live or saved["ended"] or saved["removed"])
    if needed and (there := source.extend(saved["position"])) < saved["position"]:
        raise SourceError(
            source.id,
            f"was read up to row {saved['position']} by this checkpoint and must have as many",
            f"{there} rows",
            "Put it back as it was, or start from an empty checkpoint.",
        )


def gone(source: str, position: int) -> SourceError:
    """What to say of a source that is needed and is not there."""
    return SourceError(
        source,
        f"was read up to row {position} by this checkpoint and must be there",
        "no such source",
        "Put it back, or start from an empty checkpoint.",
    )
