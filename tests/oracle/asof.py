"""As-of joins tuple by tuple: every left tuple looks at all right tuples, whatever the cost."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.aggregate import sort_key

Row = Mapping[str, Any]
Cells = tuple[Any, ...]

_COMPARE = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True)
class Nearest:
    """Each left tuple with the right one nearest in time, in SQL's equality of the keys.

    `where` sees None for a missing partner, and so does `select`.
    """

    comparison: str
    keys: tuple[str, ...]
    tolerance: int | None
    keep: bool
    select: Callable[[Row, Row | None], Cells]
    where: Callable[[Row, Row | None], bool] = lambda left, right: True

    @property
    def looks_back(self) -> bool:
        return self.comparison in (">=", ">")


def nearest(query: Nearest, tuples: Sequence[Row]) -> list[Cells]:
    """The output: the time of the left tuple, then the select list.

    `tuples` come in the total order, each with its side under `stream`.
    """
    rights = [row for row in tuples if row["stream"] == 1]
    decided = []
    for place, left in enumerate(row for row in tuples if row["stream"] == 0):
        partner = _partner(query, left, rights)
        if (partner is None and not query.keep) or not query.where(left, partner):
            continue
        at = left["ts"]
        if not query.looks_back:
            at = at + query.tolerance if partner is None else partner["ts"]
        alone = partner is None and not query.looks_back
        decided.append((at, alone, place, (left["ts"], *query.select(left, partner))))
    return [cells for *_, cells in sorted(decided, key=lambda d: d[:3])]


def _partner(query: Nearest, left: Row, rights: Sequence[Row]) -> Row | None:
    own = [left[key] for key in query.keys]
    if None in own:
        return None
    found = [
        right
        for right in rights
        if all(right[key] is not None for key in query.keys)
        and [sort_key(right[key]) for key in query.keys] == [sort_key(value) for value in own]
        and _COMPARE[query.comparison](left["ts"], right["ts"])
        and (query.tolerance is None or abs(left["ts"] - right["ts"]) <= query.tolerance)
    ]
    best = (max if query.looks_back else min)((r["ts"] for r in found), default=None)
    return next((r for r in reversed(found) if r["ts"] == best), None)
