"""What is needed of panes, told from the bounds of a segment; and which operators keep what."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import COUNTS, PASSED, plan_of
from tidegate.operate.aggregate import state
from tidegate.operate.aggregate.pane.pane import AggregateSpec, merge
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.state import PANES, PaneHorizon, PaneKeeper, with_due
from tidegate.operate.tuple_window.state import TUPLES, TupleKeeper
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.compaction import by_bucket
from tidegate.state.segment.segment import Segment


@given(
    panes=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    was_sealed=st.integers(0, 12),
    seconds=st.integers(0, 14),
)
def test_the_bounds_of_panes_tell_no_lie(panes: list[int], was_sealed: int, seconds: int) -> None:
    """What is whole by its bounds has no dead row, and what is passed has no live one."""
    spec = AggregateSpec(PaneWindow(4_000_000, 1_000_000), (), ())
    horizon = PaneHorizon.at(spec, seconds * 1_000_000)
    bounds = min(panes), max(panes), min(was_sealed, horizon.sealed)
    held = Segment("s", len(panes), 100, 0, BucketSet.of([0]), *bounds)
    live = horizon.live(pa.table({"pane": panes}), held)
    assert not horizon.whole(held) or live.all()
    assert not horizon.passed(held) or not live.any()


@pytest.mark.parametrize(
    ("low", "high", "sealed", "whole"),
    [(7, 9, 10, True), (6, 9, 10, False), (7, 11, 10, True), (8, 11, 8, False), (10, 11, 0, True)],
)
def test_panes_in_use_are_known_to_be_whole(low: int, high: int, sealed: int, whole: bool) -> None:
    """Else every batch would read the state to count what is live."""
    horizon = PaneHorizon.at(AggregateSpec(PaneWindow(4_000_000, 1_000_000), (), ()), 10_000_000)
    assert (horizon.needed, horizon.sealed) == (7, 10)
    segment = Segment("s", 9, 100, 0, BucketSet.of([0]), low, high, sealed)
    assert horizon.whole(segment) is whole


def test_every_operator_has_its_keepers() -> None:
    tuples = plan_of("SELECT COUNT(*) AS n FROM s [ROWS 5]").subqueries[0].operator
    ((name, keeper),) = tuples.state.keepers.items()
    assert name == TUPLES
    assert isinstance(keeper, TupleKeeper)
    (panes,) = plan_of(COUNTS).subqueries[0].operator.state.keepers.items()
    assert panes[0] == PANES
    assert isinstance(panes[1], PaneKeeper)
    assert plan_of(PASSED).subqueries[0].operator.state.keepers == {}


PARTIALS = st.sets(st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(0, 3)), max_size=9)


@given(due=st.lists(PARTIALS, max_size=3), news=PARTIALS)
def test_only_panes_that_waited_are_merged_again(
    due: list[set[tuple[int, int, int]]], news: set[tuple[int, int, int]]
) -> None:
    """What is stored of them is the same as if all were merged."""
    spec = AggregateSpec(PaneWindow(4_000_000, 1_000_000), (("k", pa.int64()),), ())
    names = spec.partial_schema.names
    waited, new = [
        [
            pa.Table.from_pylist([dict(zip(names, r)) for r in sorted(rows)], spec.partial_schema)
            for rows in batches
        ]
        for batches in ([rows for rows in due if rows], [news])
    ]
    merged = []

    def counted(spec: AggregateSpec, parts: list[pa.Table]) -> pa.Table:
        merged.extend(row for part in parts for row in part.column("pane").to_pylist())
        return merge(spec, parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "merge", counted)
        found = with_due(spec, waited, new[0])
    expected = merge(spec, [*waited, *new])
    assert by_bucket(found, "pane").equals(by_bucket(expected, "pane"))
    newest = max((row[1] for rows in due for row in rows), default=-1)
    assert all(pane <= newest for pane in merged)
