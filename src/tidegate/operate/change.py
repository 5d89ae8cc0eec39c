"""Changes that an operator made on its own, such as of its partitioner, for status and summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST_CHANGES = 64
"""An instance reports at most so many changes in a batch, the newest ones."""


@dataclass(frozen=True)
class OperatorChange:
    """One change: a line for people, and its figures by name as plain values for JSON.

    No row of a result depends on them.
    """

    text: str
    facts: Mapping[str, str | int]
