"""Processes that are mergeable, over the streams of the property tests, with their plain twins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tests.oracle.aggregate import groups_of
from tests.oracle.query import Answer, PlainStream, Row, Windowed, in_total_order
from tests.property.queries import SCHEMA, Query, spec_of, uris_of
from tests.query.catalog import stream
from tidegate.operate.process.definition import Process
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan
from tidegate.query.node.node import Input, StreamDef

Cells = tuple[Any, ...]


class Profile(Process):
    """How often the keys of a group occur, if there is more than one, and its latest tuple."""

    output = {"key": "string", "n": "bigint", "latest": "bigint"}  # noqa: RUF012
    mergeable = True

    def __init__(self) -> None:
        self.counts: Counter[str | None] = Counter()
        self.latest: tuple[Any, ...] | None = None
        self.values: set[int | None] = set()

    def on_tuple(self, tuple: Any, keys: list[Any]) -> None:
        assert keys == [tuple.g]
        self.counts[tuple.k] += 1
        self.values.add(tuple.i)
        self.merge_latest((tuple.ts, -1 if tuple.i is None else tuple.i))

    def merge(self, other: Profile) -> None:
        self.counts.update(other.counts)
        self.values |= other.values
        assert other.latest is not None
        self.merge_latest(other.latest)

    def merge_latest(self, latest: tuple[Any, ...]) -> None:
        self.latest = latest if self.latest is None else max(self.latest, latest)

    def finish(self) -> Iterator[dict[str, Any]]:
        assert self.latest is not None
        for key, n in sorted(self.counts.items(), key=lambda pair: (-pair[1], str(pair[0]))):
            if len(self.values) > 1:
                yield {"key": key, "n": n, "latest": self.latest[1]}


def profile(members: Sequence[Row]) -> list[Cells]:
    if len({row["i"] for row in members}) == 1:
        return []
    counts = Counter(row["k"] for row in members)
    number = [(row["ts"], -1 if row["i"] is None else row["i"]) for row in members]
    found = [(key, n, max(number)[1]) for key, n in counts.items()]
    return sorted(found, key=lambda row: (-row[1], str(row[0])))


class Histogram(Process):
    """Tuples by the last digit of a number, taken as Arrow tables, with an array as its state."""

    output = pa.schema([("digit", pa.int64()), ("n", pa.int64())])
    mergeable = True

    def __init__(self) -> None:
        self.n = np.zeros(10, np.int64)

    def process(self, batch: pa.Table) -> None:
        assert batch.column_names[0] == "ts"
        numbers = batch["i"].drop_null().to_numpy()
        self.n += np.bincount(numbers % 10, minlength=10)

    def merge(self, other: Histogram) -> None:
        self.n += other.n

    def finish(self) -> pa.Table:
        found = np.flatnonzero(self.n)
        return pa.table({"digit": found, "n": self.n[found]})


def histogram(members: Sequence[Row]) -> list[Cells]:
    return sorted(Counter(row["i"] % 10 for row in members if row["i"] is not None).items())


@dataclass(frozen=True)
class ProcessQuery(Query):
    """A class over windows, and what it makes of the tuples of one group."""

    factory: Callable[[], Process] = Profile
    twin: Callable[[Sequence[Row]], list[Cells]] = profile

    def plan(
        self, sources: Sequence[int], disorder_us: int, choices: Choices | None = None
    ) -> Plan:
        assert isinstance(self.plain, Windowed)
        spec = self.plain.spec
        given = StreamDef("s", uris_of("s", sources[0]), "ts", disorder_us, None, SCHEMA)
        range_, slide = (
            f"{us} microseconds" for us in (spec.window.range_us, spec.window.slide_us)
        )
        windowed = stream(Input(given)).window(range_, slide=slide)
        keys = [name for name, _ in spec.keys]
        return lower(windowed.group_by(*keys).process(self.factory).node, choices=choices)

    def rows(self, streams: Sequence[PlainStream]) -> list[Cells]:
        """What it gives, plainly."""
        assert isinstance(self.plain, Windowed)
        tuples = [
            {**row, "src": (p.stream, p.source), "seq": p.seq}
            for p, row in in_total_order(streams, Answer())
        ]
        return [
            (start, end, *keys, *cells)
            for start, end, keys, members in groups_of(self.plain.spec, tuples)
            for cells in self.twin(members)
        ]


def _query(keys: Sequence[str], range_us: int, slide_us: int, *how: Any) -> ProcessQuery:
    spec = spec_of(keys, [], range_us, slide_us)
    return ProcessQuery("", Windowed(spec), ("s",), *how)


MERGEABLE: dict[str, Query] = {
    "profiles, sliding": _query(["g"], 12, 4),
    "profiles, tumbling": _query(["g"], 2000, 2000),
    "histograms by two keys": _query(["k", "g"], 9, 6, Histogram, histogram),
    "one histogram": _query([], 3000, 1500, Histogram, histogram),
}
