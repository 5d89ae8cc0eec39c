"""Changes that an operator made on its own, as of its partitioner, for status and summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST_CHANGES = 64
"""Of how many an instance tells in a batch: the newest."""


@dataclass(frozen=True)
class OperatorChange:
    """One change: what it is in a line, and its figures by name, as plain values for JSON.

    They are for people: no row of a result depends on them.
    """

    text: str
    facts: Mapping[str, str | int]
