"""Changes of a mapping that are asked for while a query runs: when they count, and their record."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import COUNTS, Row, drain, loop_of, memory, plan_of, rows_of, table
from tidegate.driver.loop import Loop
from tidegate.driver.subqueries import Subqueries
from tidegate.elastic.owners import owners_of
from tidegate.elastic.request import MappingChange, Move, Rebalance, Request, Scale, Switch
from tidegate.errors import MemoryExceededError, OptionError
from tidegate.sink.memory import MemorySink
from tidegate.source.memory import MemorySource
from tidegate.state.inspect import describe
from tidegate.state.store import Store

ROWS: list[Row] = [(float(second), "abcdefg"[second % 7], second) for second in range(60)]
NESTED = (
    "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k) "
    "[RANGE 20 SECONDS]"
)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Fed:
    """A loop over a source that gets some rows for every batch."""

    def __init__(self, folder: Path, sql: str = COUNTS, **options: Any) -> None:
        self.folder, self.sql, self.options = folder, sql, options
        self.source, self.sink, self.given = memory(), MemorySink(), 0
        self.loop = self._started()

    def _started(self) -> Loop:
        return loop_of(plan_of(self.sql), [self.source], self.folder, self.sink, **self.options)

    def batch(self) -> None:
        """One more batch, of six rows."""
        self.source.append(table(*ROWS[self.given : self.given + 6]))
        self.given += 6
        assert self.loop.step() is not None

    def ask(self, change: MappingChange, subquery: str | None = None, **more: str) -> None:
        self.loop.controls.ask(Request(change, subquery, **more))

    def restart(self, **options: Any) -> None:
        self.loop.close()
        self.options |= options
        self.loop = self._started()

    @property
    def instances(self) -> tuple[int, ...]:
        return tuple(of["instances"] for of in self.loop.manifest.mappings.values())

    @property
    def owners(self) -> list[int]:
        return list(self.loop.manifest.mappings["aggregate"]["owners"])

    def finish(self) -> list[tuple[Any, ...]]:
        self.source.append(table(*ROWS[self.given :]))
        self.source.end()
        drain(self.loop)
        self.loop.close()
        return rows_of(self.sink)


def quiet(folder: Path, sql: str = COUNTS) -> list[tuple[Any, ...]]:
    """The rows of a run that nobody asks for anything."""
    source, sink = MemorySource(table(*ROWS), time="ts"), MemorySink()
    source.end()
    loop_of(plan_of(sql), [source], folder, sink).run()
    return rows_of(sink)


def test_every_change_takes_effect_with_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Subqueries, "loads", lambda self, subquery: [1.0] * 8)
    fed = Fed(tmp_path / "fed")
    fed.batch()
    fed.ask(Move((0, 2), 1))
    assert fed.owners == [0, 1] * 4
    fed.batch()
    assert fed.owners == [1, 1, 1, 1, 0, 1, 0, 1]
    fed.ask(Rebalance())
    fed.batch()
    assert sorted(fed.owners) == [0] * 4 + [1] * 4
    fed.ask(Switch(*owners_of({0: "0-5", 2: "6", 1: "7"})))
    fed.batch()
    assert fed.owners == [0] * 6 + [2, 1]
    fed.ask(Scale(4))
    fed.batch()
    assert fed.instances == (4,)
    assert [e["epoch"] for e in fed.loop.manifest.epochs] == [0, 1, 2, 3, 4]
    assert fed.finish() == quiet(tmp_path / "quiet")


def test_the_newest_request_counts_and_what_was_pending_is_gone(tmp_path: Path) -> None:
    fed = Fed(tmp_path, NESTED)
    fed.batch()
    fed.ask(Scale(5))
    fed.ask(Scale(3), "aggregate2")
    fed.ask(Scale(4), "aggregate2")
    said = {n: str(a.request.change) for n, a in fed.loop.controls.waiting().items()}
    assert said == {"aggregate": "scale 5", "aggregate2": "scale 4"}
    fed.batch()
    assert fed.instances == (5, 4)
    assert fed.loop.controls.waiting() == {}
    fed.ask(Scale(8))
    fed.ask(Scale(5))
    fed.batch()
    assert fed.instances == (5, 5)
    fed.loop.close()


def test_a_request_that_cannot_be_for_one_subquery_changes_none(tmp_path: Path) -> None:
    fed = Fed(tmp_path, NESTED, instances=None, subquery_instances={"aggregate": 4})
    fed.batch()
    with pytest.raises(OptionError, match="an instance that is there, 0; got 3"):
        fed.ask(Move((1,), 3))
    fed.batch()
    assert (fed.instances, len(fed.loop.manifest.epochs)) == ((4, 1), 2)
    fed.ask(Move((1,), 3), "aggregate")
    fed.batch()
    assert fed.owners[1] == 3
    fed.loop.close()


def test_before_the_first_batch(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.ask(Scale(3))
    fed.batch()
    assert (fed.instances, fed.loop.manifest.epoch) == ((3,), 0)
    [epoch] = fed.loop.manifest.epochs
    assert (epoch["epoch"], epoch["instances"], epoch["by"]) == (0, 3, "user")
    fed.loop.close()


def test_options_count_until_somebody_asks_and_later_switches_again(tmp_path: Path) -> None:
    fed = Fed(tmp_path, switches={1: 3, 5: 4})
    fed.batch()
    fed.batch()
    assert fed.instances == (3,)
    fed.ask(Scale(6))
    found = []
    for _ in range(3):
        fed.batch()
        found += fed.instances
    assert found == [6, 6, 6]
    fed.restart(instances=None)
    fed.ask(Move((0,), 5))
    fed.batch()
    assert fed.instances == (6,), "asked at the batch of a switch: the newest counts"
    fed.batch()
    assert fed.instances == (6,)
    fed.loop.close()


def test_a_switch_of_a_later_batch_counts_again(tmp_path: Path) -> None:
    fed = Fed(tmp_path, switches={1: 3, 3: 4})
    fed.ask(Scale(6))
    found = []
    for _ in range(4):
        fed.batch()
        found += fed.instances
    assert found == [6, 3, 3, 4]
    fed.loop.close()


def test_a_restart_keeps_what_was_asked_after_a_switch(tmp_path: Path) -> None:
    fed = Fed(tmp_path, switches={1: 3})
    fed.batch()
    fed.batch()
    fed.ask(Scale(6))
    fed.batch()
    fed.restart()
    fed.batch()
    assert fed.instances == (6,), "the same command again"
    fed.restart(switches={}, instances=2)
    fed.batch()
    assert fed.instances == (2,), "--instances of a start counts as it always did"
    assert [e.get("by") for e in fed.loop.manifest.epochs] == [
        None,
        "--switch",
        "user",
        "--instances",
    ]
    fed.loop.close()


def test_a_batch_that_is_tried_again_has_what_it_had(tmp_path: Path) -> None:
    """What is asked while it runs waits for the next one, however often it is tried."""
    fed = Fed(tmp_path)
    fed.batch()
    fed.ask(Scale(5))
    tries = []

    def fails_once(step: str, batch: int) -> None:
        if step == "after operate" and batch == 1:
            tries.append(batch)
            if len(tries) == 1:
                fed.ask(Move((0,), 4))
                raise MemoryExceededError("batch", "must fit", "a lot")

    fed.loop._observe = fails_once
    fed.batch()
    assert (fed.instances, tries) == ((5,), [1, 1])
    assert list(fed.loop.controls.waiting()) == ["aggregate"]
    fed.loop._observe = lambda step, batch: None
    fed.batch()
    assert fed.owners[0] == 4
    fed.loop.close()


def test_a_query_that_has_ended_cannot_be_asked(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.finish()
    with pytest.raises(OptionError, match=r"^scale: needs a query that runs; got one that has fin"):
        fed.ask(Scale(3))
    stopped = Fed(tmp_path / "stopped")
    stopped.loop.close()
    with pytest.raises(OptionError, match=r"^rebalance: needs a query that runs; got one that has"):
        stopped.ask(Rebalance())


def test_a_switch_is_recorded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate.driver.books")
    fed = Fed(tmp_path)
    fed.batch()
    fed.ask(Scale(4), by="ctl", why="rush hour")
    fed.batch()
    _, epoch = fed.loop.manifest.epochs
    times = [epoch[name] for name in ("asked", "applied", "completed")]
    assert all(TIME.fullmatch(time) for time in times)
    assert times == sorted(times)
    assert epoch["control_ms"] >= 0
    known = {k: v for k, v in epoch.items() if not k.endswith("_ms") and v not in times}
    assert known == {
        "subquery": "aggregate",
        "epoch": 1,
        "batch": 1,
        "instances": 4,
        "before": 2,
        "by": "ctl",
        "why": "rush hour",
        "buckets_moved": 4,
        "bytes_moved": 0,
        "handover": "shared",
        "handover_why": "all instances share the files of one host",
    }
    line = (
        r"epoch 1: 4 instances from batch 1, switched in [\d.]+ ms; 2 before, 4 buckets moved, "
        r"asked by ctl \d+ ms before: rush hour"
    )
    [said] = [r.getMessage() for r in caplog.records if "epoch 1" in r.getMessage()]
    assert re.fullmatch(f"aggregate {line}", said)
    assert [re.fullmatch(line, text) for text in fed.loop.summary.text().splitlines()][-1]
    shown = describe(Store.open(str(tmp_path))).splitlines()
    at = rf" \(asked {TIME.pattern}, applied {TIME.pattern}, completed {TIME.pattern}\)"
    assert [text for text in shown if re.fullmatch(f"  aggregate {line}{at}", text)]
    assert fed.loop.summary.as_dict()["epochs"][1] == epoch
    fed.loop.close()
