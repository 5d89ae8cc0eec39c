"""Stored tuples in memory: what a chain has of them is all there is from some point on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.join.chain.chain import BUCKET, FEW_ROWS, Chain, ChainRun
from tidegate.operate.join.chain.run_index import Terms

WINDOW = 5_000


def run_of(low: int, high: int) -> ChainRun:
    """A tuple at every coordinate from `low` on."""
    at = np.arange(low, high)
    return ChainRun(pa.table({"ts": at}), at, (Terms(-at.astype(np.float64)),), low)


def held(chain: Chain) -> list[int]:
    return [at for run in chain.runs for at in run.coordinate.tolist()]


@given(st.lists(st.integers(1, 900), max_size=40), st.sampled_from([30_000, 200_000, 10**9]))
def test_a_chain_has_all_tuples_from_a_point_on(sizes: list[int], most_bytes: int) -> None:
    """Batch by batch; what is in no window any more may be there too."""
    chain, end = Chain(), 0
    for size in sizes:
        chain = chain.from_coordinate(end - WINDOW)
        news = run_of(end, end + size)
        newest = chain.newest
        run = news if newest is None else newest.followed_by(news)
        end += size
        chain = chain.with_newest(run, needed=end - WINDOW, end=end, most_bytes=most_bytes)
        found = held(chain)
        assert found == list(range(end - len(found), end))
        assert end - len(found) <= max(chain.since, end - WINDOW, 0)
        assert chain.nbytes <= most_bytes
        assert len(found) <= 2 * WINDOW + FEW_ROWS
        assert len(chain.runs) <= 8
        for run in chain.runs:
            (searched,) = run.searched
            assert run.table.column("ts").to_pylist() == run.coordinate.tolist()
            assert searched.order is not None
            assert (run.coordinate[searched.order] == searched.coordinate).all()


def test_a_chain_begins_after_segments_that_have_some_of_it() -> None:
    """A segment that compaction has made of older tuples and of some in memory is read whole."""
    runs = (run_of(10, 20), run_of(20, 30), run_of(30, 40))
    chain = Chain(10, runs)
    assert chain.after_segments([(0, 9), (12, 19)], 40) == chain
    assert chain.after_segments([(0, 10)], 40).since == 20
    assert held(chain.after_segments([(0, 10)], 40)) == list(range(20, 40))
    assert chain.after_segments([(0, 12), (15, 31)], 40) == Chain(40, ())
    assert chain.after_segments([(0, 29)], 40).since == 30


def dealt(low: int, high: int, of: int) -> ChainRun:
    """The same with two buckets, of which the tuples of one are there."""
    at = np.arange(low + of, high, 2)
    columns = {"ts": at, "src": np.zeros_like(at), "seq": at, BUCKET: at % 2}
    return ChainRun(pa.table(columns), at, (Terms(-at.astype(np.float64)),), low)


def test_tuples_of_buckets_that_go_are_let_go() -> None:
    runs = tuple(
        dealt(low, low + 10, of=0).followed_by(dealt(low, low + 10, 1)) for low in (10, 20)
    )
    only = np.array([True, False])
    left = Chain(10, runs).in_buckets(only, most_rows=20)
    assert left is not None
    assert (left.since, held(left)) == (10, list(range(10, 30, 2)))
    newest = Chain(10, runs).in_buckets(only, most_rows=19)
    assert newest is not None
    assert (newest.since, held(newest)) == (20, list(range(20, 30, 2)))
    assert Chain(10, runs).in_buckets(only, most_rows=9) is None
    none = Chain(10, runs[:1]).in_buckets(np.array([False, False]), most_rows=20)
    assert none == Chain(10, ()), "it has all that there is"


def test_tuples_of_buckets_that_come_are_among_the_others() -> None:
    chain = Chain(10, (dealt(10, 20, of=0), dealt(20, 30, of=0)))
    both = chain.with_tuples(dealt(10, 30, of=1))
    (run,) = both.runs
    assert (both.since, run.since) == (10, 10)
    assert held(both) == run.table.column("ts").to_pylist() == list(range(10, 30))
    assert run.terms[0].key is not None
    assert (-run.terms[0].key).tolist() == list(range(10, 30))
