"""A struct column that has the name of its stream, resolved as Spark resolves it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.errors import QueryError
from tidegate.plan.lowering.lower import lower
from tidegate.query.definition import StreamDef
from tidegate.query.node.node import Node
from tidegate.query.output import single
from tidegate.schema import TIME
from tidegate.sql.bind import bind, read_script

INNER = pa.struct([("x", pa.int64()), ("y", pa.int64()), ("s", pa.struct([("x", pa.int32())]))])
STREAMS = {
    "s": StreamDef(
        "s", (), "ts", 0, None, pa.schema([("ts", TIME), ("s", INNER), ("y", pa.string())])
    ),
    "t": StreamDef("t", (), "ts", 0, None, pa.schema([("ts", TIME), ("k", pa.int64())])),
}


def query(text: str) -> Node:
    node = single(bind(read_script(text), STREAMS))
    lower(node)
    return node


def test_a_field_where_the_stream_has_no_such_column() -> None:
    assert query("SELECT s.x FROM s").schema.field("x").type == pa.int64()
    assert query("SELECT S.X AS a FROM s WHERE s.x > 1").schema.field("a").type == pa.int64()
    assert query("SELECT s.x FROM s AS other").schema.field("x").type == pa.int64()


def test_the_column_of_the_stream_comes_first() -> None:
    assert query("SELECT s.y AS a FROM s").schema.field("a").type == pa.string()
    assert query("SELECT s.s.y AS a FROM s").schema.field("a").type == pa.int64()
    assert query("SELECT s.s.s.x AS a FROM s").schema.field("a").type == pa.int32()


def test_in_groups_and_joins_too() -> None:
    grouped = query("SELECT s.x, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY s.x")
    assert grouped.schema.names == ["window_start", "window_end", "x", "n"]
    joined = query(
        "SELECT s.x, s.y, t.k FROM s [RANGE 1 HOUR] JOIN t [RANGE 1 HOUR] "
        "ON s.x = t.k AND s.y > 'a'"
    )
    assert [str(type_) for type_ in joined.schema.types[1:]] == ["int64", "string", "int64"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT s.z FROM s",
        "SELECT s.z FROM s [RANGE 1 HOUR] JOIN t [RANGE 1 HOUR] ON s.x = t.k",
    ],
)
def test_what_is_neither_is_an_error_that_lists_the_fields(text: str) -> None:
    with pytest.raises(QueryError, match=r"the column must exist; got z\. There are: x, y, s"):
        query(text)
