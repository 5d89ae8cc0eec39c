"""The user's own operator as a node: what its rows are, and what cannot be built."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.query.catalog import CALLS, RIDES, stream
from tidegate.errors import QueryError
from tidegate.operate.process.definition import Process, ProcessSpec
from tidegate.query.aggregate import count
from tidegate.query.expression import call, col, left, lit
from tidegate.query.node.node import Input, Node, data_names
from tidegate.query.node.process import ProcessNode as ProcessNode
from tidegate.query.node.process import named, process
from tidegate.schema import TIME

rides = stream(Input(RIDES))
calls = stream(Input(CALLS))


class Trips(Process):
    output = {"route": "string", "n": "bigint"}  # noqa: RUF012

    def __init__(self, most: int = 3) -> None:
        self.most = most

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        return None


def stops(tuples: pa.Table) -> pa.Array:
    return tuples["stops"]


def few(bucket: int, tuples: pa.Table) -> pa.Array:
    return pc.less(tuples["fare"], 3)


def node_of(made: Any) -> ProcessNode:
    node: Node = made.node
    assert isinstance(node, ProcessNode)
    return node


def test_its_rows_are_the_event_time_and_the_output() -> None:
    node = node_of(rides.process(Trips, keys="Route"))
    assert node.names == ("ts", "route", "n")
    assert node.schema == pa.schema([("ts", TIME), ("route", "string"), ("n", "int64")])
    assert node.event_names == {"ts"}
    assert data_names(node) == ("route", "n")
    assert (node.windowed, node.stateful, node.children) == (False, True, (Input(RIDES),))
    assert node.keys == ("route",)
    assert node == process(Input(RIDES), Trips, ["route"])
    assert hash(node) == hash(process(Input(RIDES), Trips, "route"))


def test_other_operators_go_above_and_below_it() -> None:
    made = rides.where(col("fare") > 0).process(Trips).where(col("n") > 2).select("n")
    assert made.columns == ("ts", "n")
    hourly = rides.window("1 hour").group_by("route").agg(n=count())
    node = node_of(hourly.process(Trips, keys=["route", "n"]))
    assert node.columns == ("window_start", "window_end", "route", "n")
    again = rides.process(Trips).window("1 hour").group_by("route").agg(n=count())
    assert again.columns == ("window_start", "window_end", "route", "n")


def test_after_a_join_the_columns_have_their_own_names() -> None:
    pairs = rides.select("route", "fare").join(
        calls.select(line="route"), within=60, on=left.fare > 1
    )
    assert node_of(pairs.process(Trips, keys="line")).columns == ("route", "fare", "line")


def test_what_runs() -> None:
    node = node_of(rides.process(Trips, keys="stops", filter=few))
    spec = node.spec()
    assert isinstance(spec, ProcessSpec)
    assert [name for name, _ in spec.columns] == list(RIDES.schema.names)
    assert spec.name == "Trips"
    assert spec.key == pa.string()
    assert spec.filter is few
    assert node_of(rides.process(Trips, keys=stops)).spec().key == pa.string()
    assert node_of(rides.process(Trips, keys=["route", "tip"])).spec().key is None
    assert node_of(rides.process(Trips)).spec().keys is None


def test_types_that_only_spark_knows_come_later() -> None:
    unknown = rides.select(x=call("regexp_extract", "route", lit("a"), 1))
    node = node_of(unknown.process(Trips, keys="x"))
    assert node.spec({"x": pa.string()}).columns == (("x", pa.string()),)
    with pytest.raises(QueryError, match="x must be a plain value"):
        node.spec({"x": pa.struct([("a", pa.int8())])})


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("int", pa.int32()),
        ("DOUBLE", pa.float64()),
        ("timestamp", TIME),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("array<array<bigint>>", pa.list_(pa.list_(pa.int64()))),
        (pa.large_string(), pa.string()),
        (pa.uint8(), pa.int16()),
    ],
)
def test_types_of_the_output(written: Any, type_: pa.DataType) -> None:
    def made() -> Process:
        trips = Trips()
        trips.output = {"x": written}  # type: ignore[misc]
        return trips

    assert process(Input(RIDES), made).output == (("x", type_),)
    if isinstance(written, pa.DataType):
        kind = type("Other", (Trips,), {"output": pa.schema([("x", written)])})
        assert process(Input(RIDES), kind).output == (("x", type_),)


def test_its_identity_is_the_same_in_every_process() -> None:
    here = "tests.query.test_process."
    node = node_of(rides.process(partial(Trips, most=5), keys=stops, filter=few))
    assert node.class_name == "Trips"
    assert node.identity == (
        f"process {here}Trips(most=5) keys {here}stops filter {here}few "
        "output route string, n int64"
    )
    assert named(Trips) == f"{here}Trips"
    assert node_of(rides.process(Trips, keys="route")).identity.count("keys ('route',) filter None")

    def declaring(self: Any) -> None:
        self.state.map("all")
        self.state.map("seen", ttl="2 minutes")
        self.state.value("last", ttl=timedelta(seconds=1))

    told = process(Input(RIDES), kind(__init__=declaring, on_tuple=method)).identity
    assert told.endswith(" state map seen for 2 minutes, value last for 1 second")
    with pytest.raises(QueryError, match="a parameter must print the same in every process"):
        named(partial(Trips, object()))


def kind(**members: Any) -> type[Process]:
    return type("Kind", (Process,), {"output": {"n": "int"}, **members})


def method(*_: Any) -> None:
    return None


def needy(self: Any, x: int) -> None:
    return None


def expiring(self: Any) -> None:
    self.seen = self.state.map("seen", ttl="1 hour")


def two_states(self: Any) -> None:
    self.one, self.two = self.state.value("x"), self.state.map("x")


def texts(self: Any) -> None:
    self.names = self.state.columns("names", {"name": "string"})


def timed(self: Any) -> None:
    self.names = self.state.columns("names", {"ts": "timestamp"})


def untyped(self: Any) -> None:
    self.names = self.state.columns("names", ["price"])  # type: ignore[arg-type]


def shared() -> Process:
    return ONE


ONE = Trips()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: rides.process(Trips, keys="rout"),
            "process Trips keys: no column has this name; got rout. Did you mean route? There are: "
            "dropoff_time, route, fare, tip, paid, stops.",
        ),
        (
            lambda: rides.process(Trips, keys=["route", "ROUTE"]),
            "process Trips keys: every column needs a name of its own; got route twice. Give one "
            "of them another name with AS.",
        ),
        (
            lambda: rides.process(Trips, keys=[]),
            "process keys: must be names of columns, or a function of the tuples; got []. Leave "
            "keys out where every bucket is to see every tuple.",
        ),
        (
            lambda: rides.process(Trips, keys=["route", "stops"]),
            "process Trips keys: stops must be a plain value; got array<string>.",
        ),
        (
            lambda: rides.select("stops", key="route").process(Trips, keys="stops"),
            "process Trips keys: the name key belongs to the key for which a bucket sees a tuple; "
            "got a column key. Give the column another name with select.",
        ),
        (
            lambda: rides.process(Trips, keys=lambda t: ["a"] * len(t)),
            "process Trips keys: the function must return an Arrow array that has a type also "
            "without rows; got none. Write for example pa.array(keys, pa.list_(pa.string())).",
        ),
        (
            lambda: rides.process(Trips, keys=lambda t: t["nothing"]),
            "process Trips keys: the function must take a table without rows, from which the type "
            "of the keys is told; got KeyError: 'Field \"nothing\" does not exist in schema'.",
        ),
        (
            lambda: rides.process(Trips, filter="fare > 3"),  # type: ignore[arg-type]
            "process Trips filter: must be a function; got str.",
        ),
        (
            lambda: rides.process(Trips()),  # type: ignore[arg-type]
            "process: needs a class, or a function that makes its objects; got an object of Trips. "
            "Give the class itself, without parentheses, or functools.partial(Class, ...).",
        ),
        (
            lambda: rides.process(kind(__init__=needy, on_tuple=method)),
            "process Kind: an object must be made without arguments; got TypeError: needy() "
            "missing 1 required positional argument: 'x'. Use functools.partial(Class, ...) for "
            "parameters.",
        ),
        (
            lambda: rides.process(dict),  # type: ignore[arg-type]
            "process: the objects must be of a class that is derived from tidegate.Process; got "
            "dict.",
        ),
        (
            lambda: rides.process(shared),
            "process Trips: every bucket needs an object of its own; got the same twice. Make a "
            "new object in each call.",
        ),
        (
            lambda: rides.process(kind()),
            "process Kind: the class must have on_tuple(tuple, keys) or process(batch), one of "
            "them; got neither.",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, process=method)),
            "process Kind: the class must have on_tuple(tuple, keys) or process(batch), one of "
            "them; got on_tuple and process.",
        ),
        (
            lambda: rides.process(kind(process=method, __init__=expiring)),
            "process Kind: state that expires needs calls that have one event time each; got "
            "process(batch) with map seen for 1 hour. Write on_tuple instead of process, leave ttl "
            "out, or use self.state.columns.",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, __init__=two_states)),
            "process Kind: an object must be made without arguments; got ValueError: state x is "
            "declared already, as value x. Use functools.partial(Class, ...) for parameters.",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, __init__=texts)),
            "state names: column name must be one of tinyint, smallint, int, bigint, float, "
            "double, boolean, date, timestamp; got string. Keep other values in a map, under a "
            "number that is in the column.",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, __init__=untyped)),
            "state names: columns need a type each, in a dict by name or a pyarrow.Schema; got "
            '[\'price\']. Write for example {"price": "double"}.',
        ),
        (
            lambda: rides.process(kind(on_tuple=method, __init__=timed)),
            "state names: the name ts belongs to the time that every row has; got a column ts. "
            "Leave it out, or give it another name.",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, snapshot=method)),
            "process Kind: snapshot and restore belong together; got snapshot alone.",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, __slots__=("n",))),
            "process Kind: the state must be in plain attributes; got __slots__. Leave __slots__ "
            "out, or write snapshot() and restore(state).",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, output=None)),
            "process Kind: the class must say its output; got nothing. Add a class attribute, as "
            'output = {"name": "string", "times": "bigint"}.',
        ),
        (
            lambda: rides.process(kind(on_tuple=method, output={"n": "wibble"})),
            "process Kind output n: the type must be one of Spark SQL, or an Arrow type; got "
            '\'wibble\'. Write for example "bigint", "double", "string", "timestamp" or '
            '"array<string>".',
        ),
        (
            lambda: rides.process(kind(on_tuple=method, output={})),
            "process Kind output: must have a column; got none.",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, output={"TS": "int"})),
            "process Kind output: the name ts belongs to the event time, which rows have by "
            "themselves; got a column ts. Leave it out, or give it another name.",
        ),
        (
            lambda: rides.process(kind(on_tuple=method, output={"a": "int", "A": "int"})),
            "process Kind output: every column needs a name of its own; got A twice. Give one of "
            "them another name with AS.",
        ),
        (
            lambda: rides.process(kind(process=method, output={"row": "int"})),
            "process Kind: the name row belongs to the row of the batch that a result is made for; "
            "got an output column row. Give the column another name.",
        ),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make()
    assert str(caught.value) == message


def test_the_order_is_an_integer_column_of_the_output() -> None:
    ordered = type("Ordered", (Trips,), {"order": "n"})
    node = node_of(rides.process(ordered, keys=stops))
    assert node.order == "n"
    assert node.identity.endswith(" order n")
    for wrong in ("route", "m"):
        kind = type("Ordered", (Trips,), {"order": wrong})
        with pytest.raises(QueryError, match="order must be an integer column of the output"):
            rides.process(kind, keys=stops)
