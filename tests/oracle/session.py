"""Sessions tuple by tuple, as the definition says it: the twin of the engine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.function import Row, User, one_zero, result, sort_key
from tidegate.operate.session.spec import SessionSpec


def sessions(
    spec: SessionSpec, rows: Sequence[Row], users: Mapping[str, User] | None = None
) -> list[tuple[Any, ...]]:
    """(start, end, keys..., results...) of each session, by end and then by key."""
    groups: dict[tuple[Any, ...], list[list[Row]]] = {}
    for row in sorted(rows, key=lambda r: (r["ts"], r["src"], r["seq"])):
        held = groups.setdefault(tuple(sort_key(row[name]) for name, _ in spec.keys), [])
        if (
            not held
            or row["ts"] > held[-1][-1]["ts"] + spec.gap_us
            or (spec.max_us is not None and row["ts"] > held[-1][0]["ts"] + spec.max_us)
        ):
            held.append([])
        held[-1].append(row)
    ended = [
        (members[-1]["ts"] + spec.gap_us, key, members)
        for key, held in groups.items()
        for members in held
    ]
    output = []
    for end, _, members in sorted(ended, key=lambda session: session[:2]):
        keys = tuple(one_zero(members[0][name]) for name, _ in spec.keys)
        results = tuple(result(f, members, users or {}) for f in spec.functions)
        output.append((members[0]["ts"], end, *keys, *results))
    return output
