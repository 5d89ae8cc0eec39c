"""What is kept of groups in panes, beside a plain choice tuple by tuple."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.approx.stratum import lowest_lacking, strata

LENGTH = 50


def plainly(
    codes: list[int], times: list[int], words: list[int], fewest: int, limit: int
) -> tuple[list[int], dict[tuple[int, int], int]]:
    """The positions that are kept, ascending, and how many tuples each group and pane has."""
    of: dict[tuple[int, int], list[int]] = {}
    for i, (code, time) in enumerate(zip(codes, times, strict=True)):
        of.setdefault((time // LENGTH, code), []).append(i)
    kept = []
    for rows in of.values():
        lowest = sorted(rows, key=lambda i: words[i])
        kept += [i for place, i in enumerate(lowest) if place < fewest or words[i] < limit]
    return sorted(kept), {stratum: len(rows) for stratum, rows in of.items()}


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("fewest", [1, 2, 5])
@pytest.mark.parametrize("rate", [0.02, 0.4])
def test_each_group_and_pane_keeps_what_is_below_the_limit_or_its_few_lowest(
    in_order: bool, fewest: int, rate: float
) -> None:
    chance = np.random.default_rng([in_order, fewest])
    for tuples, groups in ((1, 1), (400, 1), (400, 30), (400, 300)):
        times = chance.integers(-400, 400, tuples)
        times = np.sort(times) if in_order else times
        codes = chance.integers(0, groups, tuples)
        words = chance.integers(0, 2**64, tuples, np.uint64)
        limit = int(rate * 2**64)
        found = strata(codes, groups, (times, LENGTH), words, fewest, limit)
        kept, sizes = plainly(codes.tolist(), times.tolist(), words.tolist(), fewest, limit)
        assert found.rows.tolist() == kept
        assert (found.priority == words[found.rows]).all()
        counted: dict[tuple[int, int], list[int]] = {}
        for row, count in zip(kept, found.tuples.tolist(), strict=True):
            counted.setdefault((int(times[row]) // LENGTH, int(codes[row])), []).append(count)
        assert {stratum: sum(counts) for stratum, counts in counted.items()} == sizes
        assert all(sum(count > 0 for count in counts) == 1 for counts in counted.values())


def test_of_no_tuples_nothing_is_kept() -> None:
    none = np.empty(0, np.int64)
    found = strata(none, 3, (none, LENGTH), np.empty(0, np.uint64), 2, 2**60)
    assert len(found.rows) == len(found.priority) == len(found.tuples) == 0
    rows, sizes = lowest_lacking(none, np.empty(0, np.uint64), np.array([2, 0]))
    assert (rows.tolist(), sizes.tolist()) == ([], [0, 0])


def test_groups_get_what_they_lack_lowest_first() -> None:
    chance = np.random.default_rng(7)
    codes = chance.integers(0, 40, 300)
    words = chance.integers(0, 2**64, 300, np.uint64)
    lacking = chance.integers(0, 12, 45)
    rows, sizes = lowest_lacking(codes, words, lacking)
    expected = [
        sorted(np.flatnonzero(codes == group).tolist(), key=lambda i: words[i])[:room]
        for group, room in enumerate(lacking.tolist())
    ]
    assert sizes.tolist() == [len(some) for some in expected]
    assert rows.tolist() == [row for some in expected for row in some]
    assert 0 < len(rows) < 300
