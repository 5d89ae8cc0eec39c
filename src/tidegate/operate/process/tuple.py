"""One tuple as the user's own code sees it, between the columns of a batch and a Python object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(ts_us: int) -> datetime:
    """Microseconds since 1970 as a time in UTC; OverflowError outside the years 1 to 9999."""
    return EPOCH + timedelta(microseconds=ts_us)


def microseconds(time: datetime | int) -> int:
    """A time as microseconds since 1970; one without a zone is in UTC, an integer is there."""
    if isinstance(time, datetime):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1)
    if isinstance(time, bool) or not isinstance(time, int):
        raise TypeError(f"a time is a datetime or whole microseconds, not {time!r}")
    return time


def time_text(ts_us: int) -> str:
    """A time for messages: ISO 8601 in UTC where it can be written so."""
    try:
        return moment(ts_us).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{ts_us} us"


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
        if name.startswith("__") or (name != "ts" and name not in self._places):
            raise AttributeError(f"the tuple has no column {name}; there are {', '.join(self)}")
        return self[name]

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
