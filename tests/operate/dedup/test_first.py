"""The kernels of KEEP FIRST beside their plain twins, and how much state there is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import compacted
from tests.oracle.dedup import Deduplicated, first_within
from tidegate.batch import MIN_US, ints
from tidegate.driver.options import RunOptions
from tidegate.operate.dedup.last import LAST_TUPLES
from tidegate.operate.dedup.operator import FIRST_TUPLES, FirstOfKey
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.keyed_state import FEW, needed_from
from tidegate.operate.tuple_rows import in_total_order
from tidegate.plan.lowering.lower import lower
from tidegate.query.output import single
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.script import streams_of
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.segment.segment import read_segment

KEYS = st.sampled_from([None, "a", "b", ""])
FLOATS = st.sampled_from([None, 0.0, -0.0, math.nan, 2.5])


def _same(left: Any, right: Any) -> bool:
    nans = [isinstance(v, float) and math.isnan(v) for v in (left, right)]
    return all(nans) or (left == right and not any(nans))


@given(st.lists(st.tuples(KEYS, FLOATS)), st.lists(st.tuples(KEYS, FLOATS)))
def test_equal_keys_and_only_they_have_one_code(
    rows: list[tuple[Any, Any]], others: list[tuple[Any, Any]]
) -> None:
    def columns(of: list[tuple[Any, Any]]) -> list[pa.Array]:
        return [
            pa.array([r[0] for r in of], pa.string()),
            pa.array([r[1] for r in of], pa.float64(), from_pandas=False),
        ]

    keys = KeyCodes.of(columns(rows), len(rows))
    found = keys.find(columns(others), len(others))
    for row, code in zip(rows, keys.codes, strict=True):
        for other, its in zip(rows, keys.codes, strict=True):
            assert (code == its) == all(map(_same, row, other))
    for other, code in zip(others, found, strict=True):
        like = {int(c) for r, c in zip(rows, keys.codes, strict=True) if all(map(_same, r, other))}
        assert {int(code)} == (like or {-1})
    assert sorted(keys.codes[keys.rows]) == list(range(keys.n))


def tuples_of(rng: np.random.Generator, rows: int, keys: int) -> pa.Table:
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, rows, rows)),
            "src": np.zeros(rows, np.int64),
            "seq": np.arange(rows),
            "k0": rng.integers(0, keys, rows),
        }
    )


@pytest.mark.parametrize("rows", [FEW // 4, FEW * 4])
@pytest.mark.parametrize("within", [1, 40, 10**9])
def test_kept_tuples_are_those_of_the_plain_twin(rows: int, within: int) -> None:
    tuples = tuples_of(np.random.default_rng(rows + within), rows, 50)
    twin = Deduplicated(("k0",), within, lambda r: ())
    wanted = [row["seq"] for row in first_within(twin, tuples.to_pylist())]
    operator = FirstOfKey(("k0",), within)
    got: list[int] = []
    held = tuples.slice(0, 0)
    for start in range(0, rows, rows // 3 + 1):
        part = tuples.slice(start, rows // 3 + 1)
        kept = part.filter(pa.array(operator.first(held, part)))
        got += kept.column("seq").to_pylist()
        held = pa.concat_tables([held, kept])
    assert got == wanted


def test_tuples_come_into_the_total_order() -> None:
    rng = np.random.default_rng(6)
    tuples = tuples_of(rng, 500, 3)
    assert in_total_order(tuples) is tuples
    mixed = tuples.take(pa.array(rng.permutation(500)))
    assert in_total_order(mixed) == tuples


def test_nothing_is_needed_before_the_start() -> None:
    assert needed_from(MIN_US, 5) == MIN_US
    assert needed_from(100, 5) == 95


MANY = """
CREATE STREAM r FROM 'generator:r?rows=20000&rate=1000&domain=20' TIME ts;
SELECT DISTINCT ON (x) x, y FROM r KEEP LAST WITHIN 4 SECONDS
"""


def test_a_key_that_comes_again_and_again_is_held_few_times(tmp_path: Path) -> None:
    script = read_script(MANY)
    plan = lower(single(bind(script, streams_of(script))))
    options = RunOptions(instances=2, batch_rows=200)
    loop = prepare(plan, Place("none"), {None: MemorySink()}, options, str(tmp_path))
    most = []
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        most.append(sum(s.rows for s in loop.manifest.operators[f"distinct/{LAST_TUPLES}"]))
    loop.close()
    assert len(most) > 80
    assert 20 <= max(most) <= 20 * 25


SQL = """
CREATE STREAM r FROM 'generator:r?rows=40000&rate=1000&domain=400000' TIME ts;
SELECT DISTINCT ON (x, y) x, y FROM r KEEP FIRST WITHIN 4 SECONDS
"""


@pytest.mark.parametrize(("keep", "part"), [("FIRST", FIRST_TUPLES), ("LAST", LAST_TUPLES)])
def test_no_key_is_held_past_its_horizon(keep: str, part: str, tmp_path: Path) -> None:
    """Keys come and go for ten times as long; what is stored is those of the last four seconds,
    also when instances change."""
    script = read_script(SQL.replace("FIRST", keep))
    plan = lower(single(bind(script, streams_of(script))))
    options = RunOptions(instances=2, batch_rows=700, switches={9: 3, 30: 1})
    loop = prepare(plan, Place("none"), {None: MemorySink()}, options, str(tmp_path))
    most = counted = 0
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        segments = loop.manifest.operators[f"distinct/{part}"]
        needed = loop.manifest.frontier_us - 4_000_000
        rows = [ints(read_segment(loop.store, s), "ts") for s in segments]
        live = sum(int((ts >= needed).sum()) for ts in rows)
        assert live <= 4_100
        assert sum(map(len, rows)) <= 1.3 * live + 1_400
        assert len(segments) <= 40
        most, counted = max(most, live), counted + 1
    loop.close()
    assert most > 3_500
    assert counted > 50
