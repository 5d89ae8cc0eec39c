"""STRETCH's model of scalability: the figures that its section 8 and Table 1 imply."""

from __future__ import annotations

from math import log2

import pytest

from tidegate.model.scalability import (
    Overhead,
    Stages,
    StageWork,
    overhead_of,
    pure,
    scales_better,
    scales_to,
    stages,
    virtual,
)

INPUT_S = 1e-6
TABLE_1 = StageWork(INPUT_S, 16 * INPUT_S, INPUT_S)


def test_table_1_scales_further_by_virtual_shared_nothing() -> None:
    """By hand: 16 / n against 1 + 0.1 n, and against 1 + 0.1 n log2(n); for V_SN 0.01."""
    assert scales_to(TABLE_1, pure(INPUT_S)) == 6
    assert scales_to(TABLE_1, virtual(INPUT_S)) == 11
    for threads in range(1, 20):
        p, v = (stages(TABLE_1, way(INPUT_S), threads) for way in (pure, virtual))
        assert p.process_s == v.process_s == pytest.approx(16e-6 / threads)
        assert p.input_s == pytest.approx((1 + 0.1 * threads) * 1e-6)
        assert v.output_s == pytest.approx((1 + 0.01 * threads * log2(threads)) * 1e-6)
        assert v.rate >= p.rate
        assert v.batch_rate > p.batch_rate


def test_it_never_scales_where_an_end_is_slower_than_the_work() -> None:
    assert scales_to(StageWork(2.0, 1.0, 0.5), Overhead(0.0, 0.0)) == 0
    assert scales_to(StageWork(0.5, 1.0, 0.5), Overhead(0.0, 0.0)) == 2


def test_the_paper_wants_both_ends_of_the_other_to_be_slower() -> None:
    one = Stages(1.0, 2.0, 1.5)
    assert scales_better(one, Stages(3.0, 2.0, 2.5))
    assert not scales_better(one, Stages(3.0, 2.0, 1.5))
    assert not scales_better(Stages(2.5, 2.0, 1.0), Stages(3.0, 2.0, 3.0))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_what_is_measured_gives_the_overhead_back(threads: int) -> None:
    overhead = Overhead(3e-7, 2e-8)
    found = overhead_of(stages(TABLE_1, overhead, threads), TABLE_1, threads)
    assert found.hand_out_s == pytest.approx(overhead.hand_out_s)
    assert found.merge_s == pytest.approx(overhead.merge_s)
    assert overhead_of(Stages(0.0, 1.0, 0.0), TABLE_1, threads) == Overhead(0.0, 0.0)
