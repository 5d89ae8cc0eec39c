"""The tuples of an aggregate's row, plainly: those of its group in its window that pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def tuples_of_group(
    rows: Rows,
    *,
    window_us: tuple[int, int],
    keys: Mapping[str, Any],
    passes: Callable[[Mapping[str, Any]], bool],
) -> list[int]:
    """The places of the rows in [start, end) with these keys; NULL is a key like others."""
    start, end = window_us
    return [
        place
        for place, row in enumerate(rows)
        if start <= row["ts"] < end and all(row[k] == v for k, v in keys.items()) and passes(row)
    ]
