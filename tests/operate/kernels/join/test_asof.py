"""The loops of as-of joins, compiled and plain, against a search of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.seed import seeds
from tidegate.operate.kernels.join import asof_loop
from tidegate.operate.kernels.join.asof import PLAIN, earliest, latest
from tidegate.operate.kernels.order import Ints

KEYS = 4

Side = tuple[Ints, Ints]


def side(chance: np.random.Generator, keys: int) -> Side:
    rows = int(chance.integers(0, 40))
    times = np.sort(chance.integers(0, 30, rows))
    return times.astype(np.int64), chance.integers(0, keys, rows).astype(np.int64)


def candidates(left: Side, right: Side, row: int, back: bool, equal: bool) -> list[int]:
    at, key = left[0][row], left[1][row]
    sign = 1 if back else -1
    return [
        place
        for place, (time, of) in enumerate(zip(*right, strict=True))
        if of == key and (sign * (at - time) > 0 or (equal and time == at))
    ]


@pytest.mark.parametrize("seed", seeds(60))
def test_the_nearest_rows(seed: int) -> None:
    chance = np.random.default_rng([31, seed])
    left, right = side(chance, KEYS + 1), side(chance, KEYS)
    for equal in (True, False):
        found, last = latest(left, right, KEYS, equal)
        for row, place in enumerate(found.tolist()):
            assert place == max(candidates(left, right, row, True, equal), default=-1)
        assert last.tolist() == [
            max(np.flatnonzero(right[1] == key).tolist(), default=-1) for key in range(KEYS)
        ]
        for row, place in enumerate(earliest(left, right, KEYS, equal).tolist()):
            ahead = candidates(left, right, row, False, equal)
            first = [p for p in ahead if right[0][p] == min(right[0][a] for a in ahead)]
            assert place == max(first, default=-1)


@pytest.mark.parametrize("name", PLAIN)
def test_compiled_loops_do_the_same(name: str) -> None:
    chance = np.random.default_rng(7)
    for equal in (True, False):
        left, right = side(chance, KEYS + 1), side(chance, KEYS)
        plain = PLAIN[name](*left, *right, KEYS, equal)
        fast = asof_loop.loop(name)(*left, *right, KEYS, equal)
        assert [np.ravel(part).tolist() for part in plain] == [
            np.ravel(part).tolist() for part in fast
        ]
