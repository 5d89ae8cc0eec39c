"""`auto` at work: what it chooses for windows, which of them are merged, and what is told of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tests.driver.scene import Row, compacted, loop_of, memory, rows_of
from tests.operate.aggregate.test_routing import Mergeable, stream_of
from tests.operate.aggregate.test_split_keys import node_of
from tidegate.driver.loop import Loop
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalRunner
from tidegate.operate.aggregate import choice
from tidegate.operate.aggregate.choice import (
    CHOICE_SCHEMA,
    CHOICES,
    divided,
    split_windows,
)
from tidegate.operate.aggregate.merging import FINISHED, PARTS
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.instance_cache import forget
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.route import auto
from tidegate.route.registry import partitioner_of
from tidegate.route.selection import PartitionerChoice
from tidegate.sink.memory import MemorySink

HASH, CAM, SHUFFLE, PK = PartitionerChoice

MIDDLE = "SELECT k, MEDIAN(v) AS m, COUNT(*) AS n FROM s [RANGE 20 SECONDS] GROUP BY k"
SLIDING = "SELECT k, MEDIAN(v) AS m FROM s [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY k"
HEAVY: list[Row] = [(t / 100, "heavy" if t % 5 < 3 else f"k{t % 37}", t) for t in range(10_000)]
"""One key has three of five tuples; five windows of 2,000."""


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What merging costs by itself would be more than all that there is in windows as small."""
    for name in ("CHEAP", "KEEPING_VALUES", "OF_USERS"):
        monkeypatch.setattr(choice, name, replace(getattr(choice, name), step=0))


class Ports(LocalRunner):
    """Notes how many rows an aggregate gives to each port by window, and what its instances do."""

    def __init__(self) -> None:
        self.given: dict[int, Counter[Any]] = {PARTS: Counter(), FINISHED: Counter()}
        self.dealt: Counter[tuple[int, int]] = Counter()

    def run(self, job: Job) -> list[Outcome]:
        outcomes = super().run(job)
        if job.subquery.key == "aggregate":
            for outcome in outcomes:
                self.dealt[job.batch, outcome.instance] += outcome.tuples
                for port, piece in enumerate(outcome.pieces):
                    self.given[port].update(piece.load().column("window_end").to_pylist())
        return outcomes


def watched(
    sql: str, folder: Path, *sources: Sequence[Row], name: str = "auto", **options: Any
) -> tuple[Loop, Ports, MemorySink]:
    plan = lower(node_of(sql), choices=Choices(partitioner=partitioner_of(name)))
    sink, executor = MemorySink(), Ports()
    made = [memory(*rows, id=f"m{i}", end=True) for i, rows in enumerate(sources)]
    loop = loop_of(plan, made, folder, sink, **options)
    loop.runner = executor
    return loop, executor, sink


def chosen(monkeypatch: pytest.MonkeyPatch, choice: PartitionerChoice) -> None:
    """From the second window on."""
    monkeypatch.setattr(auto, "selected", lambda told, costs, held: choice)


def test_a_heavy_key_is_shared_where_hash_gives_it_to_one(tmp_path: Path) -> None:
    found = {}
    for name in ("hash", "auto"):
        loop, executor, sink = watched(
            MIDDLE, tmp_path / name, HEAVY, name=name, instances=2, batch_rows=2_000
        )
        loop.run()
        found[name] = rows_of(sink)
        last = [executor.dealt[4, instance] for instance in range(2)]
        assert sum(last) == 2_000 if name == "auto" else max(last) < 100
        assert name == "hash" or max(last) < 1_010
    assert found["auto"] == found["hash"]
    assert len(found["hash"]) > 100


def test_a_change_is_logged_and_in_summary_and_status(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from tidegate.driver.report.status import status_of

    loop, _, _ = watched(MIDDLE, tmp_path, HEAVY, instances=2, batch_rows=2_000)
    with caplog.at_level("INFO"):
        summary = loop.run()
    first, change = summary.as_dict()["partitioner_changes"]
    assert (first["before"], first["after"], first["tuples"]) == ("hash", "cam", 1_024)
    assert change == {
        "subquery": "aggregate", "batch": 1, "source": "m0", "start": "1970-01-01T00:00:20Z",
        "before": "cam", "after": "shuffle", "tuples": 2_000, "groups": 38, "instances": 2,
        "by_hash": change["by_hash"], "by_key": 1_200, "by_tuple": 1_000,
    }  # fmt: skip
    line = (
        "batch 1, aggregate: auto: shuffle in place of cam for m0 from 1970-01-01T00:00:20Z on, "
        "by 2,000 tuples of 38 groups for 2 instances: the fullest would have "
        f"{change['by_hash']:,} with hash, 1,200 with cam, 1,000 with pk, 1,000 with shuffle"
    )
    assert line in summary.text()
    assert line in caplog.text
    assert status_of(loop)["change_lines"][-1] == line


@pytest.mark.parametrize("sql", [MIDDLE, SLIDING])
@pytest.mark.parametrize("choice", PartitionerChoice)
def test_windows_are_merged_only_where_keys_are_split(
    sql: str, choice: PartitionerChoice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one source cAM keeps keys together, and so does hash; from their second window on."""
    chosen(monkeypatch, choice)
    loop, executor, sink = watched(sql, tmp_path / "auto", HEAVY, instances=3, batch_rows=700)
    loop.run()
    plain, _, expected = watched(sql, tmp_path / "hash", HEAVY, name="hash", batch_rows=10_000)
    plain.run()
    assert rows_of(sink) == rows_of(expected)
    parts, done = executor.given[PARTS], executor.given[FINISHED]
    assert not set(parts) & set(done), "a window is merged or it is not"
    assert len(parts) + len(done) >= 5
    assert bool(parts) is (choice is not HASH)
    if choice is CAM:
        # From hash to cAM keys change their places, within the first window or after it.
        after = [end for end in done if end > max(parts)]
        assert len(after) >= 3
        assert len(parts) <= 7, "those that cover some of the first"
    else:
        assert not (parts if choice is HASH else done.keys() - {min(done, default=None)})


def test_several_sources_that_go_by_cam_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen(monkeypatch, CAM)
    halves = HEAVY[::2], HEAVY[1::2]
    loop, executor, sink = watched(MIDDLE, tmp_path / "auto", *halves, instances=3)
    loop.run()
    plain, _, expected = watched(MIDDLE, tmp_path / "hash", *halves, name="hash")
    plain.run()
    assert rows_of(sink) == rows_of(expected)
    first = min(executor.given[FINISHED] | executor.given[PARTS])
    assert set(executor.given[FINISHED]) <= {first}, "both began with hash"
    assert sum(executor.given[PARTS].values()) > len(rows_of(sink)) - 38


def test_several_tasks_of_one_source_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen(monkeypatch, CAM)
    monkeypatch.setattr("tidegate.execute.splits.SPLIT_ROWS", 1_500)
    loop, executor, sink = watched(MIDDLE, tmp_path / "one", HEAVY, instances=3, batch_rows=1_000)
    loop.run()
    plain, _, expected = watched(MIDDLE, tmp_path / "hash", HEAVY, name="hash")
    plain.run()
    assert rows_of(sink) == rows_of(expected)
    assert executor.given[FINISHED], "one task at a time"
    loop, executor, sink = watched(MIDDLE, tmp_path / "many", HEAVY, instances=3, batch_rows=3_000)
    loop.run()
    assert rows_of(sink) == rows_of(expected)
    assert not executor.given[FINISHED]


def test_choices_do_not_depend_on_the_cut_a_restart_or_what_is_in_memory(tmp_path: Path) -> None:
    quiet: list[Row] = [(t / 100, f"k{t % 371}", t) for t in range(4_000)]
    rows = [*quiet, *((40 + t, k, v) for t, k, v in HEAVY)]
    told = []
    for place, batch_rows in enumerate((20_000, 1_900, 430)):
        options = {"instances": 4, "batch_rows": batch_rows}
        loop, first, _ = watched(MIDDLE, tmp_path / str(place), rows, **options)
        loop.step()
        changes = loop.summary.as_dict()["partitioner_changes"]
        loop.close()
        loop, executor, _ = watched(MIDDLE, tmp_path / str(place), rows, **options)
        while loop.step() is not None:
            compacted(loop)
            forget()  # as where every batch has another process
        changes += loop.summary.as_dict()["partitioner_changes"]
        given = {port: first.given[port] + executor.given[port] for port in (PARTS, FINISHED)}
        told.append(([{**change, "batch": 0} for change in changes], given))
    assert told[1:] == told[:1] * 2
    assert [change["after"] for change in told[0][0]] == ["shuffle"]
    assert told[0][1][FINISHED], "what was even was not merged"


def test_a_switch_to_more_instances_is_a_new_choice(tmp_path: Path) -> None:
    """One instance has all tuples whatever is chosen."""
    loop, executor, sink = watched(
        MIDDLE, tmp_path, HEAVY, instances=1, batch_rows=1_000, switches={5: 4}
    )
    summary = loop.run()
    (change,) = summary.as_dict()["partitioner_changes"]
    assert (change["batch"], change["after"], change["instances"]) == (5, "shuffle", 4)
    assert max(executor.dealt[9, instance] for instance in range(4)) <= 260
    assert len(rows_of(sink)) > 100


def test_choices_go_with_their_windows(tmp_path: Path) -> None:
    rows: list[Row] = [(t / 2, f"k{t % 40}", t) for t in range(2_000)]
    loop, _, _ = watched(MIDDLE, tmp_path, rows, batch_rows=100)
    sizes = []
    while loop.step() is not None:
        segments = loop.manifest.operators[f"aggregate/{CHOICES}"]
        sizes.append(sum(s.rows for s in segments))
    assert len(sizes) >= 20
    assert 1 <= max(sizes) <= 8
    assert sizes[-1] == 0


def choices_table(*rows: tuple[int, PartitionerChoice, str, int, bool]) -> pa.Table:
    """Of (period, choice, source, epoch, apart)."""
    names = ("period", "choice", "upstream", "epoch", "apart")
    made = [dict(zip(names, row, strict=True)) | {"bucket": 0} for row in rows]
    return pa.Table.from_pylist([{**m, "choice": int(m["choice"])} for m in made], CHOICE_SCHEMA)


def test_which_windows_may_have_keys_in_several_places() -> None:
    """Ends above the first and up to the second; windows are 10 long, and slide."""

    def of(*rows: tuple[int, PartitionerChoice, str, int, bool]) -> list[tuple[int, int]]:
        return split_windows(PaneWindow(10, 10), [choices_table(*rows)])

    assert of() == []
    assert of((3, HASH, "a", 0, False), (3, HASH, "b", 0, False), (4, HASH, "a", 1, False)) == []
    assert of((3, SHUFFLE, "a", 0, False)) == [(30, 49)]
    assert of((3, CAM, "a", 0, False), (4, CAM, "a", 0, False)) == []
    assert of((3, CAM, "a", 0, True)) == [(30, 49)]
    assert of((3, CAM, "a", 0, False), (3, CAM, "b", 0, False)) == [(30, 49)]
    assert of((3, CAM, "a", 0, False), (3, CAM, "a", 1, False)) == [(30, 49)]
    assert of((3, HASH, "a", 0, False), (3, CAM, "a", 0, False)) == [(30, 49)]
    # Where a kind follows another, only windows that cover both.
    assert of((3, HASH, "a", 0, False), (4, CAM, "a", 0, False)) == [(40, 49)]
    assert of((3, CAM, "a", 0, False), (4, CAM, "a", 1, False)) == [(40, 49)]


def test_windows_are_divided_without_a_gap() -> None:
    assert list(divided(0, 100, [])) == [(0, 100, False)]
    assert list(divided(0, 100, [(30, 49), (40, 59), (90, 200)])) == [
        (0, 30, False), (30, 49, True), (49, 59, True), (59, 90, False), (90, 100, True),
    ]  # fmt: skip
    assert list(divided(50, 55, [(30, 49), (40, 59)])) == [(50, 55, True)]
    assert list(divided(60, 70, [(30, 49)])) == [(60, 70, False)]


@pytest.mark.parametrize(
    ("call", "options", "routed"),
    [
        (tg.median("v"), {}, "tuples; a key may be at several instances"),
        (tg.aggregate(Mergeable(), "v"), {}, "tuples; a key may be at several instances"),
        (tg.count(), {"partial": "instance"}, "tuples; a key may be at several instances"),
        (tg.median("v"), {"partial": "map"}, "partials, weighted by their tuples; a key may be"),
        (tg.count(), {}, "partials, by their key; auto is hash, for a key is as much work as"),
    ],
)
def test_explain_says_what_auto_has_to_choose(call: Any, options: Any, routed: str) -> None:
    text = stream_of("auto", call).explain(**options)
    assert f"routed: {routed}" in text
    chooses = "a key may be" in routed
    assert ("merge: merge windows by k" in text) is chooses
    assert ("shuffle by auto" in text) is chooses
    assert ("auto: each source chooses hash, cam, pk or shuffle for each window" in text) is chooses


def test_windows_of_tuples_go_by_hash() -> None:
    assert "merge" not in stream_of("auto", tg.count(), rows=5).explain()
