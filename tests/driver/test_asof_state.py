"""The state of an as-of join: no tuple that cannot match any more, counted after every batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.scene import compacted
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.plan.lower import lower
from tidegate.query.output import single
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.script import streams_of
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

ROWS = 20_000
STREAMS = f"""
CREATE STREAM r FROM 'generator:r?rows={ROWS}&rate=1000&domain=1000000' TIME ts;
CREATE STREAM s FROM 'generator:s?rows={ROWS}&rate=1000&domain=1000000&seed=1' TIME ts;
"""
QUERY = "SELECT r.x, s.b FROM r ASOF LEFT JOIN s {} MATCH_CONDITION (r.ts {} s.ts) ON {}"


def peak(sql: str, folder: Path) -> tuple[int, int]:
    """The most rows that the state had, and rows of the output."""
    script = read_script(STREAMS + sql)
    plan = lower(single(bind(script, streams_of(script))))
    sink = MemorySink()
    options = RunOptions(instances=2, batch_rows=1_000)
    loop: Loop = prepare(plan, Place("none"), {None: sink}, options, str(folder))
    most = 0
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        segments = loop.manifest.operators.get("asof/nearest", ())
        most = max(most, sum(segment.rows for segment in segments))
    loop.close()
    return most, sink.table().num_rows


@pytest.mark.parametrize(
    ("tolerance", "comparison", "key", "most"),
    [
        ("", ">=", "r.x % 10 = s.a % 10", 200),
        ("[RANGE 1 SECOND]", ">=", "r.x = s.a", 2_000),
        ("[RANGE 1 SECOND]", "<=", "r.x = s.a", 2_000),
        ("[RANGE 10 SECONDS]", "<=", "r.x % 10 = s.a % 10", 400),
        ("[RANGE 0 SECONDS]", ">=", "r.x = s.a", 0),
    ],
)
def test_what_cannot_match_any_more_is_gone(
    tolerance: str, comparison: str, key: str, most: int, tmp_path: Path
) -> None:
    """Of ten keys there are ten tuples, in some layers; of a million those of the tolerance."""
    held, rows = peak(QUERY.format(tolerance, comparison, key), tmp_path)
    assert rows == ROWS
    assert (held > 0) == (most > 0)
    assert held <= most
