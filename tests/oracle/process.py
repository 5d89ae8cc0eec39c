"""The user's own operator tuple by tuple, timer by timer, over one sequence: the engine's twin.

Objects stay alive from the first tuple to the last, so nothing is ever kept and restored.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

Row = Mapping[str, Any]
Cells = tuple[Any, ...]
Place = tuple[int, int, int, int]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """What an object asks of the engine: its bucket, how many there are, timers, and the time."""

    def __init__(self, bucket: int, total: int) -> None:
        self.bucket = bucket
        self.total = total
        self.now_us = 0
        self.timers: set[int] = set()

    def wake(self, ts: datetime | int) -> None:
        if isinstance(ts, datetime):
            ts = (ts - EPOCH) // timedelta(microseconds=1)
        self.timers.add(ts)


class PlainMap(MutableMapping[Any, Any]):
    """A map that an object declares: a dict that forgets what has expired when it is used."""

    def __init__(self, clock: Clock, ttl_us: int | None) -> None:
        self._clock = clock
        self._ttl_us = ttl_us
        self._values: dict[Any, Any] = {}
        self._until: dict[Any, float] = {}

    def begin(self, key: Any, value: Any, set_us: int) -> None:
        """What a table says of a key before the first tuple."""
        self._values[key] = copy.deepcopy(value)
        self._until[key] = set_us + (float("inf") if self._ttl_us is None else self._ttl_us)

    def _forget(self) -> None:
        for key in [k for k, until in self._until.items() if until <= self._clock.now_us]:
            del self._values[key], self._until[key]

    def __getitem__(self, key: Any) -> Any:
        self._forget()
        return self._values[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._forget()
        self._values[key] = value
        ttl_us = float("inf") if self._ttl_us is None else self._ttl_us
        self._until[key] = self._clock.now_us + ttl_us

    def __delitem__(self, key: Any) -> None:
        self._forget()
        del self._values[key], self._until[key]

    def __iter__(self) -> Iterator[Any]:
        self._forget()
        return iter(list(self._values))

    def __len__(self) -> int:
        self._forget()
        return len(self._values)


class PlainValue:
    """A value that an object declares."""

    def __init__(self, clock: Clock, ttl_us: int | None, default: Any) -> None:
        self._map = PlainMap(clock, ttl_us)
        self._default = default

    def get(self) -> Any:
        return self._map[0] if self.exists() else copy.deepcopy(self._default)

    def update(self, value: Any) -> None:
        self._map[0] = value

    def exists(self) -> bool:
        return 0 in self._map

    def clear(self) -> None:
        self._map.clear()


class PlainColumns:
    """Rows that an object keeps by column: a list that forgets what has expired."""

    def __init__(self, clock: Clock, ttl_us: int | None) -> None:
        self._clock = clock
        self._ttl_us = ttl_us
        self._rows: list[dict[str, Any]] = []

    def _forget(self) -> None:
        if self._ttl_us is not None:
            since_us = self._clock.now_us - self._ttl_us
            self._rows = [row for row in self._rows if row["ts"].astype(int) > since_us]

    def append(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._forget()
        self._rows += [dict(zip(columns, row)) for row in zip(*columns.values(), strict=True)]

    def __getitem__(self, column: str) -> list[Any]:
        self._forget()
        return [row[column] for row in self._rows]

    def __len__(self) -> int:
        self._forget()
        return len(self._rows)

    def clear(self) -> None:
        self._rows = []


def declare(made: Any, clock: Clock, initial: Sequence[Mapping[str, Any]] = ()) -> None:
    """Put plain maps and values in the place of the attributes that are declared state.

    `initial` are the rows of the bucket's keys in a table: `key`, `ts`, and maps by their names.
    """
    for name, value in list(vars(made).items()):
        kind = type(value).__name__
        if kind == "MapState":
            vars(made)[name] = plain = PlainMap(clock, value.ttl_us)
            for row in initial:
                if row.get(value.name) is not None:
                    plain.begin(row["key"], row[value.name], row.get("ts", 0))
        elif kind == "ValueState":
            vars(made)[name] = PlainValue(clock, value.ttl_us, value.default)
        elif kind == "ColumnsState":
            vars(made)[name] = PlainColumns(clock, value.ttl_us)


class Plain:
    """A tuple with its columns as attributes and as entries."""

    def __init__(self, row: Row) -> None:
        self._row = {**row, "ts": EPOCH + timedelta(microseconds=row["ts"])}

    def __getattr__(self, name: str) -> Any:
        return self._row[name]

    def __getitem__(self, name: str) -> Any:
        return self._row[name]


def process(
    factory: Callable[[], Any],
    names: Sequence[str],
    tuples: Sequence[Row],
    keys: Callable[[Row], Sequence[Any]] | None,
    bucket: Callable[[Any], int],
    total: int,
    turn: str,
    initial: Sequence[Mapping[str, Any]] = (),
) -> list[Cells]:
    """The output, each row with its time first, of tuples with ts, src, seq and columns.

    `keys` gives the keys of a tuple, each once, or is None where all buckets see it; `turn` is the
    attribute in which an object finds its clock. `initial` are rows as `declare` takes them.
    """
    objects: dict[int, Any] = {}
    made: list[tuple[int, int, int, int, int, Cells]] = []

    def add(ts: int, src: int, seq: int, number: int, rows: Any) -> None:
        for count, row in enumerate(rows or ()):
            cells = tuple(row[n] for n in names) if isinstance(row, Mapping) else row
            made.append((ts, src, seq, number, count, cells))

    def fire(before: float) -> None:
        while due := [
            (t, n) for n, o in objects.items() for t in vars(o)[turn].timers if t < before
        ]:
            ts, number = min(due)
            vars(objects[number])[turn].timers.remove(ts)
            vars(objects[number])[turn].now_us = ts
            rows = objects[number].on_frontier(EPOCH + timedelta(microseconds=ts))
            add(ts, 2**63 - 1, 0, number, rows)

    for row in sorted(tuples, key=lambda r: (r["ts"], r["src"], r["seq"])):
        fire(row["ts"])
        mine: dict[int, list[Any]] = {}
        for key in keys(row) if keys is not None else ():
            mine.setdefault(bucket(key), []).append(key)
        for number in sorted(mine) if keys is not None else range(total):
            if number not in objects:
                objects[number] = factory()
                vars(objects[number])[turn] = Clock(number, total)
                mine_first = [row for row in initial if bucket(row["key"]) == number]
                declare(objects[number], vars(objects[number])[turn], mine_first)
            vars(objects[number])[turn].now_us = row["ts"]
            rows = objects[number].on_tuple(Plain(row), mine.get(number, []))
            add(row["ts"], row["src"], row["seq"], number, rows)
    fire(float("inf"))
    return [(ts, *cells) for ts, _, _, _, _, cells in sorted(made, key=lambda m: m[:5])]
