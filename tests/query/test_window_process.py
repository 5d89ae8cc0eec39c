"""A process over windows as a node: what its rows are, and what cannot be built."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tests.query.catalog import CALLS, ODD, RIDES, stream
from tidegate.errors import QueryError
from tidegate.operate.process.definition import Process
from tidegate.query.expression import col, left
from tidegate.query.node.node import Input, data_names
from tidegate.query.node.window_process import WindowProcess
from tidegate.schema import TIME

rides = stream(Input(RIDES))
calls = stream(Input(CALLS))


class Fares(Process):
    output = {"n": "bigint", "most": "double"}  # noqa: RUF012
    mergeable = True

    def __init__(self, least: int = 0) -> None:
        self.least = least

    def on_tuple(self, tuple: Any, keys: list[Any]) -> None: ...

    def merge(self, other: Fares) -> None: ...

    def finish(self) -> None: ...


class Plain(Process):
    output = {"n": "bigint"}  # noqa: RUF012

    def on_tuple(self, tuple: Any, keys: list[Any]) -> None: ...


class Alone(Plain):
    mergeable = True


class Endless(Alone):
    def merge(self, other: Endless) -> None: ...


class Timed(Fares):
    def on_frontier(self, ts: Any) -> None: ...


class Placed(Fares):
    order = "n"


class Eager(Fares):
    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        yield {"n": 1, "most": 2.0}


class Keyed(Fares):
    output = {"Route": "string", "n": "bigint"}  # noqa: RUF012


def node_of(made: Any) -> WindowProcess:
    assert isinstance(made.node, WindowProcess)
    return made.node


def test_its_rows_are_the_window_the_keys_and_the_output() -> None:
    hourly = rides.window("1 hour").group_by("route", cheap=col("fare") < 3)
    node = node_of(hourly.partition("cam").process(partial(Fares, least=2)))
    assert node.names == ("window_start", "window_end", "route", "cheap", "n", "most")
    keys = [("window_start", TIME), ("window_end", TIME), ("route", "string"), ("cheap", "bool")]
    assert node.schema == pa.schema([*keys, ("n", "int64"), ("most", "float64")])
    assert (node.windowed, node.stateful, node.event_names) == (True, True, frozenset())
    assert node.summary.endswith("by route, cheap = fare < 3: Fares, partitioner cam")
    assert node.process.identity.endswith("test_window_process.Fares(least=2)")


def test_an_object_sees_all_columns_and_the_keys_by_their_names() -> None:
    seen = node_of(rides.window("1 hour").group_by(cheap=col("fare") < 3).process(Fares)).process
    assert seen.columns == (*data_names(Input(RIDES)), "cheap")
    assert seen.keys == ("cheap",)
    whole = node_of(rides.window("1 hour").group_by(fare=col("fare") / 2).process(Fares)).process
    assert whole.columns == data_names(Input(RIDES))
    again = rides.window("1 hour").group_by("route").process(Fares).window("1 day")
    assert node_of(again.process(Fares)).process.columns == (
        "window_start", "window_end", "route", "n", "most",
    )  # fmt: skip


def test_after_a_join_the_columns_have_their_own_names() -> None:
    pairs = rides.select("route", "fare").join(
        calls.select(line="route"), within=60, on=left.fare > 1
    )
    found = node_of(pairs.window("1 hour").group_by("line").process(Fares))
    assert found.process.columns == ("route", "fare", "line")


def test_rows_are_filtered_ordered_and_limited_as_those_of_aggregates() -> None:
    made = rides.window("1 hour").group_by("route").process(Fares)
    last = made.where(col("n") > 2).top(3, by="most").select("route", half=col("n") / 2)
    assert last.columns == ("window_start", "window_end", "route", "half")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            lambda: rides.window("1 hour").group_by("route").partition("pk").process(Plain),
            r"process Plain: over windows must be mergeable, .*; got a class without mergeable",
        ),
        (lambda: rides.window("1 hour").process(Alone), r"must have a method merge\(other\)"),
        (lambda: rides.window("1 hour").process(Endless), r"must have a method finish\(\)"),
        (lambda: rides.window("1 hour").process(Timed), r"has no timers.*; got on_frontier"),
        (lambda: rides.window("1 hour").process(Placed), r"order = 'n'\. Write \.order_by"),
        (lambda: rides.window("1 hour").process(Eager), r"on_tuple .* must give no rows.*yield"),
        (
            lambda: rides.window(rows=10).group_by("route").process(Fares),
            r"process Fares: is for windows of time",
        ),
        (
            lambda: rides.window("1 hour").group_by("route").process(Keyed),
            r"process Keyed output: window and keys are columns .*; got a column Route",
        ),
        (
            lambda: rides.process(Fares, keys="route"),
            r"at the ends of windows; got a stream without a window\. Write stream\.window",
        ),
        (lambda: rides.window("1 hour").process(Fares()), r"needs a class, .* an object of Fares"),
        (
            lambda: stream(Input(ODD)).window("1 hour").process(Fares),
            r"the name ts belongs to the event time",
        ),
        (
            lambda: rides.window("1 hour").process(Fares).within(error=0.1),
            r"what a process of one's own makes of a sample is not known; got process .*Fares",
        ),
        (
            lambda: rides.window("1 hour").process(Fares).shed(0.5),
            r"what a process of one's own makes of some of the tuples is not known; got process",
        ),
    ],
)
def test_what_cannot_be_built(build: Any, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        build()
