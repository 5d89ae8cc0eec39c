"""Pairs that pass range tests, against a nested loop; and how the compiled loop is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.pair import plain_pairs
from tidegate.operate.kernels.join.pair import find

ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.0, -1.0, 3e38, -3e38]
NUMBER = st.one_of(st.sampled_from(ODD), st.integers(-4, 4).map(float), st.floats(width=32))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, ...]:
    """Ranges, empty ones and equal ones among them, and up to five tests."""
    rows = draw(st.integers(0, 12))
    ends = st.tuples(st.integers(0, rows), st.integers(0, rows))
    ranges = draw(st.lists(ends, max_size=8))
    first = np.array([a for a, _ in ranges], np.int64)
    last = np.array([b for _, b in ranges], np.int64)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    tests = draw(st.integers(0, 5))

    def column(length: int) -> Any:
        return np.array(draw(st.lists(NUMBER, min_size=length, max_size=length)), dtype)

    lows = [column(len(first)) for _ in range(tests)]
    highs = [column(len(first)) for _ in range(tests)]
    if draw(st.booleans()):
        highs = [np.maximum(low, high) for low, high in zip(lows, highs, strict=True)]
    return first, last, lows, highs, [column(rows) for _ in range(tests)]


def listed(found: tuple[Any, Any]) -> list[tuple[int, int]]:
    p, s = found
    assert p.dtype == s.dtype == np.int64
    return list(zip(p.tolist(), s.tolist(), strict=True))


@given(problems())
def test_like_a_nested_loop(problem: tuple[Any, ...]) -> None:
    assert listed(find(*problem)) == plain_pairs(*problem)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tests", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", ["whole", "sliding", "scattered", "short"])
@pytest.mark.parametrize("domain", [20, 200])
def test_many_blocks_and_groups(dtype: Any, tests: int, shape: str, domain: int) -> None:
    """More rows than a block, more probes than a group; few matches and many."""
    generator = np.random.default_rng([tests, domain, len(shape)])
    probes, rows = 700, 9_001
    if shape == "whole":
        first, last = np.zeros(probes, np.int64), np.full(probes, rows)
    elif shape == "sliding":
        first = np.arange(probes) * 3
        last = first + 6_000
    else:
        first = generator.integers(0, rows, probes)
        last = np.minimum(first + generator.integers(-5, 40 if shape == "short" else 5_000), rows)
    values = [generator.integers(0, domain, rows).astype(dtype) for _ in range(tests)]
    lows = [generator.integers(0, domain, probes).astype(dtype) for _ in range(tests)]
    highs = [low + dtype(generator.integers(0, 10)) for low in lows]
    p, s = find(first, last, lows, highs, values)
    place = np.arange(rows)
    passing = (first[:, None] <= place) & (place < last[:, None])
    for low, high, value in zip(lows, highs, values, strict=True):
        passing &= (low[:, None] <= value) & (value <= high[:, None])
    expected_p, expected_s = np.nonzero(passing)
    np.testing.assert_array_equal(p, expected_p)
    np.testing.assert_array_equal(s, expected_s)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("odd", [[np.nan], [np.inf, -np.inf], [3e38, -3e38, 0.0, -0.0], [7.0]])
def test_values_far_from_the_others_and_bounds_at_the_edge_of_cells(dtype: Any, odd: Any) -> None:
    """Long ranges, in which cells are looked at: they must not hide a pair."""
    generator = np.random.default_rng(len(odd))
    rows, probes = 3_000, 64
    value = np.concatenate([generator.uniform(5, 9, rows - 600), np.resize(odd, 600)])
    value = generator.permutation(value).astype(dtype)
    low = generator.choice(value, probes)
    high = np.where(generator.random(probes) < 0.5, low, np.nextafter(low, dtype(np.inf)))
    first, last = np.zeros(probes, np.int64), np.full(probes, rows)
    p, s = find(first, last, [low], [high], [value])
    passing = (low[:, None] <= value) & (value <= high[:, None])
    expected_p, expected_s = np.nonzero(passing)
    np.testing.assert_array_equal(p, expected_p)
    np.testing.assert_array_equal(s, expected_s)


def test_arrays_of_any_making_use_one_compiled_loop() -> None:
    """Read-only (Arrow), sliced, strided and unaligned arrays: no second compilation."""
    from tidegate.operate.kernels.join.pair_loop import compiled

    plain = np.arange(10, dtype=np.float32)
    read_only = pa.array(plain).to_numpy()
    assert not read_only.flags.writeable
    strided = np.repeat(plain, 2)[::2]
    odd = np.frombuffer(b"x" + plain.tobytes(), np.float32, offset=1)
    assert not odd.flags.aligned
    first, last = np.array([0, 2]), np.array([10, 5])
    low, high = np.array([3, 4], np.float32), np.array([6, 4], np.float32)
    expected = [(0, 3), (0, 4), (0, 5), (0, 6), (1, 4)]
    for values in (plain, read_only, read_only[:], strided, odd):
        assert listed(find(first, last, [low], [high], [values])) == expected
    assert listed(find(first.astype(np.int32), last, [low], [high], [plain])) == expected
    assert len(compiled(1, "float32").signatures) == 1  # type: ignore[attr-defined]


def test_ranges_beyond_the_values_are_refused() -> None:
    one = np.ones(1, np.float32)
    with pytest.raises(ValueError, match="within the 1 values; got 0 to 2"):
        find(np.array([0]), np.array([2]), [one], [one], [one])


def test_mixed_types_are_refused() -> None:
    one, two = np.ones(1, np.float32), np.ones(1)
    with pytest.raises(TypeError, match="got float32, float64"):
        find(np.array([0]), np.array([1]), [one], [one], [two])


PROGRAM = """
import sys
import numpy as np
from tidegate.operate.kernels.join.pair import find
assert "numba" not in sys.modules
one = np.ones(1, np.float32)
print(find(np.array([0]), np.array([1]), [one], [one], [one]))
from tidegate.operate.kernels.join.pair_loop import compiled
print(len(compiled(1, "float32").stats.cache_hits))
"""
PRINTED = "(array([0]), array([0]))\n"


def start(**environment: str) -> subprocess.Popen[str]:
    """Find one pair in a process of its own, with a loop that is compiled quickly."""
    given = {**os.environ, "NUMBA_OPT": "1", **environment}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_processes_may_compile_at_once_and_later_ones_load(tmp_path: Path) -> None:
    both = [start(NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [run.communicate()[0][: len(PRINTED)] for run in both] == [PRINTED, PRINTED]
    assert start(NUMBA_CACHE_DIR=str(tmp_path)).communicate()[0] == PRINTED + "1\n"


@pytest.mark.parametrize("failure", [RuntimeError, OSError, EOFError])
def test_without_a_cache_the_loop_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    """No folder can be written, the disk is full, a file is damaged."""
    from tidegate import machine_code
    from tidegate.operate.kernels.join import pair_loop

    def njit(signature: Any, nogil: bool, cache: bool = False) -> Any:
        if cache:
            raise failure
        return lambda function: function.__qualname__

    monkeypatch.setattr(machine_code.numba, "njit", njit)
    assert pair_loop.compiled.__wrapped__(2, "float64") == "_pairs_2_float64"
