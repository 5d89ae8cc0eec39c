"""Compaction: the decision is bounded and pays off, the rewriting keeps every live row in place."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import _MockFileSystem

from tests.state.rows import rows, triples
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.compaction import FANIN, choose, compact, replace
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

Row = tuple[int, int, int]

FIRST = BucketSet.of([0])


def sized(*counts: int) -> list[Segment]:
    return [Segment(f"s{i}", n, n * 8, 0, FIRST, 0, 0, 0) for i, n in enumerate(counts)]


def chosen(counts: list[int], live: list[int] | None = None, **limits: int) -> list[list[str]]:
    groups = choose(sized(*counts), counts if live is None else live, **limits)
    return [[segment.name for segment in group] for group in groups]


class TestChoose:
    def test_nothing_to_do(self) -> None:
        assert chosen([]) == []
        assert chosen([100, 100, 100]) == []
        assert chosen([100_000, 1000, 100, 10]) == []

    def test_four_of_a_size(self) -> None:
        assert chosen([9000, 100, 110, 90, 120]) == [["s1", "s2", "s3", "s4"]]

    def test_smaller_ones_between_them_go_along(self) -> None:
        assert chosen([100, 1, 100, 2, 100, 100]) == [["s0", "s1", "s2", "s3", "s4", "s5"]]

    def test_a_larger_one_is_not_jumped_over(self) -> None:
        assert chosen([100, 100, 9000, 100, 100]) == []

    def test_half_dead_ones_alone(self) -> None:
        assert chosen([9000, 500, 40], live=[6000, 400, 40]) == [["s0"]]
        assert chosen([100], live=[80]) == []
        assert chosen([100], live=[79]) == [["s0"]]
        assert chosen([100], live=[0]) == [["s0"]]

    def test_only_what_dies_together_is_merged(self) -> None:
        bounds = [(0, 9), (3, 4), (7, 9), (8, 9), (8, 12), (10, 12), (10, 11), (13, 13), (19, 19)]
        segments = [
            Segment(f"s{i}", 100, 0, 0, FIRST, low, high, 0) for i, (low, high) in enumerate(bounds)
        ]
        groups = choose(segments, [100] * len(segments), cell=10)
        assert [[s.name for s in g] for g in groups] == [
            ["s0", "s1", "s2", "s3"],
            ["s5", "s6", "s7", "s8"],
        ]

    def test_size_is_that_of_live_rows(self) -> None:
        assert chosen([100, 100, 9000, 100], live=[100, 100, 100, 100]) == [
            ["s0", "s1", "s2", "s3"]
        ]

    def test_too_many_without_a_run(self) -> None:
        counts = [10**6, 10**3] * 2 + [10**6] * 1 + [100, 10**3]
        assert chosen(counts) == []
        assert chosen(counts, most_segments=6) == [["s3", "s4", "s5", "s6"]]

    def test_a_run_is_cut_to_what_fits(self) -> None:
        assert chosen([100] * 10, most_rows=650) == [[f"s{i}" for i in range(6)]]
        assert chosen([100] * 10, most_rows=350) == []

    def test_lengths_must_agree(self) -> None:
        with pytest.raises(ValueError, match="1 segments but 0 counts"):
            choose(sized(1), [])

    @given(
        counts=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 100)), max_size=40),
        most_rows=st.integers(0, 20_000),
        most_groups=st.integers(1, 5),
        most_segments=st.integers(4, 20),
    )
    def test_groups_are_bounded_runs_of_neighbours(
        self,
        counts: list[tuple[int, int]],
        most_rows: int,
        most_groups: int,
        most_segments: int,
    ) -> None:
        segments = sized(*(rows_ for rows_, _ in counts))
        live = [rows_ * share // 100 for rows_, share in counts]
        groups = choose(
            segments,
            live,
            most_rows=most_rows,
            most_groups=most_groups,
            most_segments=most_segments,
        )
        places = [[segments.index(segment) for segment in group] for group in groups]
        for place in places:
            assert place == list(range(place[0], place[0] + len(place)))
            assert len(place) == 1 or len(place) >= FANIN
        flat = [index for place in places for index in place]
        assert flat == sorted(set(flat))
        assert len(groups) <= most_groups
        assert sum(segments[index].rows for index in flat) <= most_rows

    @pytest.mark.parametrize("sizes", [(100,), (100, 1), (1, 5000), (255, 256, 257), (1, 10, 999)])
    def test_an_endless_run_stays_small_and_rewrites_little(self, sizes: tuple[int, ...]) -> None:
        segments: list[Segment] = []
        written, longest = 0, 0
        for number in range(600):
            count = sizes[number % len(sizes)]
            segments.append(Segment(f"b{number}", count, 0, 0, FIRST, 0, 0, 0))
            for group in choose(segments, [s.rows for s in segments]):
                total = sum(s.rows for s in group)
                written += total
                made = Segment(f"c{number}-{group[0].name}", total, 0, 0, FIRST, 0, 0, 0)
                segments = list(replace(segments, group, made))
            longest = max(longest, len(segments))
        total = sum(s.rows for s in segments)
        tiers = np.log(total) / np.log(4) + 1
        assert longest <= 4 * tiers
        assert written <= total * tiers

    def test_a_sliding_window_is_rewritten_a_few_times_at_most(self) -> None:
        """Segments die from the oldest on; what is dead at the head never piles up."""
        segments: list[tuple[Segment, int]] = []  # with the batch of its newest row
        written = 0
        for number in range(400):
            segments.append((Segment(f"b{number}", 100, 0, 0, FIRST, 0, 0, 0), number))
            segments = [(s, newest) for s, newest in segments if newest > number - 50]
            live = [min(s.rows, 100 * (newest - number + 50)) for s, newest in segments]
            plain = [s for s, _ in segments]
            for group in choose(plain, live):
                at = plain.index(group[0])
                rows_left = sum(live[at : at + len(group)])
                written += rows_left
                newest = segments[at + len(group) - 1][1]
                made = Segment(f"c{number}-{at}", rows_left, 0, 0, FIRST, 0, 0, 0)
                segments[at : at + len(group)] = [(made, newest)]
                live[at : at + len(group)] = [rows_left]
                plain = [s for s, _ in segments]
        assert len(segments) <= 16
        assert written <= 6 * 400 * 100


class TestCompact:
    def test_live_rows_in_order(self, store: Store) -> None:
        old = write_segment(store, "a", rows([(0, 1, 1), (0, 2, 2), (1, 1, 3)]), "pane", 0)
        new = write_segment(store, "b", rows([(0, 1, 4), (0, 1, 5), (1, 0, 6)]), "pane", 0)
        made = compact(store, (old, new), "c", _but([2]), "pane", lambda _: 9)
        assert made is not None
        expected = [(0, 1, 1), (0, 1, 4), (0, 1, 5), (1, 0, 6), (1, 1, 3)]
        assert triples(read_segment(store, made)) == expected
        assert (made.tag, list(made.buckets), made.rows) == (9, [0, 1], 5)
        assert read_segment(store, old).num_rows == 3  # they go with their manifests

    def test_nothing_live_is_no_segment(self, store: Store) -> None:
        old = write_segment(store, "a", rows([(0, 1, 1)]), "pane", 0)
        assert compact(store, (old,), "c", _but([1]), "pane", lambda _: 0) is None
        assert [entry.name for entry in store.files.list("segment")] == [old.path]

    def test_the_segment_of_the_rows_is_known_to_liveness(self, store: Store) -> None:
        made = [
            write_segment(store, n, rows([(0, 3, i), (0, 5, i)]), "pane", 4 + i)
            for i, n in enumerate("ab")
        ]

        def live(table: pa.Table, segment: Segment) -> pa.Array:
            return pa.array(table["pane"].to_numpy() < segment.tag)

        result = compact(store, made, "c", live, "pane", lambda _: 0)
        assert result is not None
        assert triples(read_segment(store, result)) == [(0, 3, 0), (0, 3, 1)]

    def test_lists_and_nulls_survive(self, store: Store) -> None:
        table = pa.table(
            {"bucket": [0, 0], "pane": [0, 1], "q": [[1.5, None], None], "s": [None, "é"]}
        )
        parts = [write_segment(store, n, table, "pane", 0) for n in "ab"]
        made = compact(store, parts, "c", _but([]), "pane", lambda _: 0)
        assert made is not None
        assert read_segment(store, made).to_pylist() == [
            row for row in table.to_pylist() for _ in parts
        ]

    def test_replace_needs_neighbours(self) -> None:
        a, b, c = sized(1, 2, 3)
        assert replace([a, b, c], [b, c], None) == (a,)
        assert replace([a, b, c], [a, b], c) == (c, c)
        with pytest.raises(ValueError, match="not neighbours"):
            replace([a, b, c], [a, c], None)


def _but(values: list[int]) -> object:
    def live(table: pa.Table, segment: Segment) -> np.ndarray:
        if "v" not in table.column_names:
            return np.ones(table.num_rows, bool)
        return ~np.isin(table["v"].to_numpy(), values)

    return live


APPEND = st.tuples(
    st.just("append"), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8)), max_size=12)
)
COMPACT = st.tuples(st.just("compact"), st.tuples(st.integers(0, 9), st.integers(1, 6)))
CHOOSE = st.tuples(st.just("choose"), st.none())
PURGE = st.tuples(st.just("purge"), st.integers(0, 4))


@given(st.lists(APPEND | COMPACT | CHOOSE | PURGE, max_size=14))
@settings(max_examples=80)
def test_any_history_keeps_exactly_the_live_rows(history: list[tuple[str, object]]) -> None:
    store = Store.open((_MockFileSystem(), "ckpt"))
    segments: tuple[Segment, ...] = ()
    model: dict[tuple[int, int], list[int]] = defaultdict(list)
    floor, serial = 0, 0

    def live(table: pa.Table, segment: Segment) -> np.ndarray:
        return table["pane"].to_numpy() >= floor

    def merged(group: tuple[Segment, ...], name: str) -> tuple[Segment, ...]:
        compacted = compact(store, group, name, live, "pane", lambda _: floor)
        return replace(segments, group, compacted)

    for step, (kind, argument) in enumerate(history):
        if kind == "append":
            new = []
            for bucket, above in argument:  # type: ignore[attr-defined]
                new.append((bucket, floor + above, serial))
                model[bucket, floor + above].append(serial)
                serial += 1
            made = write_segment(store, f"b{step}", rows(new), "pane", floor)
            segments = (*segments, made) if made.rows else segments
        elif kind == "purge":
            floor += argument  # type: ignore[operator]
            segments = tuple(s for s in segments if s.high >= floor)
        elif kind == "compact" and segments:
            start, length = argument  # type: ignore[misc]
            group = segments[start % len(segments) :][:length]
            segments = merged(group, f"c{step}")
        elif kind == "choose":
            counts = [int(live(read_segment(store, s), s).sum()) for s in segments]
            for number, group in enumerate(choose(segments, counts)):
                segments = merged(group, f"d{step}-{number}")
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for segment in segments:
        for bucket, pane, value in triples(read_segment(store, segment)):
            if pane >= floor:
                found[bucket, pane].append(value)
    assert found == {key: values for key, values in model.items() if key[1] >= floor}
