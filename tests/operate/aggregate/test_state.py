"""What is needed of panes, told from the bounds of a segment; and which operators keep what."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import COUNTS, PASSED, plan_of
from tidegate.operate.aggregate.pane import AggregateSpec
from tidegate.operate.aggregate.pane_window import PaneWindow
from tidegate.operate.aggregate.state import PANES, PaneHorizon, PaneKeeper
from tidegate.operate.tuple_window.state import TUPLES, TupleKeeper
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment


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
