"""Which batches one task is given as a whole."""

from __future__ import annotations

from tidegate.execute.spark.task_exchange import SHORT_S, WholeBatchPace


def test_a_first_batch_is_thought_to_be_short() -> None:
    assert WholeBatchPace().short(10_000)


def test_what_was_short_stays_so_until_there_is_much_more() -> None:
    pace = WholeBatchPace()
    pace.note(100, 0.03)
    assert pace.short(100)
    assert pace.short(600)
    assert not pace.short(1_000)


def test_what_was_long_is_tried_again_after_a_while() -> None:
    pace = WholeBatchPace()
    pace.note(100, 30 * SHORT_S)
    tried = [pace.short(100) for _ in range(40)]
    assert not any(tried[:16])
    assert tried[16]
    pace.note(100, SHORT_S / 2)
    assert pace.short(100)


def test_a_batch_without_rows_is_noted() -> None:
    pace = WholeBatchPace()
    pace.note(0, 0.01)
    assert pace.short(10)
