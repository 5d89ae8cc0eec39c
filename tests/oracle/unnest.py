"""Row by row: a row for each value of a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]


def exploded(rows: Iterable[Row], lists: str, first: int, outer: bool) -> Iterator[dict[str, Any]]:
    """The rows without their list, once for each of its values, with `value` and `place`."""
    for row in rows:
        rest = {name: value for name, value in row.items() if name != lists}
        values = row[lists] or []
        for place, value in enumerate(values, start=first):
            yield rest | {"value": value, "place": place}
        if outer and not values:
            yield rest | {"value": None, "place": None}
