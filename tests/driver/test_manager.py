"""A policy at work: its requests, its memory through manifests, and what it cannot break."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate as tg
from tests.driver.scene import COUNTS, Row, csv, drain, loop_of, opened, plan_of
from tidegate.driver.manager import Manager, together
from tidegate.elastic.fixed import Fixed
from tidegate.elastic.policy import Decision
from tidegate.elastic.request import Request, Scale
from tidegate.elastic.scripted import Scripted
from tidegate.elastic.threshold import Threshold
from tidegate.errors import OptionError
from tidegate.model.observation import InstanceLoad, Observation
from tidegate.route.mapping import even
from tidegate.sink.memory import MemorySink

HASTY: dict[str, Any] = {
    "batches": 1,
    "seconds": 0.0,
    "cooldown": 0,
    "improvement": 0.0,
    # A machine with much else to do gives it little of the time that passes.
    "upper": 0.02,
    "target": 0.01,
    "lower": 0.001,
}
ROWS: list[Row] = [(float(i), "abcd"[i % 4], i) for i in range(120)]


class Counting:
    """Remembers how many batches it has seen, and asks for another instance at some of them."""

    def __init__(self, name: str = "counting", at: Sequence[int] = ()) -> None:
        self.name = name
        self.at = at
        self.seen: list[int] = []

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        count = memory.get("batches", 0) + 1
        self.seen.append(count)
        one = observed[0].mapping.instances + 1
        asked = [Request(Scale(one), why="it is time")] if observed[0].batch in self.at else []
        return Decision(asked, {"batches": count})


class Failing(Counting):
    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        super().decide(observed, memory)
        raise ZeroDivisionError("no load at all")


def seen(batch: int = 0, subquery: str = "aggregate", load: float = 0.1) -> Observation:
    loads = (InstanceLoad(load, 5), InstanceLoad(load, 6, 7, 8))
    return Observation(subquery, batch, 0.5, 1.0, even(8, 2), loads, np.full(8, load / 4))


def manager(policy: Any, *waiting: str, shared: bool = False) -> tuple[Manager, list[Request]]:
    asked: list[Request] = []
    return Manager(policy, asked.append, lambda: waiting, lambda: 4, shared), asked


def test_requests_are_signed_and_get_slots() -> None:
    class Filling(Counting):
        def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
            return Decision([Request(Scale(observed[0].slots or 1), "aggregate", "me", "room")])

    manage, asked = manager(Filling("filling"))
    manage.after_batch([seen()])
    assert asked == [Request(Scale(4), "aggregate", "policy filling", "room")]


def test_what_a_user_has_asked_for_goes_before() -> None:
    manage, asked = manager(Counting(at=(0,)), "aggregate")
    manage.after_batch([seen()])
    assert asked == []
    manage, asked = manager(Scripted({0: [Request(Scale(3), "join")]}), "aggregate")
    manage.after_batch([seen()])
    assert [request.subquery for request in asked] == ["join"]


def test_subqueries_on_the_same_instances_are_decided_as_one() -> None:
    manage, asked = manager(Scripted({0: [Request(Scale(3), "a, b")]}), shared=True)
    manage.after_batch([seen(subquery="a"), seen(subquery="b", load=0.3)])
    assert [request.subquery for request in asked] == [None]
    one = together([seen(subquery="a"), seen(subquery="b", load=0.3)])
    assert one.subquery == "a, b"
    assert one.utilisation.tolist() == pytest.approx([0.4, 0.4])
    assert one.instances[1] == InstanceLoad(0.4, 12, 14, 16)
    assert one.buckets.sum() == pytest.approx(0.8)


def test_memory_belongs_to_a_name() -> None:
    manage, _ = manager(Counting())
    manage.after_batch([seen()])
    recorded = manage.recorded()
    assert recorded == {"name": "counting", "memory": {"batches": 1}}
    again, _ = manager(policy := Counting())
    again.enter(recorded)
    again.after_batch([seen(1)])
    assert policy.seen == [2]
    other, _ = manager(policy := Counting("other"))
    other.enter(recorded)
    other.after_batch([seen(1)])
    assert policy.seen == [1]
    fixed, _ = manager(Fixed())
    fixed.enter(recorded)
    fixed.after_batch([seen(1)])
    assert fixed.recorded() == {}


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (
            Decision(memory={"at": {1, 2}}),
            "decide: memory must be a dict of plain data, as JSON has it; got Object of type set",
        ),
        (
            Decision(memory={"at": float("nan")}),
            "decide: memory must be a dict of plain data, as JSON has it; got Out of range float",
        ),
        (None, "decide: must return a Decision; got None. The query goes on"),
        (
            Decision(["scale 4"]),  # type: ignore[list-item]
            "decide: must ask by a Request; got 'scale 4'. Write for example Request(Scale(4)).",
        ),
    ],
    ids=["set", "nan", "none", "text"],
)
def test_what_is_no_decision_is_told(
    decision: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Wrong(Counting):
        def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
            return decision  # type: ignore[no-any-return]

    manage, asked = manager(Wrong("wrong"))
    manage.enter({"name": "wrong", "memory": {"kept": 1}})
    for batch in range(3):
        manage.after_batch([seen(batch)])
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith(f"policy wrong: failed after batch 0: {said}")
    assert asked == []
    assert manage.recorded()["memory"] == {"kept": 1}


def test_a_request_that_cannot_be_is_told_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(request: Request) -> None:
        raise OptionError("scale", "needs at least one instance", "0")

    manage = Manager(Scripted({0: [Request(Scale(0))]}), refuse, lambda: (), lambda: None)
    manage.after_batch([seen()])
    (record,) = caplog.records
    assert record.getMessage() == (
        "policy scripted: failed after batch 0: scale: needs at least one instance; got 0. The "
        "query goes on with the instances it has. The policy is asked again after every batch; "
        "further failures are not logged."
    )
    assert record.exc_info is None
    assert manage.failure == "scale: needs at least one instance; got 0."


def run(folder: Path, policy: Any = None, **options: Any) -> tuple[MemorySink, Any]:
    """All rows in batches of ten; the sink and the loop, which is closed."""
    sink = MemorySink()
    uri = csv(folder / "rows.csv", *ROWS)
    options = {"batch_rows": 10, "instances": 1, "policy": policy or Fixed(), **options}
    loop = loop_of(plan_of(COUNTS), [opened(uri, False)], folder / "ckpt", sink, **options)
    drain(loop)
    loop.close()
    return sink, loop


def test_its_switches_are_in_the_timeline_and_change_no_row(tmp_path: Path) -> None:
    for name in ("fixed", "counting"):
        (tmp_path / name).mkdir()
    plain, _ = run(tmp_path / "fixed")
    sink, loop = run(tmp_path / "counting", Counting(at=(2, 5)))
    assert sink.table().equals(plain.table())
    assert loop.manifest.policy == {"name": "counting", "memory": {"batches": loop.manifest.batch}}
    said = [(e["batch"], e["instances"], e["by"], e["why"]) for e in loop.manifest.epochs[1:]]
    by = "policy counting"
    assert said == [(3, 2, by, "it is time"), (6, 3, by, "it is time")]


def test_a_restart_goes_on_with_what_it_remembers(tmp_path: Path) -> None:
    uri, sink = csv(tmp_path / "rows.csv", *ROWS), MemorySink()

    def loop(policy: Any) -> Any:
        options = {"batch_rows": 10, "instances": 1, "policy": policy}
        return loop_of(plan_of(COUNTS), [opened(uri, False)], tmp_path / "ckpt", sink, **options)

    first = loop(policy := Counting())
    for _ in range(4):
        first.step()
    first.close()
    assert policy.seen == [1, 2, 3, 4]
    assert first.manifest.policy["memory"] == {"batches": 3}, "that of the batch before"
    second = loop(policy := Counting())
    second.step()
    second.step()
    second.close()
    assert policy.seen == [4, 5]
    third = loop(policy := Counting("another"))
    third.step()
    third.close()
    assert policy.seen == [1]


def test_a_policy_that_raises_kills_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("fixed", "failing"):
        (tmp_path / name).mkdir()
    plain, _ = run(tmp_path / "fixed")
    sink, loop = run(tmp_path / "failing", policy := Failing("failing"))
    assert sink.table().equals(plain.table())
    assert len(policy.seen) > 3, "it is asked again"
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert "ZeroDivisionError: no load at all. The query goes on" in record.getMessage()
    assert record.exc_info is not None
    assert loop.manifest.finished


def test_a_query_that_catches_up_gets_more_instances(tmp_path: Path) -> None:
    """As fast as it can: an instance does nothing but work."""
    policy = Threshold(**HASTY, maximum=2)
    _, loop = run(tmp_path, policy, slots=1)
    assert loop.manifest.instances == 2
    entry = loop.manifest.epochs[1]
    assert entry["by"] == "policy threshold"
    assert entry["why"].startswith("average utilisation ")
    assert entry["why"].endswith(" of what batches leave, above 0.02: 1 -> 2 instances")


def test_the_cores_of_the_place_are_the_limit(tmp_path: Path) -> None:
    policy = tg.policy.threshold(**HASTY)
    _, loop = run(tmp_path, policy, slots=2)
    assert loop.manifest.instances == 2


class Recording(Threshold):
    """Thresholds that keep what they were shown, and what they decided."""

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        decision = super().decide(observed, memory)
        TRACE.append((list(observed), memory, decision))
        return decision


TRACE: list[tuple[list[Observation], Mapping[str, Any], Decision]] = []


def test_a_recorded_run_is_decided_again_in_the_same_way(tmp_path: Path) -> None:
    TRACE.clear()
    _, loop = run(tmp_path, Recording(**HASTY, maximum=3))
    assert len(TRACE) == loop.manifest.batch, "after every batch but the last"
    assert sum(len(decision.requests) for _, _, decision in TRACE) > 0
    memory: Mapping[str, Any] = {}
    for observed, known, decision in TRACE:
        assert known == memory
        again = Threshold(**HASTY, maximum=3).decide(observed, known)
        assert again == decision
        memory = again.memory
