"""Shows user code one row of a batch as an object with attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any

import pyarrow as pa

from tidegate.calendar.era import first_far, is_far
from tidegate.calendar.microsecond import moment


class Tuple(Mapping[str, Any]):
    """The columns of a tuple by name, as `t["fare"]` or `t.fare`; `ts` is its event time.

    Columns that have the name of a method of mappings (`keys`, `items`, `values`, `get`) are read
    as `t["keys"]`. The values are not to be changed.
    """

    __slots__ = ("_places", "_ts_us", "_values")

    def __init__(self, places: Mapping[str, int], ts_us: int, values: tuple[Any, ...]) -> None:
        self._places = places
        self._ts_us = ts_us
        self._values = values

    def __getitem__(self, name: str) -> Any:
        if name == "ts":
            return moment(self._ts_us)
        return self._values[self._places[name]]

    def __getattr__(self, name: str) -> Any:
        if name != "ts" and (name not in self._places or name.startswith("__")):
            raise AttributeError(f"the tuple has no column {name}; there are {', '.join(self)}")
        return moment(self._ts_us) if name == "ts" else self._values[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        yield "ts"
        yield from self._places

    def __len__(self) -> int:
        return 1 + len(self._places)

    def __repr__(self) -> str:
        return f"Tuple({', '.join(f'{name}={self[name]!r}' for name in self)})"

    def parts(self) -> tuple[list[str], int, list[Any]]:
        """Names, time and values, from which `rebuilt` makes an equal one."""
        return list(self._places), self._ts_us, list(self._values)


def rebuilt(names: list[str], ts_us: int, values: list[Any]) -> Tuple:
    """The tuple of `parts`."""
    return Tuple({name: place for place, name in enumerate(names)}, ts_us, tuple(values))


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """Cells as Python values; times are in `datetime.UTC`, which snapshots write fastest.

    Raises OverflowError, with the first such value, for times outside the years 1 to 9999.
    """
    is_date, is_time = pa.types.is_date32(column.type), pa.types.is_timestamp(column.type)
    times = column.cast(pa.timestamp("us")) if is_time else column
    if (is_date or is_time) and is_far(times):
        raise OverflowError(first_far(times.combine_chunks()))
    listed: list[Any] = times.to_pylist()
    return [t and t.replace(tzinfo=UTC) for t in listed] if is_time else listed
