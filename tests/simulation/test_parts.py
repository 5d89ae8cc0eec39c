"""A campaign counts part by part: what ends it takes no more than one with it."""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import Done, in_parts
from tests.simulation.course import Report
from tests.simulation.scenario import scenario


def ends_at_five(seed: int) -> Report:
    if seed == 5:
        raise MemoryError
    return Report(scenario(seed, faults=0))


def wrong_at_three(seed: int) -> Report:
    return Report(scenario(seed, faults=0), wrong="too many rows" if seed == 3 else None)


def test_parts_before_the_end_are_counted() -> None:
    counted: list[Done] = []
    with pytest.raises(MemoryError):
        in_parts(ends_at_five, range(8), jobs=1, keep_going=True, count=counted.append, length=2)
    assert [done.courses for done in counted] == [2, 2]


@pytest.mark.parametrize(("keep_going", "courses"), [(True, [2, 2, 1]), (False, [2, 2])])
def test_a_wrong_course_is_counted(
    keep_going: bool, courses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.simulation.__main__.told", lambda report: report.wrong)
    counted: list[Done] = []
    wrong = in_parts(
        wrong_at_three, range(5), jobs=1, keep_going=keep_going, count=counted.append, length=2
    )
    assert wrong == 1
    assert [done.courses for done in counted] == courses
    assert counted[1].wrong == ["seed 3"]
