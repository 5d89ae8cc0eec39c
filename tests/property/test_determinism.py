"""The same output for every arrival, batch cut, number of instances, switch, restart and crash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from tests.oracle.function import About
from tests.oracle.query import Answer, Place, interpret
from tests.property.course import AT_ONCE, Result, once, run
from tests.property.queries import STATELESS, WINDOWED
from tests.property.strategies import Scenario, crowded, scenarios
from tests.seed import FIXED, seeds

SEEDS = seeds(max(2, settings.default.max_examples // 50))


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


def share(percent: int, least: int) -> settings:
    """So many per cent of the examples that the profile asks for, and never fewer than `least`.

    CI draws the same ones every time, so three fifths of them must do there.
    """
    fewest = least * 3 // 5 if FIXED else least
    return settings(max_examples=max(fewest, settings.default.max_examples * percent // 100))


def bits(lines: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Cells as text that tells every value from every other, the two zeros too; NaN is one."""
    return [tuple(repr(cell) for cell in line) for line in lines]


def agree(mine: list[tuple[Any, ...]], twin: list[tuple[Any, ...]]) -> None:
    """The same sequence to the bit, except where the twin says how far off a cell may be."""
    assert [len(line) for line in mine] == [len(line) for line in twin]
    for ours, theirs in zip(mine, twin, strict=True):
        for cell, wanted in zip(ours, theirs, strict=True):
            near = isinstance(wanted, About) and abs(cell - wanted) <= wanted.within
            assert near or repr(cell) == repr(wanted), (ours, theirs)


def check(scenario: Scenario) -> None:
    """One scenario run two ways and interpreted plainly."""
    sources = [len(s.sources) for s in scenario.streams]
    plan = scenario.query.plan(sources, scenario.streams[0].disorder)
    reference = run(plan, scenario.streams, AT_ONCE)
    result = run(plan, scenario.streams, scenario.course)

    assert bits(result.rows) == bits(reference.rows)
    assert sorted(bits(result.late)) == sorted(bits(reference.late))
    assert sorted(bits(result.rejected)) == sorted(bits(reference.rejected))
    assert result.counters == reference.counters

    answer = interpret(scenario.query.plain, scenario.streams)
    agree(reference.rows, answer.rows)
    assert places(scenario, reference) == (set(answer.late), set(answer.rejected))
    assert_counted(scenario, reference, answer)


def places(scenario: Scenario, result: Result) -> tuple[set[Place], set[Place]]:
    """Where the tuples of the side outputs came from; none may come twice."""
    position = {s.name: p for p, s in enumerate(once(scenario.streams))}
    late = [Place(position[r[0]], int(r[-3].split("/")[1]), r[-2]) for r in result.late]
    rejected = [Place(position[r[0]], int(r[1].split("/")[1]), r[2]) for r in result.rejected]
    assert len(set(late)) == len(late)
    assert len(set(rejected)) == len(rejected)
    return set(late), set(rejected)


def assert_counted(scenario: Scenario, result: Result, answer: Answer) -> None:
    """The counters say what is there."""
    assert result.counters == {
        "rows_in": scenario.rows,
        "rows_out": len(answer.rows),
        "rows_late": len(answer.late),
        "rows_rejected": len(answer.rejected),
    }


@share(30, least=60)
@given(scenarios(WINDOWED))
def test_windows_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@share(30, least=40)
@given(scenarios(STATELESS))
def test_ready_tuples_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("name", WINDOWED)
def test_windows_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        check(crowded(WINDOWED[name], f"{name} {seed}"))


@pytest.mark.parametrize("name", STATELESS)
def test_ready_tuples_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        check(crowded(STATELESS[name], f"{name} {seed}"))
