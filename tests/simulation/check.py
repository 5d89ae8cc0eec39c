"""What must hold of the output and the checkpoint in a simulated course, whatever went wrong."""

from __future__ import annotations

import io
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from tests.oracle.gate import PlainSource
from tests.oracle.graph import interpret
from tests.property.steps import BUCKETS
from tests.simulation.place import CALLED, Called
from tests.simulation.scenario import LONG_US, Scenario
from tidegate.errors import StateError, UserError
from tidegate.plan.physical import Plan
from tidegate.query.output import Output
from tidegate.state.archive.file import archive_files
from tidegate.state.archive.past import PastStates
from tidegate.state.manifest import Manifest
from tidegate.state.name import archived_batches, manifest_number
from tidegate.state.store import FOLDERS, Store
from tidegate.testing.simulation.life import Ended
from tidegate.testing.simulation.world import World

CHECKPOINT, OUT = "/checkpoint", "/out"
PLACES = ("/in/", "/out/", "/checkpoint/")

Lines = list[tuple[Any, ...]]


class Wrong(AssertionError):
    """Something that must never happen."""


class Check:
    """Compares what is on the disk with what the interpreter says, and with itself."""

    def __init__(
        self,
        scenario: Scenario,
        outputs: Sequence[Output],
        plan: Plan,
        world: World,
        called: Mapping[str, Called],
    ) -> None:
        self.called = called
        self.scenario = scenario
        self.world = world
        self.schemas = {t.name or "": plan.port(t.edge).schema for t in plan.targets}
        tables = {s.name: s.tables() for s in scenario.streams}
        meant = interpret({o.name or "": o.node for o in outputs}, tables, BUCKETS)
        self.meant = {
            name: [repr(tuple(row.values())) for row in rows] for name, rows in meant.items()
        }
        by_name = {s.name: s for s in scenario.streams}
        self.streams = [by_name[s.name] for s in plan.streams]
        self.late = sum(_late(s.tables(), s.disorder_us) for s in self.streams)
        self.rejected = sum(s.rejected for s in self.streams)
        self.let_go: list[frozenset[int]] = []
        """The batches of earlier states whose file was damaged; a run goes on without them."""

    def prefix(self, who: str) -> None:
        """What is published is the beginning of what must come out."""
        for name, meant in self.meant.items():
            found = self.rows(name)
            if found != meant[: len(found)]:
                place = next(
                    (i for i, (a, b) in enumerate(zip(found, meant, strict=False)) if a != b),
                    min(len(found), len(meant)),
                )
                raise Wrong(
                    f"{who}: output {name}, row {place} of {len(found)}: must be "
                    f"{meant[place : place + 1]}; got {found[place : place + 1]}"
                )

    def finished(self) -> None:
        """All is there, the counters say so, and nothing else is."""
        self.prefix("in the end")
        for name, meant in self.meant.items():
            if len(self.rows(name)) != len(meant):
                raise Wrong(
                    f"output {name}: must have {len(meant)} rows; got {len(self.rows(name))}"
                )
        self.counters()
        self.orphans()

    def states(self) -> None:
        """States that can be gone back to are whole, and all are there that are to be kept."""
        store = Store.open(CHECKPOINT)
        past, starts = PastStates(store), self.scenario.starts
        manifest = self.manifest()
        assert manifest is not None
        for batch in past.batches:
            store.check_present(past.of(batch))
        every = all(start.keep_us == LONG_US for start in starts)
        first = 0 if every else max(manifest.batch - 1, 0)
        wanted = list(range(first, manifest.batch + 1))
        none = starts[-1].keep_us is None
        gone = frozenset[int]().union(*(g for g in self.let_go if g.isdisjoint(past.batches)))
        wanted = [batch for batch in wanted if batch not in gone]
        if past.batches != wanted if every or none else past.batches[-len(wanted) :] != wanted:
            raise Wrong(f"the states of batches {wanted} must be there; got {past.batches}")

    def goes_with(self, path: str) -> frozenset[int] | None:
        """The batches that nobody can go back to without a file; None where a run needs the file.

        As documented (`archived` of the archive) a damaged file of earlier states counts as gone,
        and a run is not refused. With a file of the archive go its batches. With a manifest that is
        not archived yet go its batch and those before it that are not: kept states have no gap.
        """
        name, store = posixpath.relpath(path, CHECKPOINT), Store.open(CHECKPOINT)
        if (span := archived_batches(name)) is not None:
            return frozenset(span)
        number = manifest_number(name)
        if number is None:
            return None
        try:
            kept = store.kept()
            if not kept or number >= kept[0].number:
                return None
            loose = [store.manifest(n).batch for n in store.numbers() if n <= number]
        except StateError:
            return None  # another one is damaged, which is told
        spans = map(archived_batches, archive_files(store.files))
        last = max((span[-1] for span in spans if span is not None), default=-1)
        return frozenset(batch for batch in loose if batch > last) or None

    def astray(self, ended: Ended) -> None:
        """A place that no sink can write to is refused, and nothing is written elsewhere."""
        if not isinstance(ended.failure, UserError):
            raise Wrong(f"{ended.who}: an object store must be refused; got {ended.failure!r}")
        elsewhere = [p for p in self.world.disk.files("/") if not p.startswith(PLACES)]
        if elsewhere:
            raise Wrong(f"nothing must be written elsewhere; got {elsewhere}")

    def counters(self) -> None:
        manifest = self.manifest()
        assert manifest is not None
        late, rejected = self.sides()
        wanted = {
            "rows_in": sum(s.rows + s.rejected for s in self.streams),
            "rows_out": sum(map(len, self.meant.values())),
            "rows_late": self.late,
            "rows_rejected": self.rejected,
        }
        counted = {name: manifest.counters.get(name) for name in wanted}
        if counted != wanted:
            raise Wrong(f"the counters must be {wanted}; got {counted}")
        if (late, rejected) != (self.late, self.rejected):
            raise Wrong(
                f"there must be {self.late} late and {self.rejected} rejected rows; "
                f"got {late} and {rejected}"
            )

    def orphans(self) -> None:
        """Nothing is on the disk that no manifest needs."""
        disk = self.world.disk
        aside = [p for p in disk.files(OUT) if "/_staging" in p or posixpath.basename(p)[0] == "."]
        if aside:
            raise Wrong(f"nothing must be left aside; got {aside}")
        store = Store.open(CHECKPOINT)
        kept = store.kept()
        left = [e.name for e in store.unreferenced(kept)]
        known = re.compile(rf"({'|'.join(FOLDERS)}|journal)/[^.].*|meta\.json|lock|owner/.*")
        left += [
            p
            for p in disk.files(CHECKPOINT)
            if not known.fullmatch(posixpath.relpath(p, CHECKPOINT))
        ]
        if left:
            raise Wrong(f"nothing must be left in the checkpoint that it does not need; got {left}")

    def manifest(self) -> Manifest | None:
        return Store.open(CHECKPOINT).latest()

    def begun(self) -> list[str]:
        """Input files of which a part is consumed, as the newest manifest has it."""
        try:
            manifest = self.manifest()
        except Exception:
            return []
        if manifest is None or manifest.finished:
            return []
        rows = {
            path: len(lines) + len(spoilt)
            for s in self.scenario.streams
            for path, lines, spoilt in zip(s.paths(), s.sources, s.spoilt, strict=True)
        }
        positions = {source.get("id"): source.get("position", 0) for source in manifest.sources}
        return [path for path in rows if 0 < positions.get(path, 0) < rows[path]]

    def rows(self, name: str) -> list[str]:
        """The rows of an output as they are on the disk, in the order of the files' names."""
        if self.scenario.format == CALLED:
            given = self.called[name].rows
            return [repr(line) for batch in sorted(given) for line in _plain(given[batch])]
        disk = self.world.disk
        lines: list[str] = []
        for path in disk.files(f"{OUT}/{name}"):
            if re.search(r"/batch=\d+/part-[^/]*$", path) and "/_" not in path:
                lines += [repr(line) for line in self._read(path, name)]
        return lines

    def sides(self) -> tuple[int, int]:
        """How many late and how many rejected rows there are."""
        if self.scenario.format != CALLED:
            return self.side("_late"), self.side("_rejected")
        late = [table.num_rows for c in self.called.values() for table in c.late.values()]
        rejected = [table.num_rows for c in self.called.values() for table in c.rejected.values()]
        return sum(late), sum(rejected)

    def side(self, side: str) -> int:
        paths = [p for p in self.world.disk.files(OUT) if f"/{side}/batch=" in p]
        try:
            return sum(_count(p, self.world.disk.read(p)) for p in paths)
        except pa.ArrowException as error:
            raise Wrong(f"{paths}: must be readable; got {error}") from error

    def _read(self, path: str, name: str) -> Lines:
        content = self.world.disk.read(path)
        try:
            return _lines(path, content, self.schemas[name])
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise Wrong(f"{path}: must be readable; got {error}") from error


def _late(tables: Sequence[pa.Table], disorder_us: int) -> int:
    late = 0
    for table in tables:
        source = PlainSource(disorder_us)
        for seq, ts in enumerate(table.column("ts").cast(pa.int64()).to_pylist()):
            source.speak(seq, ts)
        late += len(source.late)
    return late


def _lines(path: str, content: bytes, schema: pa.Schema) -> Lines:
    """The rows of a result file, times in microseconds."""
    if path.endswith(".parquet"):
        table = pa.parquet.read_table(io.BytesIO(content))
        return _plain(table)
    if path.endswith(".csv"):
        if not content.strip():
            raise ValueError("no header")
        wanted = {field.name: field.type for field in schema}
        table = pa.csv.read_csv(
            io.BytesIO(content), convert_options=pa.csv.ConvertOptions(column_types=wanted)
        )
        return _plain(table)
    rows = [json.loads(line) for line in content.decode().splitlines()]
    if not rows:
        return []
    table = pa.json.read_json(
        io.BytesIO(content), parse_options=pa.json.ParseOptions(explicit_schema=schema)
    )
    return _plain(table)


def _plain(table: pa.Table) -> Lines:
    columns = [
        (
            c.cast(pa.timestamp("us", c.type.tz)).cast(pa.int64())
            if pa.types.is_timestamp(c.type)
            else c
        ).to_pylist()
        for c in table.columns
    ]
    return list(zip(*columns, strict=True)) if table.num_rows else []


def _count(path: str, content: bytes) -> int:
    if path.endswith(".parquet"):
        return int(pa.parquet.read_table(io.BytesIO(content)).num_rows)
    lines = len(content.splitlines())
    return lines - 1 if path.endswith(".csv") else lines
