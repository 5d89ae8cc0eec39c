"""The user's own operator tuple by tuple, timer by timer, over one sequence: the engine's twin.

Objects stay alive from the first tuple to the last, so nothing is ever kept and restored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

Row = Mapping[str, Any]
Cells = tuple[Any, ...]
Place = tuple[int, int, int, int]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """What an object asks of the engine: its bucket, how many there are, and timers."""

    def __init__(self, bucket: int, total: int) -> None:
        self.bucket = bucket
        self.total = total
        self.timers: set[int] = set()

    def wake(self, ts: datetime | int) -> None:
        if isinstance(ts, datetime):
            ts = (ts - EPOCH) // timedelta(microseconds=1)
        self.timers.add(ts)


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
) -> list[Cells]:
    """The output, each row with its time first, of tuples with ts, src, seq and columns.

    `keys` gives the keys of a tuple, each once, or is None where all buckets see it; `turn` is the
    attribute in which an object finds its clock.
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
            rows = objects[number].on_tuple(Plain(row), mine.get(number, []))
            add(row["ts"], row["src"], row["seq"], number, rows)
    fire(float("inf"))
    return [(ts, *cells) for ts, _, _, _, _, cells in sorted(made, key=lambda m: m[:5])]
