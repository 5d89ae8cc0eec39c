"""Merging spans beside the plain way, and how much state OVER keeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.driver.scene import compacted
from tidegate.batch import ints
from tidegate.driver.options import RunOptions
from tidegate.operate.aggregate.function import Function
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.window.span import merge_spans
from tidegate.operate.over.operator import RANGED
from tidegate.operate.tuple_window.state import TUPLES
from tidegate.plan.lowering.lower import lower
from tidegate.query.output import single
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.script import streams_of
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.segment.segment import read_segment


@pytest.mark.parametrize("kind", ["min", "max", "sum", "count"])
def test_spans_are_the_merges_of_their_states(kind: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(-50, 50, 200)
    starts = np.repeat([0, 1, 60, 61, 130], [1, 59, 1, 69, 70])
    ends = np.repeat([1, 60, 61, 130, 200], [1, 59, 1, 69, 70])
    places = rng.integers(0, 200, 300)
    first = starts[places] + rng.integers(0, 1000, 300) % (places - starts[places] + 1)
    last = places + 1 + rng.integers(0, 1000, 300) % (ends[places] - places)
    family = Function("f", kind, ("x",), (pa.int64(),)).family
    states = family.fold(Groups(np.arange(200), 200), [pa.array(values)])
    got = family.finish(merge_spans(family, states, starts, first, last)).to_pylist()
    plain = {"min": min, "max": max, "sum": sum, "count": len}[kind]
    assert got == [plain(values[a:b].tolist()) for a, b in zip(first, last, strict=True)]


SQL = """
CREATE STREAM r FROM 'generator:r?rows=20000&rate=1000&domain=40' TIME ts;
SELECT x, SUM(y) OVER (PARTITION BY x ORDER BY ts) AS total,
       LAG(y, 3) OVER (PARTITION BY x ORDER BY ts) AS before,
       COUNT(*) OVER (PARTITION BY x ORDER BY ts RANGE 2 SECONDS PRECEDING) AS recent
FROM r
"""


def test_only_what_frames_look_back_at_is_held(tmp_path: Path) -> None:
    """Of each of the keys three tuples, and of all the tuples of two seconds."""
    script = read_script(SQL)
    plan = lower(single(bind(script, streams_of(script))))
    options = RunOptions(instances=2, batch_rows=500)
    loop = prepare(plan, Place("none"), {None: MemorySink()}, options, str(tmp_path))
    batches, most = 0, 0
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        held = loop.manifest.operators[f"over/{RANGED}"]
        needed = loop.manifest.frontier_us - 2_000_000
        rows = [ints(read_segment(loop.store, s), "ts") for s in held]
        live = sum(int((ts >= needed).sum()) for ts in rows)
        assert live <= 2_100
        assert sum(map(len, rows)) <= 1.3 * live + 1_000
        counted = sum(s.rows for s in loop.manifest.operators[f"over/{TUPLES}"])
        assert counted <= 12 * 3 * 41
        batches, most = batches + 1, max(most, live)
    loop.close()
    assert batches > 35
    assert most > 1_900


AHEAD = """
CREATE STREAM r FROM 'generator:r?rows=20000&rate=1000&domain=40' TIME ts;
SELECT x, LEAD(y, 3) OVER (PARTITION BY x ORDER BY ts) AS third,
       LEAD(y) OVER (PARTITION BY x ORDER BY ts) AS first
FROM r
"""


def test_only_tuples_that_wait_are_held(tmp_path: Path) -> None:
    """Of each of the keys three tuples; when the input has ended they are put out too."""
    script = read_script(AHEAD)
    plan = lower(single(bind(script, streams_of(script))))
    sink = MemorySink()
    options = RunOptions(instances=2, batch_rows=500)
    loop = prepare(plan, Place("none"), {None: sink}, options, str(tmp_path))
    batches, waiting = 0, []
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        counted = sum(s.rows for s in loop.manifest.operators[f"lead/{TUPLES}"])
        assert counted <= 12 * 3 * 41
        batches, waiting = batches + 1, [*waiting, 500 * (batches + 1) - sink.table().num_rows]
    loop.close()
    assert batches > 35
    assert sink.table().num_rows == 20_000
    assert max(waiting[:35]) < 3 * 41 + 500
