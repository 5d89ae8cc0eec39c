"""State that is written by whole buckets: what is needed of it, and how it is compacted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import COUNTS, PASSED, plan_of
from tidegate.driver.compactor import Compactor
from tidegate.operate.aggregate.pane import AggregateSpec
from tidegate.operate.aggregate.state import PANES, PaneHorizon, PaneKeeper
from tidegate.operate.bucket_state import WHOLE, BucketHorizon, BucketKeeper
from tidegate.operate.tuple_window.operator import TUPLES
from tidegate.state.bucket_set import BucketSet
from tidegate.state.compaction import by_bucket
from tidegate.state.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

ADDED = 0
"""The `tag` of a segment that adds to older ones."""


def segment(name: str, *buckets: int, tag: int = WHOLE) -> Segment:
    return Segment(name, len(buckets), 100, 0, BucketSet.of(buckets), 0, 1, tag)


def test_a_whole_stands_for_what_is_older_in_its_buckets_only() -> None:
    old, new = segment("old", 0, 1, 2), segment("new", 1, 3)
    horizon = BucketHorizon.of([old, new])
    assert list(horizon.needed(old)) == [0, 2]
    assert list(horizon.needed(new)) == [1, 3]
    assert not horizon.whole(old)
    assert horizon.whole(new)
    assert not horizon.passed(old)


def test_what_was_added_is_needed_until_a_whole_comes() -> None:
    base, more = segment("base", 0, 1), segment("more", 0, 1, tag=ADDED)
    horizon = BucketHorizon.of([base, more])
    assert list(horizon.needed(base)) == list(horizon.needed(more)) == [0, 1]
    later = segment("later", 0)
    horizon = BucketHorizon.of([base, more, later])
    assert list(horizon.needed(base)) == list(horizon.needed(more)) == [1]
    after = segment("after", 0, tag=ADDED)
    assert BucketHorizon.of([base, more, later, after]).needed(after) == after.buckets


def test_a_segment_is_passed_when_all_its_buckets_are_in_newer_wholes() -> None:
    old = segment("old", 0, 1)
    assert not BucketHorizon.of([old, segment("a", 0)]).passed(old)
    assert BucketHorizon.of([old, segment("a", 0), segment("b", 1)]).passed(old)
    assert not BucketHorizon.of([old, segment("a", 0, 1, tag=ADDED)]).passed(old)


def test_rows_that_are_live_are_those_of_needed_buckets() -> None:
    old, new = segment("old", 0, 1, 2), segment("new", 1)
    rows = pa.table({"bucket": pa.array([0, 0, 1, 1, 2], pa.int32())})
    live = BucketHorizon.of([old, new]).live(rows, old)
    assert live.tolist() == [True, True, False, False, True]


histories = st.lists(
    st.tuples(st.sets(st.integers(0, 3), min_size=1), st.booleans()), min_size=1, max_size=8
)


@given(histories)
def test_what_is_needed_of_a_bucket_is_its_newest_whole_and_what_came_after(
    history: list[tuple[set[int], bool]],
) -> None:
    made = [
        segment(f"{i}", *sorted(buckets), tag=WHOLE if whole else ADDED)
        for i, (buckets, whole) in enumerate(history)
    ]
    horizon = BucketHorizon.of(made)
    for bucket in range(4):
        mine = [s for s in made if bucket in s.buckets]
        wholes = [i for i, s in enumerate(mine) if s.tag == WHOLE]
        expected = mine[wholes[-1] if wholes else 0 :]
        assert [s for s in mine if bucket in horizon.needed(s)] == expected


@given(
    panes=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    was_sealed=st.integers(0, 12),
    seconds=st.integers(0, 14),
)
def test_the_bounds_of_panes_tell_no_lie(panes: list[int], was_sealed: int, seconds: int) -> None:
    """What is whole by its bounds has no dead row, and what is passed has no live one."""
    spec = AggregateSpec(4_000_000, 1_000_000, (), ())
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
    horizon = PaneHorizon.at(AggregateSpec(4_000_000, 1_000_000, (), ()), 10_000_000)
    assert (horizon.needed, horizon.sealed) == (7, 10)
    segment = Segment("s", 9, 100, 0, BucketSet.of([0]), low, high, sealed)
    assert horizon.whole(segment) is whole


# --- the keeper, and compaction with it --------------------------------------------------------


def test_wholes_are_merged_and_what_adds_is_left_alone() -> None:
    made = [segment("a", 0), segment("b", 0, tag=ADDED), segment("c", 1)]
    assert BucketKeeper("bucket", added=False).kin(made, ()) == [0, 0, 0]
    assert BucketKeeper("rank", added=True).kin(made, ()) == [0, None, 2]


def test_every_operator_has_its_keepers() -> None:
    tuples = plan_of("SELECT COUNT(*) AS n FROM s [ROWS 5]").subqueries[0]
    assert tuples.operator.keepers() == {TUPLES: BucketKeeper("rank", added=True)}
    (panes,) = plan_of(COUNTS).subqueries[0].operator.keepers().items()
    assert panes[0] == PANES
    assert isinstance(panes[1], PaneKeeper)
    assert plan_of(PASSED).subqueries[0].operator.keepers() == {}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path)
    made.create({})
    return made


def written(
    store: Store, name: str, rows: Sequence[tuple[int, int, str]], tag: int = WHOLE
) -> Segment:
    """A segment of (bucket, rank, value) rows."""
    schema = pa.schema([("bucket", pa.int32()), ("rank", pa.int64()), ("v", pa.string())])
    columns = [list(c) for c in zip(*rows)]
    return write_segment(
        store, name, by_bucket(pa.table(columns, schema=schema), "rank"), "rank", tag
    )


def held(store: Store, segments: Sequence[Segment]) -> dict[int, list[str]]:
    """The values of every bucket, in order, as a reader of the state finds them."""
    horizon = BucketHorizon.of(segments)
    found: dict[int, list[str]] = {}
    for one in segments:
        for bucket in horizon.needed(one):
            rows = read_segment(store, one, [bucket])
            found.setdefault(bucket, []).extend(rows.column("v").to_pylist())
    return found


def compacted(store: Store, keeper: BucketKeeper, segments: Sequence[Segment]) -> list[Segment]:
    compactor = Compactor(store, keeper)
    compactor.consider(9, segments, 0, owners=(0, 0, 0, 0))
    compactor.wait()
    found = list(compactor.apply(segments))
    compactor.settle(found)
    compactor.close()
    return found


def test_objects_written_whole_are_merged_into_their_newest(store: Store) -> None:
    made = [
        written(store, f"{i:08d}-0000", [(b, b, f"{b}@{i}") for b in buckets])
        for i, buckets in enumerate([(0, 1, 2, 3), (0, 1), (1, 2), (0, 3), (1,)])
    ]
    before = held(store, made)
    assert before == {0: ["0@3"], 1: ["1@4"], 2: ["2@2"], 3: ["3@3"]}
    after = compacted(store, BucketKeeper("bucket", added=False), made)
    assert len(after) < len(made)
    assert held(store, after) == before
    assert sum(s.rows for s in after) < sum(s.rows for s in made)
    assert all(s.tag == WHOLE for s in after)


def test_what_was_added_stays_after_what_it_adds_to(store: Store) -> None:
    made = [
        written(store, "00000000-0000", [(b, 0, f"{b}@0") for b in range(4)]),
        written(store, "00000001-0000", [(0, 1, "0@1"), (1, 1, "1@1")], ADDED),
        written(store, "00000002-0000", [(b, 2, f"{b}@2") for b in (0, 2, 3)]),
        written(store, "00000003-0000", [(0, 3, "0@3"), (2, 3, "2@3")], ADDED),
    ]
    before = held(store, made)
    assert before[0] == ["0@2", "0@3"]
    assert before[1] == ["1@0", "1@1"]
    after = compacted(store, BucketKeeper("rank", added=True), made)
    assert held(store, after) == before
    assert after[1] == made[1]
    assert after[3] == made[3]
    assert list(after[0].buckets) == [1], "three of its four buckets were dead"


def test_compaction_of_a_state_that_is_live_leaves_it(store: Store) -> None:
    made = [written(store, "00000000-0000", [(0, 0, "a"), (1, 0, "b")])]
    assert compacted(store, BucketKeeper("rank", added=True), made) == made
