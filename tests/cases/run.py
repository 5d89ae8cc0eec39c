"""Ways to run a case: on so many instances, in batches of any size, across switches and crashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cases.case import Case
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.plan.physical import Plan
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.folder.files import FileSink
from tidegate.sink.memory import MemorySink
from tidegate.sink.protocol import Sink
from tidegate.testing import STEPS

BUCKETS = 16


@dataclass(frozen=True)
class Run:
    """One way to run; `switches` gives the instances from a batch on."""

    instances: int
    batch_rows: int
    switches: dict[int, int] = field(default_factory=dict)

    @property
    def options(self) -> RunOptions:
        return RunOptions(self.instances, 1, BUCKETS, self.batch_rows, switches=self.switches)


def outputs_of(case: Case, place: Place, run: Run) -> list[BatchOutput]:
    """The batches of a run that nothing disturbs."""
    sink = MemorySink()
    loop = prepare(case.plan(place), place, {None: sink}, run.options)
    summary = loop.run()
    assert summary.finished
    return [sink.batches[b] for b in sorted(sink.batches)]


class _Killed(Exception):
    """The process is taken to be dead."""


def outputs_of_killed(
    case: Case, place: Place, batch_rows: int, instances: Sequence[int], folder: Path
) -> list[BatchOutput]:
    """The files of a run that dies in every batch, each time at another step of it.

    The next process, with the next number of instances, has only the checkpoint and the files.
    """
    plan = case.plan(place)
    deaths, finished = 0, False
    while not finished:
        step = STEPS[deaths % len(STEPS)]
        run = Run(instances[deaths % len(instances)], batch_rows)
        loop = _started(plan, place, FileSink(folder / "out"), run, folder / "state", step, deaths)
        try:
            finished = loop.run().finished
        except _Killed:
            deaths += 1
    return read_outputs(folder / "out")


def _started(
    plan: Plan, place: Place, sink: Sink, run: Run, state: Path, dies_at: str, deaths: int
) -> Loop:
    """A process that dies at a step of its second batch, or of its first now and then."""
    met: list[int] = []

    def observe(step: str, batch: int) -> None:
        if step == dies_at:
            met.append(batch)
            if len(met) > deaths % 2:
                raise _Killed

    return prepare(plan, place, {None: sink}, run.options, str(state), observer=observe)


def read_outputs(folder: Path) -> list[BatchOutput]:
    """What a file sink has left, in the order of its names."""
    assert not (folder / "_staging").exists()
    outputs = []
    some = next(folder.glob("batch=*/*.parquet"), None)  # late tuples alone have no rows beside
    none = pa.table({}) if some is None else pq.ParquetFile(some).schema_arrow.empty_table()
    for batch in sorted(folder.glob("batch=*")):
        rows = list(batch.glob("*.parquet"))
        assert len(rows) <= 1
        late = (folder / "_late" / batch.name).glob("*.parquet")
        rejected = list((folder / "_rejected" / batch.name).glob("*.parquet"))
        outputs.append(
            BatchOutput(
                pq.ParquetFile(rows[0]).read() if rows else none,
                {path.stem: pq.ParquetFile(path).read() for path in sorted(late)},
                pq.ParquetFile(rejected[0]).read() if rejected else None,
            )
        )
    return outputs
