"""Compares two answers of one engine: the same rows, the same order, and the first that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from determinism.answer import read_rows

__all__ = ["compare", "read_rows", "said"]
_SHOWN = 3


def compare(reference: Sequence[str], other: Sequence[str]) -> dict[str, Any]:
    """`lost` and `gained` rows as multisets; `order` says whether the sequences are equal."""
    lost = Counter(reference) - Counter(other)
    gained = Counter(other) - Counter(reference)
    return {
        "rows": len(other),
        "lost": lost.total(),
        "gained": gained.total(),
        "order": list(reference) == list(other),
        "first_lost": [row for row in reference if row in lost][:_SHOWN],
        "first_gained": [row for row in other if row in gained][:_SHOWN],
    }


def said(outcome: dict[str, Any]) -> str:
    """A cell of the table."""
    if outcome["order"]:
        return "same"
    if not outcome["lost"] and not outcome["gained"]:
        return "other order"
    rows = max(outcome["lost"], outcome["gained"])
    return f"**{rows:,} row{'' if rows == 1 else 's'}**"
