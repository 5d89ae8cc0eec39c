"""Sessions against the tuple-at-a-time twin, over any cut, folding, and loss of memory."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operate.aggregate.stream import (
    POOLS,
    by_hash,
    functions,
    lines,
    rows_for,
    same,
    sum_of_products,
    table,
)
from tests.oracle.session import sessions
from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.function import Function
from tidegate.operate.instance_cache import Kept
from tidegate.operate.operator import Arrival, InstanceWork
from tidegate.operate.session.operator import (
    FOLDED_BY_INSTANCE,
    FOLDED_BY_MAP,
    SessionAggregate,
    SessionFolding,
)
from tidegate.operate.session.spec import SessionSpec
from tidegate.operate.session.state import SESSIONS, read_sessions
from tidegate.route.mapping import even
from tidegate.spans import Spans
from tidegate.state.segment.compaction import compact, replace
from tidegate.state.segment.segment import Segment
from tidegate.state.store import Store
from tidegate.testing.clock import ManualClock

COUNT = (Function("n", "count"),)
BY_KEY = (("k", pa.int64()),)


class Instance:
    """All buckets of a query, batch after batch, with its segments in a store."""

    def __init__(self, spec: SessionSpec, folding: SessionFolding, folder: Path | str) -> None:
        self.operator = SessionAggregate(spec, ("k",), folding=folding)
        self.store, self.run_id = Store.open(folder), str(folder)
        self.segments: list[Segment] = []
        self.batch, self.frontier_us, self.written = 0, MIN_US, 0
        self.results: list[tuple[Any, ...]] = []

    def work(self, frontier_us: int, forget: bool) -> InstanceWork:
        before = None if forget else f"{self.batch - 1}"
        return InstanceWork(
            instance=0,
            batch=self.batch,
            name=f"{self.batch:08d}-0000",
            query="q",
            mapping=even(4, 1),
            previous_us=self.frontier_us,
            frontier_us=frontier_us,
            state={SESSIONS: tuple(self.segments)},
            store=self.store,
            ports=(),
            spans=Spans(ManualClock()),
            kept=Kept(f"{self.run_id}/q/0", before, f"{self.batch}"),
        )

    def run(self, parts: list[pa.Table], frontier_us: int, forget: bool = False) -> None:
        """A batch of so many splits; segments without a live row are dropped."""
        spec, work = self.operator.spec, self.work(frontier_us, forget)
        shares = [self.operator.folding.deal(spec, p, by_hash(4)) for p in parts if p.num_rows]
        result = self.operator.run(work, [Arrival(0, share) for share in shares])
        made = result.segments[SESSIONS]
        self.written += sum(segment.rows for segment in made)
        keeper = self.operator.state.keepers[SESSIONS]
        horizon = keeper.horizon(frontier_us, 0)
        self.segments = [s for s in [*self.segments, *made] if not horizon.passed(s)]
        self.batch, self.frontier_us = self.batch + 1, frontier_us

    def merge(self, first: int, last: int) -> None:
        """Make some neighbours one segment, as compaction does."""
        keeper, group = self.operator.state.keepers[SESSIONS], self.segments[first:last]
        horizon = keeper.horizon(self.frontier_us, 0)
        name = f"{self.batch:08d}-merged-{first}"
        made = compact(self.store, group, name, horizon.live, keeper.order, lambda _: 0)
        self.segments = list(replace(self.segments, group, made))

    def opened(self) -> pa.Table:
        """The open sessions, from the segments alone."""
        return read_sessions(self.work(self.frontier_us, forget=True), self.operator.spec)


@st.composite
def specs(draw: st.DrawFn) -> SessionSpec:
    names = draw(st.lists(st.sampled_from(sorted(POOLS)), max_size=2, unique=True))
    keys = tuple((f"k_{name}", POOLS[name][0]) for name in names)
    longest = draw(st.none() | st.integers(1, 30))
    return SessionSpec(draw(st.integers(1, 20)), longest, keys, draw(functions()))


def results_of(instance: Instance, patch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the instance puts out from now on, as the oracle writes it."""
    found: list[tuple[Any, ...]] = []

    def seen(*args: Any, **named: Any) -> Any:
        turn = advance(*args, **named)
        found.extend(lines(turn.results))
        return turn

    from tidegate.operate.session import operator

    advance = operator.advance
    patch.setattr(operator, "advance", seen)
    return found


@given(st.data())
def test_any_course_gives_what_the_twin_gives(data: st.DataObject) -> None:
    spec = data.draw(specs())
    rows = sorted(data.draw(rows_for(spec)), key=lambda r: (r["ts"], r["src"], r["seq"]))
    folding = FOLDED_BY_INSTANCE
    if spec.max_us is None and data.draw(st.booleans()):
        folding = FOLDED_BY_MAP
    times = sorted({row["ts"] for row in rows})
    cuts = sorted(data.draw(st.lists(st.integers(-40, 1100), max_size=6)) + times[::5])
    chance = np.random.default_rng(data.draw(st.integers(0, 1000)))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        instance = Instance(spec, folding, folder)
        mine = results_of(instance, patch)
        for a, b in pairwise([MIN_US, *cuts, MAX_US]):
            news = table(spec, [row for row in rows if a <= row["ts"] < b])
            news = news.take(pa.array(chance.permutation(news.num_rows)))
            half = news.num_rows // 2
            instance.run([news.slice(0, half), news.slice(half)], b, data.draw(st.booleans()))
            if len(instance.segments) > 1 and data.draw(st.booleans()):
                first = data.draw(st.integers(0, len(instance.segments) - 1))
                instance.merge(first, data.draw(st.integers(first + 1, len(instance.segments))))
        assert instance.segments == []
    twin = sessions(spec, rows, users={"u": sum_of_products})
    assert len(mine) == len(twin)
    for ours, theirs in zip(mine, twin, strict=True):
        assert all(map(same, ours, theirs)), (ours, theirs)


def visits(spec: SessionSpec, rows: list[tuple[int, int]]) -> pa.Table:
    named = [{"ts": ts, "src": 0, "seq": n, "k": k} for n, (ts, k) in enumerate(rows)]
    return table(spec, named)


@pytest.mark.parametrize("folding", [FOLDED_BY_MAP, FOLDED_BY_INSTANCE])
def test_a_session_ends_when_nothing_can_be_added_to_it(
    folding: SessionFolding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tuple at its end is still of it, and may come as long as the frontier is there."""
    spec = SessionSpec(10, None, BY_KEY, COUNT)
    instance = Instance(spec, folding, tmp_path)
    found = results_of(instance, monkeypatch)
    instance.run([visits(spec, [(0, 1), (4, 1), (5, 2)])], 14)
    assert found == []
    instance.run([visits(spec, [(14, 1)])], 15)
    assert found == []
    instance.run([], 16)
    assert found == [(5, 15, 2, 1)]
    instance.run([visits(spec, [(16, 2)])], 25)
    assert found[1:] == [(0, 24, 1, 3)]


def test_a_tuple_beyond_the_maximum_begins_another_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at the maximum does not; each session is put out in the order of its end."""
    spec = SessionSpec(10, 12, BY_KEY, COUNT)
    instance = Instance(spec, FOLDED_BY_INSTANCE, tmp_path)
    found = results_of(instance, monkeypatch)
    instance.run([visits(spec, [(0, 1), (6, 1)])], 7)
    instance.run([visits(spec, [(12, 1), (13, 1), (14, 2)])], 16)
    assert instance.opened().num_rows == 3
    instance.run([], MAX_US)
    assert found == [(0, 22, 1, 3), (13, 23, 1, 1), (14, 24, 2, 1)]


def test_state_is_the_open_sessions(tmp_path: Path) -> None:
    """However long it runs: what has ended goes, and what lasts is not written in every batch."""
    spec = SessionSpec(100, None, BY_KEY, COUNT)
    instance = Instance(spec, FOLDED_BY_MAP, tmp_path)
    rows, most = 0, 0
    for ts in range(0, 20_000, 10):
        lasting, passing = (ts, -1), [(ts, ts + n) for n in range(3)]
        instance.run([visits(spec, [lasting, *passing])], ts + 10)
        rows += 4
        most = max(most, sum(segment.rows for segment in instance.segments))
        if len(instance.segments) > 8:
            instance.merge(0, 8)
    assert instance.opened().num_rows == 1 + 3 * 10
    assert most < 100
    assert instance.written <= 1.1 * rows


def test_a_session_without_new_tuples_is_stored_again_at_most_twice_in_a_gap(
    tmp_path: Path,
) -> None:
    spec = SessionSpec(1000, None, BY_KEY, COUNT)
    instance = Instance(spec, FOLDED_BY_MAP, tmp_path)
    tuples = 0
    for ts in range(0, 50_000, 20):
        here = [(ts, 1)] if ts % 900 == 0 else []
        tuples += len(here)
        instance.run([visits(spec, here)], ts + 20)
    assert instance.opened().num_rows == 1
    assert instance.written <= tuples + 2 * 50
