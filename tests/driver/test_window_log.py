"""The figures of windows on their way: what is told, what is kept, and how much at most."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.driver.scene import COUNTS, drain, loop_of, memory, plan_of
from tidegate.batch import MAX_US
from tidegate.driver.metric.text import number_text
from tidegate.driver.report.status import status_of
from tidegate.driver.report.window_log import (
    KEPT_WINDOWS,
    MOST_WAITING,
    Amounts,
    ToldPanes,
    WindowLog,
)
from tidegate.execute.job import Job, Outcome
from tidegate.operate.figures import (
    MOST_PANES,
    MOST_WINDOWS,
    PaneFigures,
    ShownFigure,
    ToldWindow,
    Values,
    WindowFigures,
    newest_windows,
)
from tidegate.operate.operator import Operator, OperatorState, Traits
from tidegate.route.mapping import Mapping, even
from tidegate.route.reach import Reach


@dataclass(frozen=True)
class Approximate:
    """An operator that answers some groups approximately, over windows of ten microseconds."""

    traits = Traits(levels=("sample",))
    state = OperatorState(reach=Reach(10))
    shown_figures = (
        ShownFigure("share", "approximate", "share", brief=True),
        ShownFigure("widest", "widest interval"),
    )

    def window_figures(self, told: ToldWindow) -> Values:
        shed = {} if told.dealt is None else {"shed": told.total("shed")}
        return shed | {
            "share": told.total("approximate") / told.total("groups"),
            "widest": told.largest("widest"),
        }


@dataclass(frozen=True)
class Batch:
    """What a log asks of a job."""

    frontier_us: int
    mapping: Mapping
    operator: Approximate


def outcome(instance: int, ends: list[int], *panes: PaneFigures, **values: float) -> Outcome:
    windows = (WindowFigures(end - 10, end, values) for end in ends)
    packed = tuple(one.packed() for one in panes)
    return Outcome(instance, (), windows=newest_windows(windows), panes=packed)


def pane(starts: list[int], instances: list[int], **values: list[float]) -> PaneFigures:
    columns = {name: np.array(column) for name, column in values.items()}
    return PaneFigures.of(np.array(starts), np.array(instances), columns)


def log() -> WindowLog:
    return WindowLog(cast(Operator, Approximate()))


def add(to: WindowLog, frontier_us: int, *outcomes: Outcome) -> None:
    to.add(cast(Job, Batch(frontier_us, even(4, 2), Approximate())), outcomes)


def _lists(found: MappingOf[str, Amounts] | None) -> dict[str, list[float]]:
    return {name: amounts.tolist() for name, amounts in (found or {}).items()}


def test_what_instances_and_map_tasks_tell_becomes_one_figure() -> None:
    made = log()
    add(made, 7, outcome(0, [], pane([0, 5], [0, 1], shed=[3, 2])))
    assert made.digest() is None, "no window is closed"
    add(
        made,
        12,
        outcome(0, [10], pane([5, 10], [0, 0], shed=[1, 100]), groups=3, approximate=2, widest=5),
        outcome(1, [10], groups=1, approximate=0, widest=7),
    )
    add(made, MAX_US, outcome(1, [20], groups=1, approximate=1, widest=1))
    digest = made.digest()
    assert digest is not None
    assert digest.as_dict() == {
        "windows": 2,
        "figures": {
            "shed": {"mean": 53, "max": 100, "last": 100},
            "share": {"mean": 0.75, "max": 1, "last": 1},
            "widest": {"mean": 4, "max": 7, "last": 1},
        },
    }
    assert digest.newest_as_dict() == [
        {"window_end": "1970-01-01T00:00:00.000010Z", "shed": 6, "share": 0.5, "widest": 7},
        {"window_end": "1970-01-01T00:00:00.000020Z", "shed": 100, "share": 1, "widest": 1},
    ]
    assert digest.line == "approximate 75% (at most 100%), widest interval 4 (at most 7)"
    assert digest.newest_line == "approximate 100%"


def test_levels_are_not_added_up_over_batches_and_panes() -> None:
    panes = ToldPanes(["sample"])
    panes.add([pane([0, 5], [0, 0], sample=[10, 20], shed=[1, 1])])
    panes.add([pane([0, 5], [0, 0], sample=[15, 18], shed=[1, 1]), pane([5], [0], sample=[4])])
    assert _lists(panes.between(0, 10)) == {"sample": [22], "shed": [4]}, "of splits the sum"


def test_what_was_told_in_part_is_left_out() -> None:
    made = log()
    made.begin(5)
    add(made, 12, outcome(0, [10], pane([5], [0], shed=[1]), groups=1, approximate=1, widest=0))
    add(made, 22, outcome(0, [20], pane([10], [0], shed=[1]), groups=1, approximate=1, widest=0))
    digest = made.digest()
    assert digest is not None
    assert ["shed" in values for _, values in digest.newest] == [False, True]


def test_of_many_windows_the_newest_are_told_by_all(tmp_path: Path) -> None:
    """An instance that has few windows tells old ones, of which others tell no more."""
    made, many = log(), [10 * (i + 1) for i in range(5_000)]
    add(
        made,
        MAX_US,
        outcome(0, many, groups=1, approximate=1, widest=0),
        outcome(1, many[:3] + many[-2:], groups=3, approximate=0, widest=0),
    )
    digest = made.digest()
    assert digest is not None
    assert (digest.windows, len(digest.newest)) == (MOST_WINDOWS, KEPT_WINDOWS)
    assert [of["share"] for _, of in digest.newest[-3:]] == [1, 0.25, 0.25]
    assert digest.figures["share"]["mean"] == pytest.approx((MOST_WINDOWS - 2 + 0.5) / MOST_WINDOWS)


def test_a_map_task_tells_of_the_newest_panes() -> None:
    few = pane([3, 1], [0, 1], shed=[1, 2])
    again = PaneFigures.unpacked(few.packed())
    assert (again.since_us, again.starts_us.tolist()) == (few.since_us, [3, 1])
    assert (again.instances.tolist(), _lists(again.values)) == ([0, 1], {"shed": [1, 2]})
    rows = MOST_PANES + 11
    starts = np.repeat(np.arange(rows // 5 + 1), 5)[:rows]
    many = PaneFigures.of(starts, np.arange(rows) % 5, {"shed": np.ones(rows)})
    assert MOST_PANES - 5 <= len(many.starts_us) <= MOST_PANES
    assert set(many.starts_us) == set(range(many.since_us, starts.max() + 1))
    assert len(many.packed()) < 25_000


def test_panes_that_wait_are_bounded() -> None:
    panes = ToldPanes([])
    for first in range(0, 3 * MOST_WAITING, 500):
        panes.add([pane(list(range(first, first + 500)), [0] * 500, shed=[1.0] * 500)])
    assert len(panes._panes) == MOST_WAITING
    assert _lists(panes.between(panes.since_us, MAX_US)) == {"shed": [MOST_WAITING]}
    assert panes.between(panes.since_us - 1, MAX_US) is None
    panes.forget(MAX_US)
    assert (len(panes._panes), panes._entries) == (0, 0)


def test_an_instance_may_tell_several_things_of_a_window() -> None:
    windows = [WindowFigures(0, 10, {"groups": 2}), WindowFigures(0, 10, {"approximate": 1})]
    assert newest_windows(windows) == (WindowFigures(0, 10, {"groups": 2, "approximate": 1}),)


def test_where_nothing_is_told_nothing_is_kept() -> None:
    made = log()
    add(made, 5, Outcome(0, ()), Outcome(1, ()))
    assert made.digest() is None


def test_figures_that_are_no_numbers_are_left_out() -> None:
    made = log()
    add(made, MAX_US, outcome(0, [10], groups=1, approximate=1, widest=float("inf")))
    digest = made.digest()
    assert digest is not None
    assert set(digest.figures) == {"share", "shed"}


def test_windows_that_began_before_a_restart_are_told_without_their_tuples(tmp_path: Path) -> None:
    rows = [(t, f"k{t % 5}", 1) for t in range(25)]
    loop = loop_of(plan_of(COUNTS), [memory(*rows)], tmp_path)
    drain(loop)
    first = status_of(loop)["newest_windows"]["aggregate"]
    loop.close()
    assert [(of["tuples"], of["groups"]) for of in first] == [(10, 5), (10, 5)]
    more = memory(*rows, *((t, f"k{t % 5}", 1) for t in range(25, 52)), end=True)
    loop = loop_of(plan_of(COUNTS), [more], tmp_path)
    summary = loop.run()
    again = status_of(loop)["newest_windows"]["aggregate"]
    assert [of.get("tuples") for of in again] == [None, 10, 10, 2]
    assert [of["groups"] for of in again] == [5, 5, 5, 2]
    said = summary.as_dict()["windows"]["aggregate"]
    assert (said["windows"], said["figures"]["tuples"]["max"]) == (4, 10)
    assert summary.window_lines() == [], "of hash people are told the imbalance of the run"


def test_a_switch_keeps_count_of_where_tuples_went(tmp_path: Path) -> None:
    rows = [(t / 2, f"k{t % 7}", 1) for t in range(80)]
    source = memory(*rows, end=True)
    loop = loop_of(plan_of(COUNTS), [source], tmp_path, batch_rows=9, switches={2: 4, 5: 1})
    loop.run()
    told = status_of(loop)["newest_windows"]["aggregate"]
    assert [of["tuples"] for of in told] == [20, 20, 20, 20]
    assert all(of["tuple_imbalance"] >= 0 for of in told)


def test_a_query_without_windows_of_time_tells_nothing(tmp_path: Path) -> None:
    for sql in ("SELECT k FROM s", "SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS]"):
        loop = loop_of(plan_of(sql), [memory((1, "a", 1), end=True)], tmp_path / sql[7:9])
        said: dict[str, Any] = loop.run().as_dict()
        assert said["windows"] == {}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.123, "share", "12%"),
        (0.0234, "share", "2.3%"),
        (0, "share", "0%"),
        (12.6, "ms", "13 ms"),
        (0.4213, "ms", "0.42 ms"),
        (33_792, "bytes", "33.0 KiB"),
        (1.113, "", "1.11"),
        (21.5, "", "21.5"),
        (795.5, "", "796"),
        (1_804, "", "1,804"),
    ],
)
def test_figures_in_words(value: float, unit: str, text: str) -> None:
    assert number_text(value, unit) == text
