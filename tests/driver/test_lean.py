"""What a long run costs: state close to its live rows, and no batch dearer than those before it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from tests.cost import CallCounter
from tests.driver.scene import compacted
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.driver.report.metrics import BatchReport
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.state import PaneHorizon
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.call import CallSink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.segment.segment import read_segment

CALLS = "CREATE STREAM calls FROM 'generator:calls?rows={rows}&rate={rate}&keys=30000' TIME ts; "
MEAN = (
    "SELECT src, AVG(lat) AS mean, COUNT(*) AS n "
    "FROM calls [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY src"
)
MEDIAN = (
    "SELECT src, MEDIAN(lat) AS median FROM calls [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY src"
)
TUMBLING = "SELECT src, COUNT(*) AS n FROM calls [RANGE 1 MINUTE] GROUP BY src"


def loop_of(sql: str, folder: Path, batch_rows: int) -> Loop:
    place = Place("none")
    script = read_script(sql)
    plan = plan_for(bind(script, streams_of(script)), place)
    options = RunOptions(instances=2, batch_rows=batch_rows)
    sink = CallSink(lambda rows, batch: None)
    return prepare(plan, place, {None: sink}, options, str(folder))


def share_of_live(loop: Loop) -> tuple[int, int]:
    """The bytes of all segments, and those of their live rows as plain Arrow."""
    aggregate = loop.plan.subqueries[0].operator
    assert isinstance(aggregate, WindowAggregate)
    horizon = PaneHorizon.at(aggregate.spec, loop.manifest.frontier_us)
    held = live = 0
    for segment in loop.manifest.operators["aggregate/panes"]:
        rows = read_segment(loop.store, segment)
        held += segment.bytes
        live += rows.filter(horizon.live(rows, segment)).combine_chunks().nbytes
    return held, live


def case(name: str, query: str, batch_rows: int, *marks: pytest.MarkDecorator) -> ParameterSet:
    return pytest.param(query, batch_rows, id=f"{name}-{batch_rows}", marks=marks)


@pytest.mark.parametrize(
    ("query", "batch_rows"),
    [
        case("mean", MEAN, 20_000),
        case("mean", MEAN, 100_000, pytest.mark.long),
        case("mean", MEAN, 130_000),
        case("median", MEDIAN, 20_000, pytest.mark.long),
        case("median", MEDIAN, 100_000),
        case("tumbling", TUMBLING, 20_000, pytest.mark.long),
        case("tumbling", TUMBLING, 100_000),
    ],
)
def test_state_is_little_more_than_its_live_rows(
    query: str, batch_rows: int, tmp_path: Path
) -> None:
    loop = loop_of(CALLS.format(rows=800_000, rate=10_000) + query, tmp_path, batch_rows)
    held = live = 0
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        if not loop.manifest.finished:
            more = share_of_live(loop)
            held, live = held + more[0], live + more[1]
            assert more[0] <= 1.3 * more[1]
    loop.close()
    assert live > 3_000_000
    assert held <= 1.1 * live


@dataclass
class Costs:
    """Calls of functions for some early and some late batches, and the memory after each batch."""

    early: CallCounter = field(default_factory=CallCounter)
    late: CallCounter = field(default_factory=CallCounter)
    bytes: list[int] = field(default_factory=list)

    def __call__(self, report: BatchReport) -> None:
        counters = {80: self.early, 120: None, 250: self.late, 290: None}
        if report.batch in counters:
            sys.setprofile(counters[report.batch])
        pages = int(Path(f"/proc/{os.getpid()}/statm").read_text().split()[1])
        self.bytes.append(pages * os.sysconf("SC_PAGESIZE"))


@pytest.mark.parametrize("batch_rows", [1_000, pytest.param(5_000, marks=pytest.mark.long)])
def test_three_hundred_batches_cost_what_the_first_ones_cost(
    batch_rows: int, tmp_path: Path
) -> None:
    """Work in calls, which other work on the machine does not count into, and memory."""
    costs = Costs()
    calls = CALLS.format(rows=300 * batch_rows, rate=2 * batch_rows)
    loop = loop_of(calls + MEAN, tmp_path, batch_rows)
    loop._on_batch = costs
    assert loop.run().batches == 300
    assert 0 < costs.late.count < 1.2 * costs.early.count
    assert np.median(costs.bytes[219:290]) < np.median(costs.bytes[60:140]) + 32 * 2**20
    assert len(list((tmp_path / "segment").iterdir())) < 100
    assert len(list((tmp_path / "manifest").iterdir())) < 10
