"""Windowed aggregation row by row and window by window, without panes: the twin of the engine's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.oracle.function import Row, User, one_zero, result, sort_key
from tidegate.operate.aggregate.pane import AggregateSpec


def windows(
    spec: AggregateSpec,
    rows: Sequence[Row],
    above_us: float = -math.inf,
    upto_us: float = math.inf,
    users: Mapping[str, User] | None = None,
) -> list[tuple[Any, ...]]:
    """(start, end, keys..., results...) of each window with above < end <= upto, in output order.

    `users` gives the plain function of each user aggregate, over the argument tuples of a group.
    """
    output = []
    for start, end, keys, members in groups_of(spec, rows):
        if above_us < end <= upto_us:
            results = tuple(result(f, members, users or {}) for f in spec.functions)
            output.append((start, end, *keys, *results))
    return output


def groups_of(
    spec: AggregateSpec, rows: Sequence[Row]
) -> Iterator[tuple[int, int, tuple[Any, ...], list[Row]]]:
    """Start, end, keys and tuples, in the total order, of every window and group."""
    groups: dict[tuple[int, tuple[Any, ...]], list[Row]] = {}
    for row in rows:
        k = row["ts"] // spec.window.slide_us
        while row["ts"] < k * spec.window.slide_us + spec.window.range_us:
            key = tuple(sort_key(row[name]) for name, _ in spec.keys)
            groups.setdefault((k, key), []).append(row)
            k -= 1
    for k, key in sorted(groups):
        members = sorted(groups[k, key], key=lambda r: (r["ts"], r["src"], r["seq"]))
        keys = tuple(one_zero(members[0][name]) for name, _ in spec.keys)
        yield (
            k * spec.window.slide_us,
            k * spec.window.slide_us + spec.window.range_us,
            keys,
            members,
        )
