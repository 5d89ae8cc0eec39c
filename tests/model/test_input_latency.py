"""The wait until tuples are ready, against the patterns of the paper, tuple by tuple."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost import calls
from tidegate.model.input_latency import input_latency


def _by_tuples(rates: list[int], strict: bool) -> float:
    """Equation 20 with offsets that are tiny and in the order of the sources; or with none.

    As text and figure 5 of the paper have it: the next tuple of source x at or after a time t is
    that of ceil((t - epsilon_x) / p_x), not of ceil(t / p_x).
    """
    tiny = Fraction(0) if strict else Fraction(1, 10**9)
    hyper_period = Fraction(1, math.gcd(*rates))
    waits = []
    for j, rate in enumerate(rates):
        for m in range(int(hyper_period * rate)):
            at = Fraction(m, rate) + j * tiny
            others = []
            for x, other in enumerate(rates):
                if strict:
                    place = (at * other).__floor__() + 1
                elif x == j:
                    continue
                else:
                    place = math.ceil((at - x * tiny) * other)
                others.append(Fraction(place, other) + x * tiny - at)
            waits.append(max(others))
    return float(sum(waits) / len(waits))


@given(st.lists(st.integers(1, 12), min_size=2, max_size=5), st.booleans())
def test_short_patterns_are_exact(rates: list[int], strict: bool) -> None:
    found = input_latency(np.array([rates], float), strict=strict)[0]
    assert found == pytest.approx(_by_tuples(rates, strict), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(("r", "s"), [(140, 140), (150, 160), (100, 200), (7, 997), (250, 160)])
def test_two_sources_have_a_closed_form(r: int, s: int) -> None:
    g = math.gcd(r, s)
    a, b = r // g, s // g
    wanted = (a * (a - 1) + b * (b + 1)) / (2 * a * b * (a + b) * g)
    assert input_latency(np.array([[r, s]], float))[0] == pytest.approx(wanted)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "rates", [(101, 211), (331, 337, 349), (211, 211, 401), (97.0, 97.0, 97.0, 113.0, 113.0)]
)
def test_long_patterns_are_near_those_that_drift(rates: tuple[float, ...], strict: bool) -> None:
    """Rates of which one is moved a little have no short pattern any more, and the same latency."""
    exact = input_latency(np.array([rates], float), strict=strict)[0]
    moved = np.where(np.array(rates) == rates[-1], rates[-1] + 1e-5 * math.sqrt(2), rates)
    drifting = input_latency(np.array([moved]), strict=strict)[0]
    assert drifting == pytest.approx(exact, rel=0.01)


def test_rates_are_fractions_and_not_floats() -> None:
    """As floats 0.1 and 0.3 have a common multiple of many years."""
    assert input_latency(np.array([[0.1, 0.3]]))[0] == pytest.approx(5.0)
    assert input_latency(np.array([[140 / 3, 70.0]]))[0] == pytest.approx(
        input_latency(np.array([[2.0, 3.0]]))[0] * 3 / 70
    )


def test_a_slow_source_is_waited_for() -> None:
    """Half of its period, by nearly all tuples."""
    assert input_latency(np.array([[139.7, 1 / 3]]))[0] == pytest.approx(1.5, rel=0.01)


def test_strict_readiness_doubles_the_wait_of_equal_sources() -> None:
    rates = np.array([[140.0, 140.0]])
    assert input_latency(rates)[0] == pytest.approx(1 / 280)
    assert input_latency(rates, strict=True)[0] == pytest.approx(1 / 140)


def test_silent_sources_have_no_latency() -> None:
    assert np.isnan(input_latency(np.array([[1.0, 0.0], [0.0, 0.0]]))).all()


@pytest.mark.parametrize("whole", [True, False])
def test_many_different_rates_cost_as_much_as_they_are_many(whole: bool) -> None:
    def found(intervals: int) -> None:
        rates = np.random.default_rng(7).uniform(1, 200, (intervals, 5))
        assert np.isfinite(input_latency(np.round(rates) if whole else rates)).all()

    assert calls(lambda: found(200)) < 15 * calls(lambda: found(20))
