"""Stability, accuracy, settling time and overshoot of timelines that are easy to judge."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.model.control.saso import Timeline, changes, saso


def judged(instances: list[int], wanted: list[int], **more: object):
    timeline = Timeline(
        times=np.arange(len(instances), dtype=np.float64),
        instances=np.array(instances),
        wanted=np.array(wanted),
        latency=np.full(len(instances), 0.5),
        **more,  # type: ignore[arg-type]
    )
    return saso(timeline)


def test_a_run_that_is_always_right() -> None:
    found = judged([1] * 10 + [3] * 10, [1] * 10 + [3] * 10, changes=[0.0, 10.0], window_s=2)
    assert (found.switches, found.reversals, found.enough, found.distance) == (1, 0, 1.0, 0.0)
    assert (found.settling_s, found.overshoot, found.undershoot) == (0.0, 0, 0)
    assert (found.latency_mean_s, found.latency_max_s) == (0.5, 0.5)


def test_one_that_goes_up_step_by_step_and_too_far() -> None:
    there = [1] * 11 + [2, 3, 5] + [4] * 16
    found = judged(there, [1] * 10 + [3] * 20, changes=[0.0, 10.0], window_s=5)
    assert (found.switches, found.reversals) == (4, 1)
    assert found.settling_s == 4.0
    assert (found.overshoot, found.undershoot) == (1, 0)
    assert found.enough == pytest.approx(1 - 2 / 30)
    assert found.distance == pytest.approx((2 + 1 + 0 + 2 + 16) / 30)


def test_what_there_was_no_occasion_to_see() -> None:
    quick = judged([1, 2, 1, 2], [1, 2, 1, 2], changes=[0.0, 1.0, 2.0, 3.0], window_s=60)
    assert (quick.settling_s, quick.overshoot, quick.undershoot) == (None, None, None)
    assert (quick.switches, quick.reversals) == (3, 0)
    silent = Timeline(
        np.arange(2.0), np.array([1, 1]), np.array([1, 1]), np.array([np.nan, np.nan])
    )
    assert saso(silent).latency_mean_s is None


def test_a_load_changes_where_a_rate_has_moved_by_a_twentieth() -> None:
    r = np.array([100.0, 103, 105, 106, 107, 50, 50, 0, 0, 1])
    s = np.full(10, 7.0)
    assert changes(np.arange(10.0), r, s) == [0, 3, 5, 7, 9]
