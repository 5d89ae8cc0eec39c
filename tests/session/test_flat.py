"""A query that goes on for ever leaves nothing behind in its processes, batch by batch."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tidegate as tg
from tidegate.driver.journal import journal
from tidegate.driver.report import latency, observe
from tidegate.driver.report.metrics import Reports

_BATCHES, _ROWS = 128, 5
_MIDDLE, _END = range(20, 36), range(108, 124)
_RIDES = f"generator:taxi?rows={_BATCHES * _ROWS}&rate=10&seed=7&keys=20"


class Rides(tg.Process):
    """How many rides each route has had."""

    output: ClassVar = {"rides": "bigint"}

    def __init__(self) -> None:
        self.rides: dict[str, int] = {}

    def on_tuple(self, ride: Any, routes: list[str]) -> dict[str, int]:
        for route in routes:
            self.rides[route] = self.rides.get(route, 0) + 1
        return {"rides": sum(self.rides[route] for route in routes)}


def windows(rides: Any) -> Any:
    return rides.window("5 seconds", slide="1 second").group_by("route").agg(n=tg.count())


def pairs(rides: Any) -> Any:
    joined = rides.join(rides, within="2 seconds", on=tg.left.route == tg.right.route)
    return joined.select(tg.left.route)


def counts(rides: Any) -> Any:
    return rides.process(Rides, keys="route")


@pytest.fixture
def only_new() -> Iterator[None]:
    """Let the collector forget what there is already: looks are quick then."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("only_new")
@pytest.mark.parametrize("query", [windows, pairs, counts])
def test_objects_do_not_grow_with_batches(
    query: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the middle of a run to its end; what is kept of newest batches, which is bounded, aside.

    Segments come and go, and so does what other threads have in hand: the least of many looks
    counts. That of the middle is there before the end is looked at.
    """
    monkeypatch.setattr(Reports, "append", lambda self, report: None)
    monkeypatch.setattr(journal.Journal, "committed", lambda self, batch: None)
    monkeypatch.setattr(observe, "_MOST_WAITING", 1)
    monkeypatch.setattr(latency, "RECENT_BATCHES", 8)
    least: dict[range, Counter[str]] = {}

    def look(step: str, batch: int) -> None:
        when = next((batches for batches in (_MIDDLE, _END) if batch in batches), None)
        if step == "before gate" and when is not None:
            gc.collect()
            found = Counter(type(o).__qualname__ for o in gc.get_objects())
            least[when] = least[when] & found if when in least else found

    stream = tg.Session(master="none").stream(_RIDES, time="dropoff_time")
    query(stream).start(
        sink=tg.sink.files(str(tmp_path / "out")),
        checkpoint=str(tmp_path / "checkpoint"),
        batch_rows=_ROWS,
        buckets=4,
        instances=2,
        observer=look,
    ).wait()
    more = least[_END] - least[_MIDDLE]
    assert more.total() < (_END[0] - _MIDDLE[0]) // 2, more.most_common(8)
