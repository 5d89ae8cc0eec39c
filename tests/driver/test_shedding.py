"""Other shares while a query runs: asked for, taken at an event time, and recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver.scene import drain, loop_of, memory, plan_of, rows_of, table
from tidegate.batch import MIN_US
from tidegate.control.command import answer
from tidegate.driver.loop import Loop
from tidegate.elastic.policy import Decision
from tidegate.elastic.share import ShareRequest, share_of, share_text
from tidegate.elastic.shed_rule import (
    BEHIND_S,
    CAUGHT_UP_S,
    PATIENCE,
    BacklogSeen,
    ShedMemory,
    decide,
)
from tidegate.errors import OptionError
from tidegate.operate.aggregate.functions.count import Count
from tidegate.operate.aggregate.functions.spread import Spread
from tidegate.operate.aggregate.functions.total import ExactTotal, FloatTotal
from tidegate.operate.kernels.group import Groups
from tidegate.sink.memory import MemorySink
from tidegate.source.memory import MemorySource

SQL = "SELECT k, SUM(v) AS v, AVG(v) AS a, COUNT(v) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
ROWS = [(t / 100, f"k{t % 7}", t % 11) for t in range(4000)]
ASKED = 1500
"""So many rows are read before another share is asked for."""


def commanded(
    sql: str,
    folder: Path,
    *,
    cut: int,
    after: str,
    restart: bool = False,
    asked: int = ASKED,
    **options: Any,
) -> tuple[list[Any], Loop]:
    """Rows of a run that is told to shed otherwise, and how the rest of its input is cut."""
    sink, source = MemorySink(), memory()
    loop = loop_of(plan_of(sql), [source], folder, sink, **options)
    given = [ROWS[:asked], *(ROWS[i : i + cut] for i in range(asked, len(ROWS), cut))]
    for number, part in enumerate(given):
        source.append(table(*part))
        if number == 1:
            answer(loop, {"command": "shed", "share": after, "why": "a test"})
            if restart:
                drain(loop)
                loop.close()
                loop = loop_of(plan_of(sql), [source], folder, sink, **options)
                continue
        drain(loop)
    source.end()
    drain(loop)
    loop.close()
    return rows_of(sink), loop


@pytest.mark.parametrize("by", ["CONCEPT", "CONCEPT TOTAL", "UNIFORM"])
def test_a_share_that_is_asked_for_counts_after_what_was_read_for_any_cut_after_it(
    by: str, tmp_path: Path
) -> None:
    sql = f"{SQL} WITH SHED UP TO 95 PERCENT BY {by}"
    rows, loop = commanded(sql, tmp_path / "a", cut=2500, after="90 percent")
    again = [
        commanded(sql, tmp_path / "b", cut=300, after="90 percent", instances=3)[0],
        commanded(sql, tmp_path / "c", cut=700, after="90 percent", restart=True)[0],
    ]
    assert again == [rows, rows]
    (status,) = loop.pipeline.subqueries.shedding.status().values()
    (change,) = status["changes"]
    assert change["from_us"] == round(ROWS[ASKED - 1][0] * 1e6) + 1
    assert (status["share"], change["by"], change["why"]) == (0.9, "ctl", "a test")
    exact = rows_of_exact(tmp_path / "exact")
    by_window = [[row for row in rows if row[1] == end] for end in (10, 20, 40)]
    assert [row[:6] for row in by_window[0]] == [row for row in exact if row[1] == 10]
    assert {row[6] for row in by_window[0]} == {1.0}
    assert all(0 < row[6] < 0.35 for row in by_window[2])
    kept = [sum(row[6] for row in rows) / len(rows) for rows in by_window]
    assert kept[0] > kept[1] > kept[2]
    for window, end in ((by_window[1], 20), (by_window[2], 40)):
        wanted = sum(row[3] for row in exact if row[1] == end)
        assert sum(row[3] for row in window) == pytest.approx(wanted, rel=0.25)
        means = {row[2]: row[4] for row in exact if row[1] == end}
        assert all(abs(row[4] - means[row[2]]) < 2.5 for row in window)


def rows_of_exact(folder: Path) -> list[Any]:
    sink = MemorySink()
    drain(loop_of(plan_of(SQL), [memory(*ROWS, end=True)], folder, sink))
    return rows_of(sink)


def test_a_query_with_up_to_sheds_nothing_by_itself_where_no_backlog_is(tmp_path: Path) -> None:
    sink = MemorySink()
    source = memory(*ROWS, end=True)
    loop = loop_of(plan_of(f"{SQL} WITH SHED UP TO 98 PERCENT"), [source], tmp_path / "a", sink)
    drain(loop)
    assert [row[:-1] for row in rows_of(sink)] == rows_of_exact(tmp_path / "b")
    assert {row[-1] for row in rows_of(sink)} == {1.0}
    assert "rows_shed" not in loop.summary.counters


@settings(max_examples=10)
@given(
    asked=st.integers(1, len(ROWS) - 1),
    cut=st.integers(200, len(ROWS)),
    instances=st.integers(1, 3),
    restart=st.booleans(),
)
def test_beginning_to_shed_gives_the_same_rows_wherever_it_begins_and_if_the_driver_ends_there(
    asked: int, cut: int, instances: int, restart: bool
) -> None:
    sql, after = f"{SQL} WITH SHED UP TO 95 PERCENT", "90 percent"
    with TemporaryDirectory() as folder:
        at_once, _ = commanded(sql, Path(folder) / "a", cut=len(ROWS), after=after, asked=asked)
        how = {"cut": cut, "restart": restart, "instances": instances}
        again, _ = commanded(sql, Path(folder) / "b", after=after, asked=asked, **how)
        exact = rows_of_exact(Path(folder) / "exact")
    assert again == at_once
    whole = {row[:6] for row in at_once if row[6] == 1.0}
    assert whole <= set(exact)


def test_until_it_sheds_a_query_that_may_does_the_work_of_one_that_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts the tuples that kernels get, and what is kept of groups that are sampled."""
    folded: Counter[str] = Counter()

    def counting(family: type, fold: Callable[..., Any]) -> Callable[..., Any]:
        def counted(self: Any, groups: Groups, columns: Any) -> Any:
            folded[family.__name__] += len(groups.codes)
            return fold(self, groups, columns)

        return counted

    for family in (ExactTotal, FloatTotal, Count, Spread):
        monkeypatch.setattr(family, "fold", counting(family, family.fold))
    rows_of_exact(tmp_path / "exact")
    plain = +folded
    folded.clear()
    sql = f"{SQL} WITH SHED UP TO 95 PERCENT"
    source = memory(*ROWS[:1990])
    loop = loop_of(plan_of(sql), [source], tmp_path / "a")
    drain(loop)
    assert sampled_groups(tmp_path / "a") == 0
    source.append(table(*ROWS[1990:]))
    source.end()
    drain(loop)
    assert plain == {"ExactTotal": 2 * len(ROWS), "Count": len(ROWS)}
    assert +folded == plain
    folded.clear()
    commanded(sql, tmp_path / "b", cut=490, after="90 percent")
    assert folded["Spread"] > 0
    assert sampled_groups(tmp_path / "b") > 0


def sampled_groups(folder: Path) -> int:
    """How many groups in the segments of a checkpoint are sampled."""
    found = 0
    for file in folder.rglob("segment/*.arrow"):
        columns = pa.ipc.open_file(file).read_all()
        found += len(pc.list_flatten(columns.column("a0.sampled")))
    return found


def test_off_and_auto_give_it_back_and_what_cannot_be_is_refused(tmp_path: Path) -> None:
    source = memory(*ROWS[:100])
    loop = loop_of(plan_of(f"{SQL} WITH SHED UP TO 90 PERCENT"), [source], tmp_path / "a")
    shedding = loop.pipeline.subqueries.shedding
    drain(loop)
    for asked, share, follows in (("50%", 0.5, False), ("off", 0.0, False), ("auto", 0.0, True)):
        answer(loop, {"command": "shed", "share": asked})
        source.append(table(*ROWS[100:200]))
        drain(loop)
        (status,) = shedding.status().values()
        assert (status["share"], shedding.follows_backlog) == (share, follows)
    with pytest.raises(OptionError, match="up to 90 percent; got 95 percent"):
        loop.controls.shed(ShareRequest(0.95))
    loop.close()
    with pytest.raises(OptionError, match="needs a query that runs"):
        loop.controls.shed(ShareRequest(0.5))
    plain = loop_of(plan_of(SQL), [memory()], tmp_path / "b")
    with pytest.raises(OptionError, match="needs a query that has WITH SHED"):
        answer(plain, {"command": "shed", "share": "90 percent"})
    fixed = loop_of(plan_of(f"{SQL} WITH SHED 5 PERCENT"), [memory()], tmp_path / "c")
    with pytest.raises(OptionError, match="auto is for a query that has WITH SHED UP TO"):
        answer(fixed, {"command": "shed", "share": "auto"})
    for wrong in ("100 percent", "-1 percent", "much", "", 1.0, True, None):
        with pytest.raises(OptionError, match="at least 0 and below 100 percent"):
            share_of(wrong)
    assert [share_text(share_of(text)) for text in ("97.5 percent", 0.9, "off", "auto")] == [
        "97.5 percent", "90 percent", "off", "auto",
    ]  # fmt: skip


def course(waiting: list[int], kept: float = 1.0, least: float = 0.1) -> list[float]:
    """What the rule keeps after each batch of 1,000 rows in a second."""
    memory_, found = ShedMemory(), []
    for rows in waiting:
        kept, memory_ = decide(kept, least, BacklogSeen(1000, 1.0, rows, 1.0), memory_)
        found.append(kept)
    return found


def test_the_rule_sheds_more_while_a_backlog_grows_and_less_when_it_is_gone() -> None:
    behind, gone = round(BEHIND_S * 1000) + 1, round(CAUGHT_UP_S * 1000) - 1
    assert set(course([0] * 20)) == {1.0}
    assert set(course([round(BEHIND_S * 1000)] * 20)) == {1.0}
    growing = course([behind + 100 * i for i in range(PATIENCE * 5)])
    assert growing[0] == 0.5
    assert growing[-1] == 0.1
    assert growing == sorted(growing, reverse=True)
    between = (behind + gone) // 2
    assert set(course([between] * 20, kept=0.25)) == {0.25}, "between both thresholds it stays"
    falling = course([behind + 1000 - 100 * i for i in range(8)], kept=0.25)
    assert set(falling[1:]) == {falling[0]}, "what helps is not made more of"
    back = course([gone] * 20, kept=0.1)
    assert back[:2] == [0.1, 0.2], "of more nothing is known: it is tried"
    assert back[-1] == 1.0


def test_the_share_settles_while_an_overload_lasts_and_is_given_back_after_it() -> None:
    """A query with a capacity of 1,000 rows a second, of which a quarter of the work is to read."""
    memory_, kept, now, waiting = ShedMemory(), 1.0, 0.0, 0.0
    course_: list[tuple[float, float, float]] = []
    while now < 180:
        rate = 1500.0 if 20 <= now < 120 else 500.0
        rows = int(max(waiting, 1))
        seconds = 0.02 + rows / 1000 * (0.25 + 0.75 * kept)
        now, waiting = now + seconds, waiting - rows + rate * seconds
        kept, memory_ = decide(
            kept, 0.02, BacklogSeen(rows, seconds, int(waiting), seconds), memory_
        )
        course_.append((now, kept, memory_.behind_s))
    settled = [one for one in course_ if 45 <= one[0] < 75]
    assert 0.35 < min(kept for _, kept, _ in settled) == max(kept for _, kept, _ in settled) < 0.55
    assert max(behind for *_, behind in settled) < CAUGHT_UP_S
    late = [behind for at, _, behind in course_ if 45 <= at < 120 and behind > BEHIND_S]
    assert len(late) < 6, "that it tries again with more is rare"
    assert {kept for at, kept, _ in course_ if at < 20 or at > 130} == {1.0}


class Crowd(MemorySource):
    """A live source of which many rows wait, as long as a test says so."""

    waits = 0

    def untaken(self, position: int) -> tuple[int, str]:
        return self.waits, "rows"


def test_a_backlog_makes_the_engine_shed_and_its_end_gives_it_back(tmp_path: Path) -> None:
    source = Crowd(table(), time="ts", schema=table().schema, id="crowd")
    sql = f"{SQL} WITH SHED UP TO 90 PERCENT BY UNIFORM"
    loop = loop_of(plan_of(sql), [source], tmp_path / "a", follow=True)
    shares, source.waits = [], 10**9
    number = 0
    while number < 12 or shares[-1] > 0:
        source.waits = 10**9 + number if number < 12 else 0
        rows = 100 if number < 12 else 5
        source.append(table(*((number + i / 100, f"k{i % 7}", i % 11) for i in range(rows))))
        loop.step()
        (status,) = loop.pipeline.subqueries.shedding.status().values()
        shares.append(status["share"])
        number += 1
    assert shares[0] == 0.0
    assert max(shares) == 0.9
    assert {one["by"] for one in status["changes"]} == {"backlog"}
    assert loop.summary.counters["rows_shed"] > 100
    recorded = loop.manifest.shedding
    assert len(recorded["rates"]["aggregate"]) < 4, "rates that no tuple needs are let go of"
    assert recorded["rates"]["aggregate"][0][0] == MIN_US
    loop.close()


class Thrifty:
    """A policy that sheds a half after the second batch, and nothing after the fourth."""

    name = "thrifty"
    sheds = True

    def decide(self, observed: Any, memory: Any) -> Decision:
        batch = observed[0].batch
        self.seen = observed[0].shed
        share = {1: 0.5, 3: 0.0}.get(batch)
        asked = None if share is None else ShareRequest(share, why=f"after batch {batch}")
        return Decision((), {"batch": batch}, asked)

    def told(self, memory: Any) -> dict[str, Any]:
        return {"decisions": [memory["batch"]]}


def test_a_policy_chooses_the_share_and_the_backlog_does_not(tmp_path: Path) -> None:
    source, policy = memory(), Thrifty()
    plan = plan_of(f"{SQL} WITH SHED UP TO 90 PERCENT")
    loop = loop_of(plan, [source], tmp_path / "a", policy=policy)
    shares = []
    for start in range(0, 3000, 500):
        source.append(table(*ROWS[start : start + 500]))
        drain(loop)
        (status,) = loop.pipeline.subqueries.shedding.status().values()
        shares.append(status["share"])
    assert shares == [0.0, 0.0, 0.5, 0.5, 0.0, 0.0]
    (status,) = loop.pipeline.subqueries.shedding.status().values()
    assert [(c["by"], c["why"]) for c in status["changes"]] == [
        ("policy thrifty", "after batch 1"),
        ("policy thrifty", "after batch 3"),
    ]
    assert status["by"] == "policy thrifty"
    assert (policy.seen.share, policy.seen.most) == (0.0, 0.9)
    assert loop.manager.status()["decisions"] == loop.summary.as_dict()["controller"]["decisions"]
    answer(loop, {"command": "shed", "share": "50 percent"})
    source.append(table(*ROWS[3000:3500]))
    drain(loop)
    assert policy.seen is None, "a user has taken the share from it"
    loop.close()
