"""The rates of section 7, against what its text says."""

from __future__ import annotations

import numpy as np

from tidegate.model.join.experiment import EXPERIMENTS, section7, trades


def test_the_five_parts_of_section_7() -> None:
    experiment = section7()
    trace = experiment.trace
    assert trace.times.tolist() == list(range(1_500))
    assert [(p.name, p.start_s, p.end_s) for p in experiment.parts] == [
        (name, 300 * i, 300 * (i + 1)) for i, name in enumerate("ABCDE")
    ]
    parts = [(trace.r[i : i + 300, 0], trace.s[i : i + 300, 0]) for i in range(0, 1_500, 300)]
    (a_r, a_s), (b_r, b_s), (c_r, c_s), (d_r, d_s), (e_r, e_s) = parts
    assert set(a_r) == set(a_s) == {140}
    assert set(b_r) == {150, 250}
    assert set(b_s) == {160, 240}
    assert set(c_r + c_s) == {300}
    assert (c_r.min(), c_r.max()) == (100, 200)
    assert (d_r.min(), d_r.max(), d_s.min(), d_s.max()) == (100, 200, 100, 200)
    assert not np.array_equal(d_r, d_s)
    assert set(e_r) == {160, 60}
    assert set(e_s) == {150, 230}
    for r, s in ((b_r, b_s), (e_r, e_s)):
        high_r, high_s = r != r[0], s != s[0]
        assert high_r.sum() == high_s.sum() == 90, "three peaks of 30 seconds"
        assert (high_r & high_s)[150:180].all(), "one of them together"
        assert (high_r & ~high_s).any()
        assert (high_s & ~high_r).any()


def test_the_phases_of_section_8() -> None:
    for name in [f"section8-{number}" for number in range(1, 6)]:
        experiment = EXPERIMENTS[name]()
        rates = (experiment.trace.r + experiment.trace.s)[:, 0]
        assert len(rates) == 1_200
        assert 500 <= rates.min() <= rates.max() <= 8_000
        assert experiment.parts[0].start_s == 0
        assert experiment.parts[-1].end_s == 1_200
        for part in experiment.parts[:-1]:
            assert 100 <= part.end_s - part.start_s <= 300
            assert len(set(rates[part.start_s : part.end_s])) == 1


def test_trades_come_in_bursts() -> None:
    rates = (trades().trace.r + trades().trace.s)[:, 0]
    assert (len(rates), rates.min(), rates.max()) == (1_800, 0, 8_000)
    assert np.median(rates) < 0.25 * rates.max()
