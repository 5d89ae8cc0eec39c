"""Live sources that bring rows as fast as they are looked at still let a batch begin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.gate.unread import UnreadSource
from tidegate.connector import Connector
from tidegate.gate.intake import Intake
from tidegate.gate.lateness import Bools, Int64s


class Flood(UnreadSource, Connector):
    """A source that has more rows each time that it is asked."""

    def __init__(self, id: str, more: int) -> None:
        self.id = id
        self.asked = 0
        self._more = more

    def discover(self) -> Sequence[Flood]:
        return [self]

    def live(self) -> bool:
        return True

    def ended(self) -> bool:
        return False

    def extend(self, rows: int) -> int:
        self.asked += 1
        assert self.asked < 1_000, "it is asked again and again"
        return self._more * self.asked

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        return np.arange(start, stop, dtype=np.int64), np.ones(stop - start, np.bool_)


@pytest.mark.parametrize("more", [1, 50, 5_000])
@pytest.mark.parametrize("sources", [1, 2, 3])
def test_a_batch_takes_what_is_there_when_it_is_cut(sources: int, more: int) -> None:
    intake = Intake(hold=False)
    floods = [Flood(f"flood{number}", more) for number in range(sources)]
    for number, flood in enumerate(floods):
        intake.add(number, flood, 0)
    taken = 0
    for _ in range(5):
        intake.look_ahead(1_000_000)
        cut = intake.next_cut(1_000_000, 0.0)
        assert cut is not None
        taken += cut.rows
    assert 0 < taken <= sum(more * flood.asked for flood in floods)
    assert all(flood.asked < 100 for flood in floods)
