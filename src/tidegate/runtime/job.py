"""What one batch asks of the tasks, as plain picklable data between the loop and an executor."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from tidegate.plan.physical import Plan
from tidegate.route import mapping as route
from tidegate.sink.part import PartWriter
from tidegate.source.protocol import Reader
from tidegate.state.segment import Segment
from tidegate.state.store import StoreHandle

PARTIAL = 0
"""A parcel of pane partials or of ready tuples, for the instance that owns them."""
LATE = 1
"""A parcel of late tuples; any instance passes it on."""
REJECTED = 2
"""A parcel of tuples without a readable time, or unreadable as a whole."""
START = 3
"""An empty parcel, so that an instance without tuples runs too."""
SPANS = 4
"""What a map task spent its time on, as JSON; any instance passes it on."""
ERROR = 5
"""Why a map task failed, pickled, where it cannot answer the driver itself."""

EVERY = -1
"""The instance of a parcel that is for all of them."""

ALL, GRID, KEY = "all", "grid", "key"
"""How the new tuples of a join are spread: all to every instance; over rows (left) and columns
(right) of a grid of instances; by key to the one that owns it."""


@dataclass(frozen=True)
class Split:
    """A run of positions of one source, read by one map task.

    `late` is the gate's verdict over [start, stop) as packed bits, None for none. Only positions
    from `new_from` on go to the side outputs: earlier ones were reported when they were read.
    """

    index: int
    stream: int
    source: str
    order: int
    start: int
    new_from: int
    stop: int
    late: bytes | None
    reader: Reader


@dataclass(frozen=True)
class Job:
    """One batch, for the map tasks (one per split) and the instances (one task each).

    `cuts_us` are the event times that divide the ready tuples of a stateless query among the
    instances; aggregates are divided by the mapping.

    `state` has the segments of each operator. For joins, `before` is how many tuples of each side
    came in earlier batches, and `spread` which instances see a new tuple. `parts` is where
    tasks may write the output themselves where it is large.

    Files that tasks write begin with `name`, which stands for all that makes their bytes: the
    tasks of a driver that died may write on, and then write the same as the replay, or elsewhere.
    """

    batch: int
    plan: Plan
    splits: tuple[Split, ...]
    mapping: route.Mapping
    previous_us: int
    frontier_us: int
    state: Mapping[str, tuple[Segment, ...]]
    store: StoreHandle
    cuts_us: tuple[int, ...] = ()
    before: tuple[int, int] = (0, 0)
    spread: str = ALL
    parts: PartWriter | None = None
    name: str = field(init=False)

    @property
    def rows(self) -> int:
        """The positions that the map tasks read."""
        return sum(s.stop - s.start for s in self.splits)

    def __post_init__(self) -> None:
        read = [
            (s.source, s.order, s.start, s.new_from, s.stop, zlib.crc32(s.late or b""))
            for s in self.splits
        ]
        bounds = [int(us) for us in (self.previous_us, self.frontier_us, *self.cuts_us)]
        facts = (read, self.mapping.owners, bounds)
        digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:8]
        object.__setattr__(self, "name", f"{self.batch:08d}-{digest}")


@dataclass(frozen=True)
class Parcel:
    """What a map task hands to an instance: a table as bytes, and which split it came from."""

    instance: int
    split: int
    kind: int
    data: bytes | pa.Buffer
    label: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one instance reports to the driver.

    `rows` is its part of the output, in order, with hidden columns for the merge; `side` are the
    parcels of the side outputs passing through. `segments` are those it wrote, by
    operator, `counts` is what it counted. `written` says that tasks have written
    all rows of the batch, how many of them this outcome stands for, and `rows` are some of the
    last. `spans_ms` is what it spent its time on, and what
    the map tasks did whose parcels said so.
    """

    instance: int
    rows: pa.Table
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    side: tuple[Parcel, ...] = ()
    tuples: int = 0
    seconds: float = 0.0
    spans_ms: dict[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    written: int | None = None

    def without_rows(self) -> Outcome:
        return replace(self, rows=self.rows.schema.empty_table())  # a slice pickles it all

    def with_rows(self, rows: pa.Table) -> Outcome:
        return replace(self, rows=rows)

    def with_spans(self, spans_ms: dict[str, float]) -> Outcome:
        return replace(self, spans_ms=spans_ms)


class Executor(Protocol):
    """Runs the tasks of a batch; what it returns does not depend on where they ran."""

    def run(self, job: Job) -> list[Outcome]: ...

    def close(self) -> None: ...


def raw_name(name: str) -> str:
    """A raw column's name beside ts, src and seq."""
    return f"raw_{name}"


def out_name(name: str) -> str:
    """A prefix output's name beside ts, src and seq."""
    return f"out_{name}"


def side_name(job: Job, split: int) -> str:
    """Where a read task leaves side outputs when its rows go on through Spark SQL."""
    return f"staged/{job.name}-side-{split:06d}"
