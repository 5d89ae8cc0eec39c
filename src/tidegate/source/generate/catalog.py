"""The generators of this package: a line for each name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.source.generate.band import r, s
from tidegate.source.generate.calls import calls
from tidegate.source.generate.packets import packets
from tidegate.source.generate.tasks import tasks
from tidegate.source.generate.taxi import taxi
from tidegate.source.generate.tpch import lineitem, orders
from tidegate.source.generate.trades import trades
from tidegate.source.generate.tweets import tweets
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters


@dataclass(frozen=True)
class Item:
    """One generator: its name, what it makes in a line, and how it is made."""

    name: str
    summary: str
    make: Callable[[Parameters], SpanGenerator]


CATALOG = (
    Item("taxi", "taxi rides (DEBS 2015)", taxi),
    Item("calls", "call records of a mobile network (StreamCloud)", calls),
    Item("tasks", "task events of a cluster (Google trace)", tasks),
    Item("packets", "network packets (DEC trace)", packets),
    Item("trades", "stock trades with the average to compare with (hedge join)", trades),
    Item("r", "left side of the band-join benchmark (ScaleJoin)", r),
    Item("s", "right side of the band-join benchmark (ScaleJoin)", s),
    Item("tweets", "short messages with hashtags", tweets),
    Item("orders", "TPC-H orders by the time they were placed", orders),
    Item("lineitem", "TPC-H lineitems by the time they were shipped", lineitem),
)
