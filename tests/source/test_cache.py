from __future__ import annotations

import threading

import numpy as np
import pytest

from tidegate.source.cache import PieceCache


def piece(size: int) -> np.ndarray:
    return np.zeros(size, np.int8)


def test_the_least_recently_used_goes_first() -> None:
    cache = PieceCache(limit_entries=2)
    for key in ("a", "b", "a", "c", "a", "b"):
        cache.get(key, lambda: piece(1))
    assert cache.loads == 4  # a, b, c, and b again


def test_bytes_are_bounded_but_the_newest_stays() -> None:
    cache = PieceCache(limit_entries=10, limit_bytes=100)
    cache.get("a", lambda: piece(60))
    cache.get("b", lambda: piece(60))
    assert cache.bytes == 60
    cache.get("c", lambda: piece(500))
    cache.get("c", lambda: piece(500))
    assert (cache.bytes, cache.loads) == (500, 3)
    cache.clear()
    assert cache.bytes == 0


def test_two_threads_load_a_piece_once() -> None:
    cache = PieceCache()
    started, go = threading.Event(), threading.Event()

    def slow() -> np.ndarray:
        started.set()
        go.wait(10)
        return piece(1)

    threads = [threading.Thread(target=cache.get, args=("a", slow)) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait(10)
    go.set()
    for thread in threads:
        thread.join()
    assert cache.loads == 1


def test_a_load_that_fails_leaves_nothing_behind() -> None:
    cache = PieceCache()

    def fail() -> np.ndarray:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        cache.get("a", fail)
    assert len(cache.get("a", lambda: piece(3))) == 3
