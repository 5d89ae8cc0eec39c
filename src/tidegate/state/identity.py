"""Names a checkpoint, so that a topic or table with several writers can tell whose rows it has."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from tidegate import schedule

IDENTITY = "identity"
"""The member of meta.json with the name."""


def new_identity() -> str:
    """A random name, which no other checkpoint has."""
    return schedule.current().token()


def identity_of(location: str, meta: Mapping[str, Any]) -> str:
    """The name of a checkpoint. One of an old version has none, and is named by its location."""
    found: str = meta.get(IDENTITY) or f"at-{zlib.crc32(location.encode()):08x}"
    return found
