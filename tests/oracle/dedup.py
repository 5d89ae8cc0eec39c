"""Deduplication tuple by tuple, as the definition says it: the twin of the engine's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.aggregate import sort_key

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Deduplicated:
    """DISTINCT ON (keys) ... KEEP WITHIN within_us, with its WHERE and its select list.

    With `last` KEEP LAST, else KEEP FIRST.
    """

    keys: tuple[str, ...]
    within_us: int
    select: Callable[[Row], tuple[Any, ...]]
    where: Callable[[Row], bool] = lambda row: True
    last: bool = False

    def rows(self, tuples: Sequence[Row]) -> list[tuple[Any, ...]]:
        """The rows over tuples in the total order."""
        held = [row for row in tuples if self.where(row)]
        kept = (last_within if self.last else first_within)(self, held)
        return [(row["ts"], *self.select(row)) for row in kept]


def first_within(query: Deduplicated, tuples: Sequence[Row]) -> list[Row]:
    """The tuples that no kept one of their key is at most within_us before."""
    kept: dict[tuple[Any, ...], int] = {}
    output = []
    for row in tuples:
        key = tuple(sort_key(row[name]) for name in query.keys)
        if key not in kept or row["ts"] - kept[key] > query.within_us:
            kept[key] = row["ts"]
            output.append(row)
    return output


def last_within(query: Deduplicated, tuples: Sequence[Row]) -> list[Row]:
    """The last tuple at most within_us after the first of its key, in the order of decisions."""
    open_: dict[tuple[Any, ...], list[int]] = {}
    groups = []
    for place, row in enumerate(tuples):
        key = tuple(sort_key(row[name]) for name in query.keys)
        if key not in open_ or row["ts"] > open_[key][0] + query.within_us:
            open_[key] = [row["ts"], place]
            groups.append(open_[key])
        open_[key][1] = place
    return [tuples[place] for _, place in sorted(groups)]
