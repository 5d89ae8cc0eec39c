"""Amdahl's law: what more instances can bring, and from when on they do not pay."""

from __future__ import annotations

import math

import pytest

from tidegate.model.speed_up import SpeedUp


@pytest.mark.parametrize(("serial_s", "work_s", "share"), [(1, 9, 0.1), (2, 2, 0.5), (0, 3, 0)])
def test_the_speed_up_is_that_of_amdahls_law(serial_s: float, work_s: float, share: float) -> None:
    found = SpeedUp(serial_s, work_s)
    assert found.serial_share == pytest.approx(share)
    for n in (1, 4, 16):
        assert found.at(n) == pytest.approx((serial_s + work_s) / (serial_s + work_s / n))
    assert found.limit == (1 / share if share else math.inf)
    assert found.at(10**9) == pytest.approx(min(found.limit, 10**9), rel=1e-6)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_instances_are_useful_as_long_as_each_does_half_of_what_the_first_does(
    share: float,
) -> None:
    found = SpeedUp(share, 1 - share)
    most = math.floor(found.useful)
    assert found.at(most) / most >= 0.5
    assert found.at(most + 1) / (most + 1) < 0.5


def test_a_run_that_did_nothing_has_no_limit() -> None:
    assert SpeedUp(0.0, 0.0).limit == SpeedUp(0.0, 0.0).useful == math.inf
