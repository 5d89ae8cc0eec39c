"""Names a checkpoint, so that a place which others write to as well can tell whose rows it has."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from tidegate import schedule

IDENTITY = "identity"
"""The member of meta.json that has the name."""


def new_identity() -> str:
    """A name that no other checkpoint has."""
    return schedule.current().token()


def identity_of(location: str, meta: Mapping[str, Any]) -> str:
    """The name of a checkpoint; of one from before there were names, one by where it is."""
    found: str = meta.get(IDENTITY) or f"at-{zlib.crc32(location.encode()):08x}"
    return found
