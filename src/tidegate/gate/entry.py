"""Reads and checks the entry of a source in a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.connector import Source
from tidegate.errors import SourceError

CONSUMED = "(consumed)"
"""The id of the entry for all sources of an inlet that have no entry of their own."""

Entry = Mapping[str, Any]


def waits(saved: Entry) -> bool:
    """Whether tuples of a source wait in the gate; a restart reads them again."""
    return bool(saved.get("waiting_from", 0) < saved.get("position", 0))


def is_needed(saved: Entry) -> bool:
    """Whether a source has rows left to read, or tuples that wait."""
    return waits(saved) or not (saved["ended"] or saved["removed"])


def check_same(source: Source, saved: Entry) -> None:
    """Refuse a source whose rows that were read have changed since."""
    again = is_needed(saved)
    if "mark" in saved and (again or not saved["removed"]):
        source.check(saved["mark"], saved["position"], again)


def check_whole(source: Source, saved: Entry, live: bool) -> None:
    """Refuse a source with fewer rows than were read of it; a live one may still get them back."""
    needed = waits(saved) or not (live or saved["ended"] or saved["removed"])
    if needed and (there := source.extend(saved["position"])) < saved["position"]:
        raise SourceError(
            source.id,
            f"was read up to row {saved['position']} by this checkpoint and must have as many",
            f"{there} rows",
            "Put it back as it was, or start from an empty checkpoint.",
        )


def gone(source: str, position: int) -> SourceError:
    """The error for a source that is needed and missing."""
    return SourceError(
        source,
        f"was read up to row {position} by this checkpoint and must be there",
        "no such source",
        "Put it back, or start from an empty checkpoint.",
    )
