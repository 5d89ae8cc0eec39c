"""Executors that follow the instances, with a cluster manager of the test's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tidegate import schedule
from tidegate.errors import OptionError
from tidegate.execute.spark import executors as executors_module
from tidegate.execute.spark.executors import Executors, executors_of
from tidegate.testing import ManualClock


class Ids(list[str]):
    """A sequence of Scala's."""

    apply = list.__getitem__

    def size(self) -> int:
        return len(self)


class Cluster:
    """What is asked of a Spark context; executors of one slot, and room for so many."""

    master = "spark://there:7077"

    def __init__(self, room: int, there: int, conf: dict[str, str] | None = None) -> None:
        self.room = room
        self.there = [str(n) for n in range(there)]
        self.busy: set[str] = set()
        self.ending: list[str] = []
        """Released, and still listed."""
        self.conf = conf or {}
        self.limit: int | None = None
        self.calls: list[str] = []
        self._jsc: Any = self
        self._jvm: Any = self
        self.PythonUtils = self.java = self.util = self

    def grow(self) -> None:
        """Time for the cluster manager to start executors."""
        while len(self.there) < min(self.room, self.limit or self.room):
            self.there.append(str(max(map(int, self.there)) + 1))

    def getConf(self) -> Any:
        return self

    def getAll(self) -> list[tuple[str, str]]:
        return list(self.conf.items())

    def sc(self) -> Any:
        return self

    schedulerBackend = sc

    def HashMap(self) -> dict[str, int]:
        return {}

    def toScalaMap(self, given: Any) -> Any:
        return given

    toSeq = toScalaMap

    def getExecutorIds(self) -> Ids:
        self.calls.append("look")
        return Ids([*self.there, *self.ending])

    def requestTotalExecutors(self, count: int, local: int, hosts: Any) -> bool:
        self.limit = count
        self.calls.append(f"{count} executors")
        return True

    def killExecutors(self, ids: list[str], adjust: bool, failures: bool, force: bool) -> Ids:
        assert not force
        idle = Ids(i for i in ids if i not in self.busy)
        self.there = [i for i in self.there if i not in idle]
        self.ending = list(idle)
        self.calls.append(f"released {' '.join(idle)}")
        return idle


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    made = ManualClock()
    monkeypatch.setattr(schedule.current(), "clock", made)
    return made


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> Callable[..., Any]:
    monkeypatch.setattr(executors_module, "slots_of", lambda context: len(context.there))
    return Cluster


def nothing() -> None:
    """No tasks stay."""


def test_they_follow_up_and_down(on: Callable[..., Any], clock: ManualClock) -> None:
    cluster = on(room=4, there=2)
    executors = Executors(cluster)
    assert executors.follow(1, lambda: cluster.calls.append("let go"))
    assert cluster.calls == ["look", "1 executors", "let go", "released 1"]
    clock.advance(2)
    assert not executors.follow(1, lambda: cluster.calls.append("let go"))
    assert cluster.calls[4:] == ["look"]
    cluster.ending.clear()
    executors.follow(3, nothing)
    assert executors.counts() == {"wanted": 3, "there": 1}
    cluster.grow()
    clock.advance(2)
    assert executors.follow(3, nothing)
    assert executors.counts() == {"wanted": 3, "there": 3}


def test_nothing_is_asked_while_nothing_changes(on: Callable[..., Any]) -> None:
    cluster = on(room=4, there=2)
    executors = Executors(cluster)
    for _ in range(100):
        executors.follow(2, nothing)
    assert cluster.calls == ["look", "2 executors"]


def test_one_that_is_busy_is_released_later(on: Callable[..., Any], clock: ManualClock) -> None:
    cluster = on(room=3, there=3)
    cluster.busy = {"2"}
    executors = Executors(cluster)
    executors.follow(1, nothing)
    assert cluster.there == ["0", "2"]
    cluster.busy.clear()
    clock.advance(2)
    executors.follow(1, nothing)
    assert cluster.there == ["0"]


def test_what_cannot_be_had_is_told_once(
    on: Callable[..., Any], clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = on(room=2, there=2)
    executors = Executors(cluster)
    for _ in range(30):
        executors.follow(4, nothing)
        cluster.grow()
        clock.advance(2)
    (told,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert told.startswith(
        "spark://there:7077: 4 executors are wanted, and 2 have come in 12 s. The query goes on"
    )
    assert executors.counts() == {"wanted": 4, "there": 2}


def test_queries_of_one_application_add_up(on: Callable[..., Any], clock: ManualClock) -> None:
    cluster = on(room=9, there=4)
    one, two = Executors(cluster), Executors(cluster, more=1)
    one.follow(2, nothing)
    two.follow(2, nothing)
    assert cluster.limit == 5
    two.close()
    clock.advance(2)
    one.follow(2, nothing)
    assert cluster.limit == 2


@pytest.mark.parametrize(
    ("conf", "part"),
    [
        ({"spark.tidegate.executors": "more"}, "must be fixed or follow; got more"),
        (
            {"spark.tidegate.executors": "follow", "spark.dynamicAllocation.enabled": "true"},
            "needs spark.dynamicAllocation.enabled=false; got spark.dynamicAllocation.enabled=true",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(conf: dict[str, str], part: str) -> None:
    context: Any = Cluster(1, 1, conf)
    with pytest.raises(OptionError) as caught:
        executors_of(context)
    assert part in str(caught.value)


def test_only_who_asks_for_it_has_it(caplog: pytest.LogCaptureFixture) -> None:
    plain: Any = Cluster(1, 1)
    assert executors_of(plain) is None
    local: Any = Cluster(1, 1, {"spark.tidegate.executors": "follow"})
    local.master = "local[6,4]"
    assert executors_of(local) is None
    assert "has no effect on local[6,4]" in caplog.text
