"""The streams that the tests of query, sql and plan ask."""

from __future__ import annotations

import pyarrow as pa

from tidegate.query.node.node import Node, StreamDef
from tidegate.query.output import single
from tidegate.query.stream import Stream
from tidegate.schema import TIME
from tidegate.sql.bind import bind, read_script

RIDES = StreamDef(
    "rides",
    ("rides.parquet",),
    "dropoff_time",
    0,
    None,
    pa.schema(
        [
            ("dropoff_time", TIME),
            ("route", pa.string()),
            ("fare", pa.float64()),
            ("tip", pa.int32()),
            ("paid", pa.bool_()),
            ("stops", pa.list_(pa.string())),
        ]
    ),
)
CALLS = StreamDef(
    "calls",
    ("a.csv", "b.csv"),
    "ts",
    2_000_000,
    60_000_000,
    pa.schema([("ts", TIME), ("route", pa.string()), ("fare", pa.int32())]),
)
PLACE = pa.struct([("city", pa.string())])
ODD = StreamDef(
    "odd",
    (),
    "at",
    0,
    None,
    pa.schema([("at", pa.int64()), ("ts", pa.string()), ("Ab", TIME), ("place", PLACE)]),
)
STREAMS = {s.name: s for s in (RIDES, CALLS, ODD)}


def sql(text: str) -> Node:
    """The logical plan of a query over these streams."""
    return single(bind(read_script(text), STREAMS))


def outputs(text: str) -> dict[str | None, Node]:
    """The logical plans of a script over these streams, by the name of the output."""
    return {o.name: o.node for o in bind(read_script(text), STREAMS)}


def stream(node: Node) -> Stream:
    """The fluent surface over a node; start and explain give back what they were called with."""
    return Stream(node, lambda n, **options: (n, options), lambda n: f"explained {n.names}")
