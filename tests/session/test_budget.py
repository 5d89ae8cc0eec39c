"""Several queries of a session share its instances: by their policies, and by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import tidegate as tg
from tests.driver.scene import memory, table
from tidegate.policy import Decision, Observation, Request, Scale


class Wanting:
    """Asks for so many instances after every batch, as a policy that is late does."""

    name = "wanting"

    def __init__(self, instances: int) -> None:
        self.instances = instances

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        (seen,) = observed
        if seen.mapping.instances == self.instances:
            return Decision()
        return Decision([Request(Scale(self.instances), why="much to do")])


class Saying(Wanting):
    """Asks for nothing, and says what it wants."""

    name = "saying"

    def __init__(self, wanted: Any) -> None:
        self.wanted = wanted

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        return Decision(wanted=self.wanted)


class Mute(Wanting):
    """Can tell no more what it has decided, which is asked when the run ends."""

    name, sheds, known = "mute", False, True

    def told(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        if self.known:
            return {}
        raise ZeroDivisionError("nothing to tell")


class Fed:
    """A query over a source that gets another tuple when it is told to."""

    def __init__(self, session: tg.Session, name: str, **options: Any) -> None:
        self.source, self.second = memory((1, "a", 1)), 10
        self.sink = tg.sink.memory()
        self.most = 0
        self.held, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.session = session
        counted = session.stream(self.source, time="ts", name=name).window(10).agg(n=tg.count())
        self.query = counted.start(sink=self.sink, buckets=16, observer=self.see, **options)

    def see(self, step: str, batch: int) -> None:
        """In a batch: what all queries of the session have; and it may be held there."""
        self.most = max(self.most, self.session._budget.ledger.held)  # type: ignore[union-attr]
        if step == "after operate":
            self.held.set()
            assert self.go_on.wait(300)

    @contextmanager
    def in_batch(self) -> Iterator[None]:
        """A batch runs for as long as the block."""
        self.held.clear()
        self.go_on.clear()
        self.second += 10
        self.source.append(table((self.second, "a", 1)))
        try:
            assert self.held.wait(300)
            yield
        finally:
            self.go_on.set()

    def feed(self) -> None:
        """One batch more."""
        before = self.query.status()["batch"]
        self.second += 10
        self.source.append(table((self.second, "a", 1)))
        until(lambda: self.query.status()["batch"] > before, self.query)

    @property
    def instances(self) -> int:
        return int(self.query.status()["instances"])

    def come_to(self, instances: int) -> None:
        """Some batches more, until it has so many instances: a first batch may show no load."""
        for _ in range(5):
            self.feed()
            if self.instances == instances:
                return
        raise AssertionError(f"has {self.instances}: {self.query.status()['budget']}")

    def finish(self) -> None:
        self.source.end()
        assert self.query.wait().finished


def until(condition: Callable[[], bool], query: tg.RunningQuery) -> None:
    """Wait for the thread to get there; a failure of the query is raised."""
    for _ in range(12_000):
        if condition():
            return
        query.wait(0.01)
    raise AssertionError(f"never came: {query.status()}")


def test_two_queries_share_the_instances_of_their_session() -> None:
    session = tg.Session(master="none", max_instances=8)
    first = Fed(session, "first", policy=Wanting(7))
    first.come_to(7)
    second = Fed(session, "second", policy=Wanting(6))
    second.come_to(4)
    first.feed()
    assert first.instances == 4
    said = first.query.status()["budget"]
    assert said == {"instances": 8, "queries": 2, "held": 4, "wanted": 7, "leaves": 4}
    (*_, cut) = first.query.status()["epochs"]
    assert (cut["by"], cut["why"]) == ("budget", "wanted 7, the budget leaves 4")
    (*_, cut) = second.query.status()["epochs"]
    assert cut["why"] == "much to do; wanted 6, the budget leaves 4"
    settled = [fed.query.status()["epoch"] for fed in (first, second)]
    for _ in range(3):
        first.feed()
        second.feed()
    assert [fed.query.status()["epoch"] for fed in (first, second)] == settled
    summary = first.query.stop()
    assert "budget: 8 instances for 2 queries, 4 held by this one; wanted 7" in summary.text()
    second.come_to(6)
    second.finish()
    assert max(first.most, second.most) <= 8
    assert second.sink.table()["n"].to_pylist() == [1] * (second.sink.table().num_rows)


def test_what_is_asked_for_by_hand_is_refused_beyond_the_budget() -> None:
    session = tg.Session(master="none", max_instances=4)
    first = Fed(session, "first", instances=1)
    second = Fed(session, "second", instances=2)
    first.feed()
    second.feed()
    said = (
        "scale: the queries of this session may have 4 instances together; got 3 for this query, "
        "to which others leave 2. Ask for fewer, scale down or stop another query, or raise "
        "max_instances of the Session."
    )
    with pytest.raises(tg.OptionError, match=said):
        first.query.scale(3)
    assert first.query.status()["pending"] == []
    with pytest.raises(tg.OptionError, match="--instances: the queries of this session may have 4"):
        Fed(session, "third", instances=2)
    first.query.scale(2)
    with pytest.raises(tg.OptionError, match="max_instances: the queries of this session may have"):
        Fed(session, "third", policy=Wanting(2))
    first.query.scale(1)
    third = Fed(session, "third", policy=Wanting(2))
    for _ in range(3):
        third.feed()
    assert third.instances == 1
    for fed in (first, second, third):
        fed.finish()


def test_who_goes_on_by_hand_gives_back_what_another_waits_for() -> None:
    """One has all, and is in a batch when another joins and the policy is taken away."""
    session = tg.Session(master="none", max_instances=4)
    first = Fed(session, "first", policy=Wanting(4))
    first.come_to(4)
    with first.in_batch():
        second = Fed(session, "second", policy=Wanting(3))
        first.query.use("fixed")
        assert second.query.status()["budget"]["held"] == 0
    second.come_to(1)
    first.feed()
    (*_, cut) = first.query.status()["epochs"]
    assert (cut["instances"], cut["by"]) == (3, "budget")
    assert cut["why"] == "wanted 4, the budget leaves 3"
    second.feed()
    assert (first.instances, second.instances) == (3, 1), "nobody takes more of it"
    for fed in (first, second):
        fed.finish()


def test_what_a_policy_says_that_it_wants_counts_in_the_place_of_what_it_asks_for() -> None:
    session = tg.Session(master="none", max_instances=8)
    first = Fed(session, "first", policy=Wanting(7))
    first.come_to(7)
    second = Fed(session, "second", policy=Saying(6))
    second.feed()
    first.come_to(4)
    assert second.instances == 1, "nobody has asked for these instances"
    told = second.query.status()["budget"]
    assert (told["wanted"], told["leaves"]) == (6, 4)
    second.query.use(Saying(2))
    second.feed()
    first.come_to(6)
    for wrong in (0, True, "6"):
        second.query.use(Saying(wrong))
        second.feed()
        said = f"decide: wanted must be a number of instances; got {wrong!r}."
        assert second.query.status()["policy"]["failure"] == said
        assert second.query.status()["budget"]["wanted"] == 2
    for fed in (first, second):
        fed.finish()


def test_a_run_that_ends_with_an_error_of_its_books_gives_back_what_it_held() -> None:
    session = tg.Session(master="none", max_instances=4)
    mute = Mute(4)
    first = Fed(session, "first", policy=mute)
    first.come_to(4)
    mute.known = False
    first.source.end()
    with pytest.raises(ZeroDivisionError, match="nothing to tell"):
        first.query.wait(300)
    assert session._budget.ledger.held == 0  # type: ignore[union-attr]
    second = Fed(session, "second", instances=4)
    second.feed()
    assert second.instances == 4
    first.query._loop.manager.use(Wanting(3))  # as from a socket, in the last moment
    second.finish()


def test_a_budget_is_a_number_of_instances() -> None:
    with pytest.raises(tg.OptionError, match="max_instances: must be a whole number, at least 1"):
        tg.Session(master="none", max_instances=0)
