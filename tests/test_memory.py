"""The memory of a process: caches within one budget, each with its share of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import OptionError
from tidegate.memory import (
    LEAST_BYTES,
    MEMORY,
    MOST_BYTES,
    Cache,
    Memory,
    bytes_of,
    default_bytes,
)
from tidegate.operate import instance_cache
from tidegate.operate.join.chain import run_index
from tidegate.source.piece import PIECES
from tidegate.state.segment import segment


def cache_of(limit_bytes: int, most_entries: int | None = None) -> Cache:
    """One that has a whole memory; its values are their own size."""
    return Memory(limit_bytes).cache(1, int, most_entries)


def load(size: int) -> Callable[[], int]:
    return lambda: size


class TestCache:
    def test_the_least_recently_used_goes_first(self) -> None:
        cache = cache_of(1_000, most_entries=2)
        for key in ("a", "b", "a", "c", "a", "b"):
            cache.get(key, load(1))
        assert cache.loads == 4  # a, b, c, and b again

    def test_bytes_are_bounded_and_what_is_larger_is_not_kept(self) -> None:
        cache = cache_of(100)
        for key, size in (("a", 60), ("b", 60), ("b", 60)):
            cache.get(key, load(size))
        assert (cache.bytes, cache.loads) == (60, 2)
        for _ in range(2):
            assert cache.get("c", load(101)) == 101
        assert (cache.bytes, cache.loads) == (60, 4)
        cache.clear()
        assert (cache.bytes, len(cache)) == (0, 0)

    def test_what_is_taken_or_replaced_is_not_held_any_more(self) -> None:
        cache = cache_of(100)
        cache.put("a", 30)
        cache.put("a", 40)
        assert (cache.bytes, len(cache)) == (40, 1)
        assert cache.take("a") == 40
        assert cache.take("a") is None
        assert (cache.bytes, len(cache)) == (0, 0)

    def test_two_threads_load_a_value_once(self) -> None:
        cache = cache_of(100)
        started, go = threading.Event(), threading.Event()

        def slow() -> int:
            started.set()
            assert go.wait(60)
            return 1

        threads = [threading.Thread(target=cache.get, args=("a", slow)) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert started.wait(60)
        go.set()
        for thread in threads:
            thread.join()
        assert cache.loads == 1

    def test_a_load_that_fails_leaves_nothing_behind(self) -> None:
        cache = cache_of(100)

        def fail() -> int:
            raise OSError("disk")

        with pytest.raises(OSError, match="disk"):
            cache.get("a", fail)
        assert cache.get("a", load(3)) == 3
        assert cache.bytes == 3


class TestMemory:
    @given(
        limit=st.integers(0, 100),
        asked=st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 70)), max_size=40
        ),
        after=st.integers(0, 100),
    )
    def test_all_caches_together_stay_within_the_budget(
        self, limit: int, asked: list[tuple[int, int, int]], after: int
    ) -> None:
        memory = Memory(limit)
        caches = [
            memory.cache(share, int, most) for share, most in ((0.25, 3), (0.25, None), (0.5, None))
        ]
        sizes: dict[tuple[int, int], int] = {}
        for place, key, size in asked:
            wanted = sizes.setdefault((place, key), size)
            assert caches[place].get(key, load(wanted)) == wanted
            assert memory.bytes == sum(c.bytes for c in caches) <= limit
            assert len(caches[0]) <= 3
            if wanted <= limit:
                loads = caches[place].loads
                caches[place].get(key, load(wanted))
                assert caches[place].loads == loads, "what was used last is held"
        memory.resize(after)
        assert memory.bytes <= after

    def test_what_streams_through_does_not_drive_out_what_has_its_share(self) -> None:
        memory = Memory(100)
        pieces, indexes = memory.cache(0.5, int), memory.cache(0.5, int)
        for key in range(5):
            indexes.get(key, load(10))
        for key in range(100):
            pieces.get(key, load(10))
        assert (pieces.bytes, indexes.bytes) == (50, 50)
        assert indexes.loads == 5

    def test_what_others_leave_unused_may_be_taken_and_is_given_back(self) -> None:
        memory = Memory(100)
        pieces, indexes = memory.cache(0.5, int), memory.cache(0.5, int)
        for key in range(20):
            pieces.get(key, load(10))
        assert pieces.bytes == 100
        for key in range(20):
            indexes.get(key, load(10))
        assert (pieces.bytes, indexes.bytes) == (50, 50)

    def test_a_value_in_use_is_held_though_it_is_more_than_its_share(self) -> None:
        memory = Memory(100)
        pieces, indexes = memory.cache(0.25, int), memory.cache(0.75, int)
        for key in range(9):
            indexes.get(key, load(10))
        for _ in range(5):
            pieces.get("large", load(80))
        assert (pieces.loads, pieces.bytes, indexes.bytes) == (1, 80, 20)

    def test_shares_of_more_than_the_whole_are_a_mistake(self) -> None:
        memory = Memory(10)
        memory.cache(0.7, int)
        with pytest.raises(ValueError, match="more than the whole"):
            memory.cache(0.4, int)

    def test_many_threads(self) -> None:
        memory = Memory(1_000)
        caches = [memory.cache(0.5, int), memory.cache(0.5, int)]
        seen: list[int] = []

        def use(start: int) -> None:
            for step in range(500):
                number = (start * 37 + step * 11) % 60
                seen.append(caches[number % 2].get(number, load(40 + number)) - number)

        threads = [threading.Thread(target=use, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [40] * 3_000
        assert 0 < memory.bytes <= 1_000

    def test_who_looks_while_another_thread_keeps_something_sees_the_budget_kept(self) -> None:
        """A value is counted before older ones are given up; the moment between is nobody's."""
        inside, looked = threading.Event(), threading.Event()

        class Size(int):
            def __rsub__(self, other: int) -> int:  # asked when the value is given up
                inside.set()
                looked.wait(0.2)
                return other - int(self)

        memory = Memory(100)
        cache = memory.cache(1, Size)
        cache.put("old", 60)
        thread = threading.Thread(target=cache.put, args=("new", 60))
        thread.start()
        assert inside.wait(60)
        assert memory.bytes == 60
        looked.set()
        thread.join()


def test_all_that_a_process_keeps_is_in_its_memory() -> None:
    caches = (PIECES, instance_cache._VALUES, run_index._INDEXES, segment._remote)
    assert {id(c) for c in caches} <= {id(c) for c in MEMORY._caches}
    assert sum(c.share for c in MEMORY._caches) == 1


def test_without_a_budget_a_process_has_its_part_of_the_machine() -> None:
    assert LEAST_BYTES <= default_bytes() <= MOST_BYTES
    memory = Memory(5)
    memory.resize(None)
    assert memory.limit_bytes == default_bytes()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MB", 512 * 2**20),
        ("2GB", 2 * 2**30),
        ("2g", 2 * 2**30),
        (" 1.5 GiB ", 3 * 2**29),
        ("64k", 65_536),
        ("10", 10),
        ("10B", 10),
        ("0", 0),
        (4096, 4096),
    ],
)
def test_sizes(text: str | int, size: int) -> None:
    assert bytes_of(text, "--memory-limit") == size


@pytest.mark.parametrize("text", ["", "much", "-1", -5, "5 XB", "1e9", "MB", True])
def test_other_words_are_no_sizes(text: str | int) -> None:
    with pytest.raises(OptionError) as caught:
        bytes_of(text, "--memory-limit")
    assert str(caught.value).startswith(
        "--memory-limit: must be a size, for example 512MB or 2GB; got"
    )
