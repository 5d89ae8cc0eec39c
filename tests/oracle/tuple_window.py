"""Windows of tuples tuple by tuple, as the definition says it: the twin of the engine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.aggregate import Row, User, one_zero, result, sort_key
from tidegate.operate.tuple_window.spec import TupleSpec


def tuple_windows(
    spec: TupleSpec, rows: Sequence[Row], users: Mapping[str, User] | None = None
) -> list[tuple[Any, ...]]:
    """(start, end, keys..., results..., ts, src, seq of the trigger) of each window, in order.

    `users` gives the plain function of each user aggregate, over the argument tuples of a window.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    output = []
    for row in sorted(rows, key=lambda r: (r["ts"], r["src"], r["seq"])):
        held = groups.setdefault(tuple(sort_key(row[name]) for name, _ in spec.keys), [])
        held.append(row)
        if len(held) == spec.rows:
            keys = tuple(one_zero(row[name]) for name, _ in spec.keys)
            results = tuple(result(f, held, users or {}) for f in spec.functions)
            trigger = (row["ts"], row["src"], row["seq"])
            output.append((held[0]["ts"], row["ts"], *keys, *results, *trigger))
            del held[: spec.slide]
    return output
