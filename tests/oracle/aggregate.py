"""Windowed aggregation row by row and window by window, without panes: the twin of the engine's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    groups: dict[tuple[int, tuple[Any, ...]], list[Row]] = {}
    for row in rows:
        k = row["ts"] // spec.slide_us
        while row["ts"] < k * spec.slide_us + spec.range_us:
            if above_us < k * spec.slide_us + spec.range_us <= upto_us:
                key = tuple(sort_key(row[name]) for name, _ in spec.keys)
                groups.setdefault((k, key), []).append(row)
            k -= 1
    output = []
    for k, key in sorted(groups):
        members = sorted(groups[k, key], key=lambda r: (r["ts"], r["src"], r["seq"]))
        start = k * spec.slide_us
        keys = tuple(one_zero(members[0][name]) for name, _ in spec.keys)
        results = tuple(result(f, members, users or {}) for f in spec.functions)
        output.append((start, start + spec.range_us, *keys, *results))
    return output
