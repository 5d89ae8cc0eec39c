"""The queries of the documents: scripts of several operators and outputs, and ways to run them.

A folder of `documents` is one script, over the files of `documents/input`. The golden of its only
output is expected.csv, that of an output with a name expected_NAME.csv, and what DuckDB is asked is
oracle.sql or oracle_NAME.sql.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cases.case import ROOT, Golden, assert_same, lines_of
from tests.property.course import IN_MEMORY
from tidegate.batch import BatchId
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import StepSeen
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import OPERATOR_SET, Plan
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.part import FilePartWriter
from tidegate.sink.memory import MemorySink
from tidegate.sink.protocol import Sink
from tidegate.sink.receipt import Receipt
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.testing import STEPS

HERE = Place("none")
BUCKETS = 16
BETWEEN_OUTPUTS = "between outputs"
PLACES = (*STEPS, BETWEEN_OUTPUTS)
"""Where a process may die in a batch."""

Results = Mapping[str | None, pa.Table]


@dataclass(frozen=True)
class Document:
    """One script; nothing of it is late or rejected."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        script = read_script((self.folder / "query.sql").read_text(encoding="utf-8"))
        uris = {c.name: [str(self.folder / uri) for uri in c.uris] for c in script.creates}
        return bind(script, streams_of(script, uris=uris))

    @property
    def names(self) -> list[str | None]:
        return [o.name for o in self.outputs]

    @cache  # noqa: B019 - there are few documents, and a plan is never changed
    def plan(self, strategy: str) -> Plan:
        return plan_for(self.outputs, HERE, PlanOptions(strategy=strategy))

    def expected(self, name: str | None) -> Path:
        return self._file("expected", name, "csv")

    def oracle(self, name: str | None) -> Path:
        return self._file("oracle", name, "sql")

    def _file(self, kind: str, name: str | None, suffix: str) -> Path:
        return self.folder / f"{kind if name is None else f'{kind}_{name}'}.{suffix}"

    def check(self, results: Results) -> None:
        """Every output is its golden: the same rows in the same order."""
        assert list(results) == self.names
        for name, table in results.items():
            golden = Golden.read(self.expected(name))
            assert tuple(table.column_names) == golden.columns, name
            assert_same(lines_of(table, golden.columns), golden)


DOCUMENTS = tuple(Document(p.parent) for p in sorted(ROOT.glob("documents/*/query.sql")))


@dataclass(frozen=True)
class Way:
    """One way to run a script: `switches` are of all subqueries, those of `staggered` each apart.

    `staggered` gives numbers of instances: the first subquery takes them one after the other from
    batch 1 on, the next begins a batch later and with the next of them, and so on in turn.
    """

    batch_rows: int = 1_000
    instances: int = 1
    strategy: str = OPERATOR_SET
    switches: Mapping[int, int] = field(default_factory=dict)
    staggered: Sequence[int] = ()

    def options(self, plan: Plan) -> RunOptions:
        return RunOptions(
            self.instances,
            1,
            BUCKETS,
            self.batch_rows,
            switches=self.switches,
            subquery_switches=self._turns(plan) if self.staggered else {},
        )

    def _turns(self, plan: Plan) -> dict[str, dict[int, int]]:
        found = {}
        for place, subquery in enumerate(plan.subqueries):
            start = place % len(self.staggered)
            turns = [*self.staggered[start:], *self.staggered[:start]]
            found[subquery.name] = {1 + start + i: n for i, n in enumerate(turns)}
        return found


def run(document: Document, way: Way, place: Place = HERE) -> Results:
    """The outputs of a run that nothing disturbs."""
    plan = document.plan(way.strategy)
    sinks = {name: MemorySink() for name in document.names}
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as state:
        summary = prepare(plan, place, dict(sinks), way.options(plan), state).run()
    assert summary.finished
    if way.staggered:
        switched = {e["subquery"] for e in summary.epochs if e["epoch"] > 0}
        assert switched == {s.name for s in plan.subqueries}
    return {name: sink.table() for name, sink in sinks.items()}


class Killed(Exception):
    """The process is taken to be dead."""


def run_killed(document: Document, way: Way, folder: Path) -> Results:
    """The files of a run that dies in every batch, each time at another place in it.

    Every process has another number of instances than the one before it, and only the checkpoint
    and the files.
    """
    plan = document.plan(way.strategy)
    deaths, finished = 0, False
    while not finished:
        place = PLACES[deaths % len(PLACES)]
        options = RunOptions(1 + deaths % 3, 1, BUCKETS, way.batch_rows)
        sinks: dict[str | None, Sink] = {
            name: FileSink(folder / f"out-{name}") for name in document.names
        }
        if place == BETWEEN_OUTPUTS:
            sinks[document.names[0]] = Last(folder / f"out-{document.names[0]}")
        observer = dies_at(place, after=deaths % 2)
        state = str(folder / "state")
        loop = prepare(plan, HERE, sinks, options, state, observer=observer)
        try:
            finished = loop.run().finished
        except Killed:
            deaths += 1
    assert deaths > len(PLACES), "each place had its death"
    return {name: _written(folder / f"out-{name}") for name in document.names}


class Last(FileSink):
    """Puts the first batch of its process into place, which is the last that the process does."""

    begun = False

    def begin(self, batch: BatchId) -> FilePartWriter:
        self.begun = True
        return super().begin(batch)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        super().publish(batch, receipts)
        if self.begun:
            raise Killed


def dies_at(step: str, after: int) -> StepSeen:
    """Ends the process at a step of the batch that comes after so many others."""
    met: list[int] = []

    def observe(reached: str, batch: int) -> None:
        if reached == step:
            met.append(batch)
            if len(met) > after:
                raise Killed

    return observe


def _written(folder: Path) -> pa.Table:
    assert not (folder / "_staging").exists()
    assert not (folder / "_late").exists()
    assert not (folder / "_rejected").exists()
    return pa.concat_tables(
        pq.ParquetFile(path).read() for path in sorted(folder.glob("batch=*/*.parquet"))
    )
