"""Tuples in layers: a batch reads the groups it touches, and what is over goes with merges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operate.aggregate.stream import lines, rows_for
from tests.operate.test_layered_state import compacted
from tests.operate.tuple_window.test_window import COUNT, USERS, check, shuffled, specs, table
from tests.oracle.tuple_window import tuple_windows
from tidegate.operate.instance_cache import Kept
from tidegate.operate.layered_state import HIDES
from tidegate.operate.operator import InstanceWork
from tidegate.operate.tuple_window import state as state_module
from tidegate.operate.tuple_window import window as window_module
from tidegate.operate.tuple_window.spec import GROUP, TupleSpec
from tidegate.operate.tuple_window.state import (
    TUPLES,
    TupleKeeper,
    merged,
    read_groups,
    write_tuples,
)
from tidegate.operate.tuple_window.window import advance, group_of
from tidegate.route.mapping import even
from tidegate.spans import Spans
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store
from tidegate.testing.clock import ManualClock

BY_KEY = (("k", pa.int64()),)


class Instance:
    """All buckets of a query, batch after batch, with its layers in a store."""

    def __init__(self, spec: TupleSpec, folder: Path | str) -> None:
        self.spec = spec
        self.store = Store.open(folder)
        self.layers: list[Segment] = []
        self.batch = 0

    def work(self) -> InstanceWork:
        return InstanceWork(
            instance=0,
            batch=self.batch,
            name=f"{self.batch:08d}-0000",
            query="q",
            mapping=even(4, 1),
            previous_us=0,
            frontier_us=0,
            state={TUPLES: tuple(self.layers)},
            store=self.store,
            ports=(),
            spans=Spans(ManualClock()),
            kept=Kept("run/q/0", None, f"{self.batch}"),
        )

    def run(self, news: pa.Table) -> pa.Table:
        """The windows that a batch fills; what it adds is the newest layer."""
        if not news.num_rows:
            return self.spec.result_schema.empty_table()
        work = self.work()
        results, ranked = advance(self.spec, read_groups(work, self.spec, news), news)
        self.layers.append(write_tuples(work, self.spec, ranked))
        self.batch += 1
        return results

    def merge(self, first: int, last: int) -> None:
        """Make some neighbours one layer, as compaction does."""
        keeper = TupleKeeper(self.spec)
        horizon = keeper.horizon(0, 0, self.layers)
        parts = []
        for layer in self.layers[first:last]:
            rows = read_segment(self.store, layer)
            parts.append(rows.filter(pa.array(horizon.live(rows, layer))))
        rows = keeper.arrange(pa.concat_tables(parts))
        self.batch += 1
        name = f"{self.batch:08d}-merged"
        made = write_segment(self.store, name, rows, keeper.order, 0) if rows.num_rows else None
        self.layers[first:last] = [] if made is None else [made]

    def rows(self) -> int:
        return sum(layer.rows for layer in self.layers)


@given(st.data(), st.booleans())
def test_any_course_gives_what_the_twin_gives(data: st.DataObject, collisions: bool) -> None:
    spec = data.draw(specs())
    rows = sorted(data.draw(rows_for(spec)), key=lambda r: (r["ts"], r["src"], r["seq"]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    chance = np.random.default_rng(data.draw(st.integers(0, 1000)))
    mine: list[tuple[Any, ...]] = []
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if collisions:
            for module in (window_module, state_module):
                patch.setattr(module, "group_of", _few_groups)
        instance = Instance(spec, folder)
        for a, b in pairwise([0, *cuts, len(rows)]):
            mine += lines(instance.run(shuffled(table(spec, rows[a:b]), chance)))
            if len(instance.layers) > 1 and data.draw(st.booleans()):
                first = data.draw(st.integers(0, len(instance.layers) - 1))
                instance.merge(first, data.draw(st.integers(first + 1, len(instance.layers))))
    check(spec, mine, tuple_windows(spec, rows, users=USERS))


def _few_groups(spec: TupleSpec, tuples: pa.Table) -> Any:
    return group_of(spec, tuples) % 2


def tuples(spec: TupleSpec, keys: Sequence[int], start: int = 0) -> pa.Table:
    return table(
        spec, [{"ts": start + i, "src": 0, "seq": i, "k": key} for i, key in enumerate(keys)]
    )


def test_a_batch_reads_the_groups_it_touches(tmp_path: Path) -> None:
    spec = TupleSpec(5, 2, BY_KEY, (), COUNT)
    instance = Instance(spec, tmp_path)
    instance.run(tuples(spec, range(1000)))
    instance.run(tuples(spec, range(0, 1000, 7), 1000))
    held = read_groups(instance.work(), spec, tuples(spec, [7, 8, 2000, 7], 2000))
    assert sorted(zip(held["k"].to_pylist(), held["rank"].to_pylist())) == [(7, 0), (7, 1), (8, 0)]
    assert held.schema == spec.state_schema


@pytest.mark.parametrize(("slide", "kept"), [(3, 9), (10, 5), (5, 5)])
def test_no_more_is_written_than_a_window_to_come_has(
    slide: int, kept: int, tmp_path: Path
) -> None:
    spec = TupleSpec(10, slide, BY_KEY, (), COUNT)
    instance = Instance(spec, tmp_path)
    instance.run(tuples(spec, [1] * 1005 + [2]))
    assert instance.rows() == kept + 1


def test_a_group_that_is_over_is_known_until_nothing_is_older(tmp_path: Path) -> None:
    spec = TupleSpec(4, 4, BY_KEY, (), COUNT)
    instance = Instance(spec, tmp_path)
    instance.run(tuples(spec, [1, 1, 2]))
    instance.run(tuples(spec, [1, 1], 10))
    newest = read_segment(instance.store, instance.layers[1])
    assert newest["rank"].to_pylist() == [3], "it says that the two in the older layer are over"
    assert newest[GROUP].to_numpy()[0] & HIDES
    instance.run(tuples(spec, [3], 20))
    instance.merge(1, 3)
    assert instance.rows() == 3 + 2
    assert lines(instance.run(tuples(spec, [1, 1, 1], 30))) == []
    instance.merge(0, 3)
    assert instance.layers[0].high < HIDES, "tuples that came since say how many there were"
    ranks = read_segment(instance.store, instance.layers[0])
    assert sorted(zip(ranks["k"].to_pylist(), ranks["rank"].to_pylist())) == [
        *((1, rank) for rank in (4, 5, 6)),
        (2, 0),
        (3, 0),
    ]
    (filled,) = lines(instance.run(tuples(spec, [1], 40)))
    assert filled[:4] == (30, 40, 1, 4)


def test_a_group_that_is_over_goes_with_the_oldest_layer_and_starts_again(tmp_path: Path) -> None:
    spec = TupleSpec(2, 2, BY_KEY, (), COUNT)
    instance = Instance(spec, tmp_path)
    instance.run(tuples(spec, [1, 2]))
    assert len(lines(instance.run(tuples(spec, [1], 10)))) == 1
    instance.merge(0, 2)
    assert instance.rows() == 2
    instance.merge(0, 1)
    assert instance.rows() == 1
    assert lines(instance.run(tuples(spec, [1], 20))) == []
    (filled,) = lines(instance.run(tuples(spec, [1], 30)))
    assert filled[:2] == (20, 30)


def test_a_merge_in_steps_loses_nothing_that_a_merge_at_once_keeps() -> None:
    spec = TupleSpec(3, 1, BY_KEY, (), COUNT)
    _, first = advance(spec, spec.state_schema.empty_table(), tuples(spec, [1, 1, 2, 1, 1]))
    _, then = advance(spec, first, tuples(spec, [2, 2, 2], 10))
    at_once = merged(spec, pa.concat_tables([first, then]))
    stepped = merged(spec, pa.concat_tables([merged(spec, first), merged(spec, then)]))
    assert at_once.equals(stepped)
    assert sorted(zip(at_once["k"].to_pylist(), at_once["rank"].to_pylist())) == [
        (1, 2),
        (1, 3),
        (2, 2),
        (2, 3),
    ]


def test_groups_that_come_once_leave_nothing(tmp_path: Path) -> None:
    """Every group fills one window, in two batches, and never comes again."""
    spec = TupleSpec(4, 4, BY_KEY, (), COUNT)
    instance = Instance(spec, tmp_path)
    instance.store.create({})
    most_rows, most_layers, filled = 0, 0, 0
    for batch in range(200):
        keys = [k for n in (batch - 1, batch) if n >= 0 for k in range(n * 10, n * 10 + 10)]
        filled += instance.run(
            tuples(spec, [k for k in keys for _ in (0, 1)], batch * 100)
        ).num_rows
        instance.layers = compacted(
            instance.store, TupleKeeper(spec), instance.layers, instance.batch
        )
        most_rows, most_layers = (
            max(most_rows, instance.rows()),
            max(most_layers, len(instance.layers)),
        )
    assert filled == 199 * 10
    assert most_rows <= 400
    assert most_layers <= 16
