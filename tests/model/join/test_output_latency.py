"""The wait for the merge of output, against equation 25 with offsets that are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.join.work import output_latency


@given(
    st.lists(st.floats(0, 0.999), min_size=2, max_size=8, unique=True),
    st.floats(1, 1000),
)
def test_any_offsets_give_the_same(offsets: list[float], rate: float) -> None:
    """Instance k waits for the next output of each other, all with one period."""
    waits = []
    for mine in offsets:
        others = [(other - mine) % 1.0 for other in offsets if other != mine]
        waits.append(max(others) / rate)
    n = len(offsets)
    found = output_latency(np.array([rate * n]), np.array([1e9]), np.array([float(n)]))
    assert found[0] == pytest.approx(sum(waits) / n)


def test_bursts_come_at_the_rate_of_the_input() -> None:
    found = output_latency(np.full(3, 9000.0), np.full(3, 300.0), np.array([1.0, 2.0, 3.0]))
    assert found == pytest.approx([0, 1 / 600, 2 / 900])


def test_no_output_has_no_latency() -> None:
    found = output_latency(np.zeros(2), np.full(2, 300.0), np.array([1.0, 2.0]))
    assert found[0] == 0
    assert np.isnan(found[1])
