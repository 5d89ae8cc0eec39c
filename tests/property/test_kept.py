"""What instances keep between batches changes nothing but the time: the same rows and segments."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.course import run
from tests.property.queries import WINDOWED
from tests.property.strategies import Scenario, crowded, scenarios
from tidegate.operate.aggregate import state as pane_state
from tidegate.operate.instance_cache import Kept
from tidegate.operate.join import instance as join_instance
from tidegate.operate.session import state as session_state
from tidegate.operate.tuple_window import state as tuple_state
from tidegate.plan.physical import Plan
from tidegate.state.segment.segment import Segment, write_segment

Written = list[tuple[str, int, int]]


@contextmanager
def watched(forget: float, seed: int = 0) -> Iterator[tuple[Written, list[object]]]:
    """The segments that instances write, and the values that batches find; some are forgotten."""
    written: Written = []
    found: list[object] = []
    chance = random.Random(seed)

    def write(*arguments: Any, **named: Any) -> Segment:
        made = write_segment(*arguments, **named)
        written.append((made.name, made.checksum, made.rows))
        return made

    def take(kept: Kept, what: str, moved: bool = False) -> Any | None:
        value = _take(kept, what, moved)
        if value is None or chance.random() < forget:
            return None
        found.append(value)
        return value

    _take = Kept.take
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kept, "take", take)
        for module in (pane_state, session_state, tuple_state, join_instance):
            patch.setattr(module, "write_segment", write)
        yield written, found


def same(scenario: Scenario, seed: int, plan: Plan | None = None) -> int:
    """Run a scenario with all, some and nothing of what is kept; how much was found."""
    if plan is None:
        sources = [len(s.sources) for s in scenario.streams]
        plan = scenario.query.plan(sources, scenario.streams[0].disorder)
    made = []
    for forget in (0.0, 0.5, 1.0):
        with watched(forget, seed) as (written, found):
            result = run(plan, scenario.streams, scenario.course)
        made.append((repr(result), written, len(found)))
    assert made[0][:2] == made[1][:2] == made[2][:2]
    assert made[2][2] == 0
    return made[0][2]


def test_rows_and_segments_are_the_same_whatever_is_kept() -> None:
    found = 0

    @settings(max_examples=max(12, settings.default.max_examples // 8))
    @given(scenarios(WINDOWED), st.integers(0, 2**32))
    def holds(scenario: Scenario, seed: int) -> None:
        nonlocal found
        found += same(scenario, seed)

    holds()
    assert found


@pytest.mark.parametrize("name", ["every function, sliding", "panes that many batches add to"])
def test_crowded_streams_are_the_same_whatever_is_kept(name: str) -> None:
    assert sum(same(crowded(WINDOWED[name], f"{name} {seed}"), seed) for seed in range(2))
