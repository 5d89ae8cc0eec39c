"""Sources that join and leave a running query, also across a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.driver.scene import (
    COUNTS,
    PASSED,
    csv,
    drain,
    loop_of,
    memory,
    opened,
    plan_of,
    rows_of,
    table,
)
from tidegate.driver.connection import Connection
from tidegate.errors import GateError, OptionError, SourceError
from tidegate.sink.memory import MemorySink


def test_a_source_joins_at_the_frontier(tmp_path: Path) -> None:
    first, sink = memory((1, "a", 1), (12, "a", 2)), MemorySink()
    loop = loop_of(plan_of(PASSED), [first], tmp_path, sink)
    drain(loop)
    loop.controls.announce(
        Connection(0, memory((11, "late", 0), (13, "b", 0), (20, "b", 1), id="second"))
    )
    first.append(table((30, "a", 3)))
    drain(loop)
    assert loop.manifest.counters["rows_late"] == 1
    assert rows_of(sink) == [(1.0, "a", 1), (12.0, "a", 2), (13.0, "b", 0)]
    loop.close()


def test_a_promise_below_the_frontier_is_refused_and_the_query_goes_on(tmp_path: Path) -> None:
    first = memory((1, "a", 1), (12, "a", 2))
    loop = loop_of(plan_of(PASSED), [first], tmp_path)
    drain(loop)
    with pytest.raises(GateError, match="from 12000000 us on; got a promise of 11000000 us"):
        loop.controls.announce(Connection(0, memory(id="second")), 11_000_000)
    with pytest.raises(GateError, match=r"source x: must be known.*There are: memory"):
        loop.controls.remove("x")
    first.append(table((30, "a", 3)))
    assert drain(loop) == 1
    loop.close()


def test_a_source_leaves_and_what_was_read_of_it_is_flushed(tmp_path: Path) -> None:
    first, slow, sink = memory((1, "a", 1), (12, "a", 2)), memory((3, "b", 1), id="b"), MemorySink()
    loop = loop_of(plan_of(PASSED), [first, slow], tmp_path, sink)
    drain(loop)
    assert rows_of(sink) == [(1.0, "a", 1)]
    loop.controls.remove("b")
    slow.append(table((4, "b", 2)))
    drain(loop)
    assert rows_of(sink) == [(1.0, "a", 1), (3.0, "b", 1)]
    loop.close()
    first.append(table((40, "a", 3)))
    again = loop_of(plan_of(PASSED), [first, slow], tmp_path, sink)
    drain(again)
    assert rows_of(sink)[2:] == [(12.0, "a", 2)]
    assert again.manifest.frontier_us == 40_000_000
    again.close()


def test_an_announced_uri_is_opened_again_after_a_restart(tmp_path: Path) -> None:
    first = csv(tmp_path / "a.csv", (1, "a", 1), (12, "a", 2))
    second = csv(tmp_path / "b.csv", (13, "b", 1), (22, "b", 2))
    sink, plan = MemorySink(), plan_of(COUNTS)
    loop = loop_of(plan, [opened(first)], tmp_path / "c", sink, follow=True)
    drain(loop)
    loop.controls.announce(opened(second))
    csv(tmp_path / "a.csv", (31, "a", 3), more=True)
    drain(loop)
    assert loop.manifest.frontier_us == 22_000_000
    loop.close()
    csv(tmp_path / "a.csv", (55, "a", 3), more=True)
    csv(tmp_path / "b.csv", (52, "b", 3), more=True)
    again = loop_of(plan, [opened(first)], tmp_path / "c", sink, follow=True)
    drain(again)
    again.close()
    assert again.manifest.frontier_us == 52_000_000
    assert again.manifest.counters["rows_in"] == 7
    assert rows_of(sink) == [
        (0.0, 10.0, "a", 1, 1),
        (10.0, 20.0, "a", 2, 1),
        (10.0, 20.0, "b", 1, 1),
        (20.0, 30.0, "b", 2, 1),
        (30.0, 40.0, "a", 3, 1),
    ]


def test_an_announced_uri_that_is_gone_after_a_restart_is_named(tmp_path: Path) -> None:
    first = csv(tmp_path / "a.csv", (1, "a", 1), (12, "a", 2))
    second = csv(tmp_path / "b.csv", (13, "b", 1))
    plan = plan_of(COUNTS)
    loop = loop_of(plan, [opened(first)], tmp_path / "c")
    drain(loop)
    loop.controls.announce(opened(second))
    drain(loop)
    loop.close()
    Path(second).unlink()
    with pytest.raises(SourceError, match=r"b\.csv"):
        loop_of(plan, [opened(first)], tmp_path / "c")


def test_a_uri_announced_twice_is_read_once(tmp_path: Path) -> None:
    first = csv(tmp_path / "a.csv", (1, "a", 1), (12, "a", 2))
    second = csv(tmp_path / "b.csv", (13, "b", 1))
    plan = plan_of(COUNTS)
    loop = loop_of(plan, [opened(first)], tmp_path / "c")
    for uri in (first, second, second):
        loop.controls.announce(opened(uri))
    drain(loop)
    loop.close()
    again = loop_of(plan, [opened(first)], tmp_path / "c")
    again.controls.announce(opened(second))
    drain(again)
    again.close()
    assert again.manifest.counters["rows_in"] == 3


def test_the_output_waits_for_a_memory_source_that_is_not_announced_again(
    tmp_path: Path,
) -> None:
    first, second = memory((1, "a", 1), (12, "a", 2)), memory((13, "b", 1), id="second")
    sink, plan = MemorySink(), plan_of(COUNTS)
    loop = loop_of(plan, [first], tmp_path, sink)
    drain(loop)
    loop.controls.announce(Connection(0, second))
    drain(loop)
    loop.close()
    first.append(table((60, "a", 3)))
    again = loop_of(plan, [first], tmp_path, sink)
    drain(again)
    assert again.manifest.frontier_us == 12_000_000
    second.append(table((30, "b", 2)))
    again.controls.announce(Connection(0, second))
    drain(again)
    assert again.manifest.frontier_us == 30_000_000
    second.end()
    first.end()
    drain(again)
    again.close()
    assert again.manifest.finished
    assert rows_of(sink) == [
        (0.0, 10.0, "a", 1, 1),
        (10.0, 20.0, "a", 2, 1),
        (10.0, 20.0, "b", 1, 1),
        (30.0, 40.0, "b", 2, 1),
        (60.0, 70.0, "a", 3, 1),
    ]


def test_what_joined_is_in_the_manifest(tmp_path: Path) -> None:
    first = csv(tmp_path / "a.csv", (1, "a", 1), (12, "a", 2))
    second = csv(tmp_path / "b.csv", (13, "b", 1))
    loop = loop_of(plan_of(COUNTS), [opened(first)], tmp_path / "c")
    loop.controls.announce(opened(second))
    drain(loop)
    loop.close()
    (newest,) = (tmp_path / "c" / "manifest").glob("*.json")
    sources = json.loads(newest.read_text())["sources"]
    assert [(s["inlet"], s["id"], s.get("uri")) for s in sources] == [
        (0, first, None),
        (-1, second, second),
    ]


def test_nothing_joins_a_query_that_has_finished(tmp_path: Path) -> None:
    loop = loop_of(plan_of(COUNTS), [memory((1, "a", 1), end=True)], tmp_path)
    loop.run()
    with pytest.raises(OptionError, match="needs a query that runs; got one that has finished"):
        loop.controls.announce(Connection(0, memory(id="second")))
