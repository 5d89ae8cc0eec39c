"""Random groups: intervals of functions of which only results are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.approx.simulation import DISTRIBUTIONS, Drawn
from tidegate.approx.array import Floats, Ints, Mask
from tidegate.approx.error_scale import Relative
from tidegate.approx.replicate import PARTS, parts_of, replicated, replicated_rows


def weighted(codes: Ints, groups: int, values: Floats) -> Floats:
    """A weighted mean, as a function of a user might be: a price by volume."""
    volume = 1 + (values * 1e6).astype(np.int64) % 7
    with np.errstate(invalid="ignore"):
        return np.bincount(codes, values * volume, groups) / np.bincount(codes, volume, groups)


def found_of(values: Floats, rows: int) -> tuple[Mask, Mask, Mask]:
    """Which windows have the truth in their intervals, are relied on, are so wrongly."""
    windows, size = values.shape
    drawn = Drawn.of(list(values), seed=5)
    codes, ranks, own = drawn.rows(rows)
    parts = parts_of(codes, ranks)
    interval, relied_on = replicated(
        weighted(codes, windows, own),
        weighted(parts, windows * PARTS, own),
        rows=np.full(windows, rows),
        tuples=np.full(windows, size),
        alpha=0.05,
    )
    truth = weighted(np.repeat(np.arange(windows), size), windows, drawn.values)
    held = (interval.low <= truth) & (truth <= interval.high)
    return held, relied_on, relied_on & ~held


def test_the_truth_is_in_the_interval_as_often_as_it_says() -> None:
    values = np.random.default_rng(8).uniform(50, 150, (1000, 1000))
    held, relied_on, _ = found_of(values, 400)
    assert abs(held.mean() - 0.95) < 5 * np.sqrt(0.05 * 0.95 / 1000)
    assert relied_on.mean() > 0.9


def test_what_is_skewed_is_not_relied_on_too_often() -> None:
    chance = np.random.default_rng(8)
    for name in ("log-normal", "Zipf", "spiked", "bimodal"):
        *_, wrong = found_of(DISTRIBUTIONS[name](chance, (300, 1000)), 500)
        assert wrong.mean() <= 0.05 + 0.015


def test_the_promise_is_kept_by_samples_of_the_size_that_a_first_look_asks_for() -> None:
    """Windows are off in at most the share that is allowed, and 1.5 percentage points."""
    chance, error, windows, size, most = np.random.default_rng(9), 0.1, 250, 2_000, 1_000
    looked_at, tuples = {}, np.full(windows, size)
    for name in ("normal", "log-normal", "Zipf", "spiked", "bimodal", "drifting"):
        drawn = Drawn.of(list(DISTRIBUTIONS[name](chance, (windows, size))), seed=5)

        def found(sizes: Ints, drawn: Drawn = drawn, tuples: Ints = tuples) -> dict[str, Any]:
            codes, ranks, values = drawn.rows(most)
            taken = ranks < sizes[codes]
            codes, ranks, values = codes[taken], ranks[taken], values[taken]
            return {
                "values": weighted(codes, windows, values),
                "of_parts": weighted(parts_of(codes, ranks), windows * PARTS, values),
                "rows": sizes,
                "tuples": tuples,
                "alpha": 0.05,
            }

        first = np.full(windows, 300)
        needed = replicated_rows(**found(first), allowed=Relative(error))
        sizes = np.where(needed > 0, np.clip(needed, first, most), most)
        interval, relied_on = replicated(**found(sizes))
        answered = relied_on & (Relative(error).of(interval) <= error)
        truth = weighted(np.repeat(np.arange(windows), size), windows, drawn.values)
        off = np.abs(interval.value - truth) > error * np.maximum(abs(truth), abs(interval.value))
        assert (answered & off).mean() <= 0.05 + 0.015, name
        looked_at[name] = (answered.mean(), sizes[answered].mean())
    share, rows = looked_at["normal"]
    assert share > 0.95
    assert rows < 400


def test_few_rows_parts_without_rows_and_other_functions_are_not_relied_on() -> None:
    values = np.random.default_rng(8).uniform(50, 150, (5, 1000))
    assert not found_of(values, 200)[1].any()
    assert not found_of(values, PARTS - 1)[1].any()
    assert found_of(values, 1000)[1].all()
    counts, parts = np.array([400.0]), np.full(PARTS, 20.0) + np.arange(PARTS) % 2
    _, relied_on = replicated(
        counts, parts, rows=np.array([400]), tuples=np.array([1000]), alpha=0.05
    )
    assert not relied_on.any()


def test_parts_are_dealt_out_in_the_order_of_priorities() -> None:
    parts = parts_of(np.array([0, 0, 2]), np.array([0, PARTS + 1, 5]))
    assert parts.tolist() == [0, 1, 2 * PARTS + 5]
