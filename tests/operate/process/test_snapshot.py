"""Snapshots: what they keep comes back as it was, and what would not is refused."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StateError
from tidegate.operate.process.snapshot import StoredHead, read, write
from tidegate.operate.process.tuple import Tuple
from tidegate.operate.process.value_json import NotPlain, decode, encode

TUPLE = Tuple({"a": 0, "tags": 1}, 5, (1, ["x", "y"]))
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
)
HASHED = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
VALUES = st.recursive(
    HASHED | st.frozensets(ATOMS, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(HASHED, inner, max_size=4)
        | st.lists(inner, max_size=4).map(deque)
    ),
    max_leaves=12,
)


def again(value: Any) -> Any:
    return decode(*encode(value, "state"))


def same(one: Any, two: Any) -> bool:
    """Equal in value, type and order, all the way down."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return same(list(one), list(two)) and same(list(one.values()), list(two.values()))
    if isinstance(one, list | tuple | deque):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float):
        return one == two and math.copysign(1, one) == math.copysign(1, two)
    return bool(one == two)


@given(ATOMS | st.datetimes(timezones=st.timezones(), allow_imaginary=False))
def test_a_value_by_itself_is_written_as_it_is_in_a_list(value: Any) -> None:
    """Of such values the text is made without a JSON encoder."""
    assert f"[{encode(value, 'state')[0]}]" == encode([value], "state")[0]


@given(VALUES)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    assert same(again(value), value)
    assert encode(again(value), "state") == encode(value, "state")


@pytest.mark.parametrize(
    "value",
    [
        {1: "int", "1": "text", (1, "1"): "tuple", None: "none", b"1": "bytes", 2.5: "float"},
        {"dict": [[1], [2]]},
        {"tuple": [1]},
        OrderedDict([("b", 1), ("a", 2)]),
        Counter({"a": 2, "b": -1}),
        defaultdict(list, {"a": [1]}),
        defaultdict(None, {"a": 1}),
        deque([1, 2], maxlen=3),
        bytearray(b"ab"),
        complex(1, -0.0),
        {frozenset({1, 2}): {3, 4}},
        datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
        time(3, 4, 5, 6, tzinfo=UTC),
        date(1, 1, 1),
        timedelta(days=-1, microseconds=1),
        Decimal("1.10"),
        10**400,
        "\ud800",
        np.float32(1.5),
        np.int64(7),
        np.datetime64("2024-01-01T00:00:00", "us"),
        np.str_("text"),
        np.bool_(True),
    ],
    ids=repr,
)
def test_what_json_does_not_have(value: Any) -> None:
    back = again(value)
    assert same(back, value)
    for name in ("default_factory", "maxlen", "fold", "tzinfo", "dtype"):
        assert getattr(back, name, None) == getattr(value, name, None)


def test_numbers_that_are_none() -> None:
    nan, infinite = again([math.nan, -math.inf])
    assert math.isnan(nan)
    assert infinite == -math.inf


def test_arrow_and_numpy() -> None:
    table = pa.table({"a": [1, None], "b": ["x", "y"]}).replace_schema_metadata({"m": "1"})
    long = pa.concat_tables([table, table]).slice(1, 2)
    assert again(long).equals(long, check_metadata=True)
    batch = table.to_batches()[0].slice(1)
    assert again(batch).equals(batch)
    assert isinstance(again(batch), pa.RecordBatch)
    empty = pa.RecordBatch.from_pylist([], schema=table.schema)
    assert again(empty).equals(empty)
    for array in (pa.array([], pa.int8()), pa.array(["a", None]).dictionary_encode()):
        assert isinstance(again(array), pa.Array)
        assert again(array).equals(array)
    chunked = pa.chunked_array([["a"], ["b"]])
    assert again(chunked).equals(chunked)
    for values in (np.eye(3)[:, ::2], np.array([], "M8[us]"), np.array(["a", "bc"]), np.array(5)):
        back = again({"x": values})["x"]
        assert back.dtype == values.dtype
        assert back.shape == values.shape
        assert np.array_equal(back, values)
        assert back.flags.writeable


def test_the_bytes_do_not_depend_on_chunks_or_on_how_a_set_was_made() -> None:
    whole = pa.table({"a": [1, 2, 3]})
    cut = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
    assert encode(whole, "s") == encode(cut, "s")
    numbers, backwards = set(range(50)), set(range(49, -1, -1))
    assert encode({f"w{i}" for i in numbers}, "s") == encode({f"w{49 - i}" for i in backwards}, "s")
    assert encode({8, 0}, "s") == encode({0, 8}, "s"), "these two collide in a table of eight"


def test_a_tuple_of_the_stream_may_be_kept_in_several_places() -> None:
    back = again({"a": TUPLE, "b": [TUPLE]})
    assert back["a"] == TUPLE == back["b"][0]
    assert back["a"].ts == datetime(1970, 1, 1, microsecond=5, tzinfo=UTC)
    assert back["a"].tags == ["x", "y"]


class Colour(IntEnum):
    RED = 1


class Point(NamedTuple):
    x: int


SHARED = [1]
LOOP: list[Any] = []
LOOP.append(LOOP)
MEMORY = np.zeros(4)


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ({"a": [object()]}, "state['a'][0]", "is of the type builtins.object"),
        (Colour.RED, "state", "is of the type tests.operate.process.test_snapshot.Colour"),
        (Point(1), "state", "is of the type tests.operate.process.test_snapshot.Point"),
        ({"f": len}, "state['f']", "is of the type builtins.builtin_function_or_method"),
        ({(1, Point(1)): 1}, "the keys of state[0][1]", "is of the type"),
        (defaultdict(lambda: 0), "state", "is a defaultdict of a function"),
        ({"a": SHARED, "b": (SHARED,)}, "state['b'][0]", "is the same object as state['a']"),
        (LOOP, "state[0]", "is the same object as state"),
        ([MEMORY[:2], MEMORY[2:]], "state[1]", "is the same object as state[0]"),
        (np.array([object()]), "state", "is a numpy array of objects"),
        (np.ma.array([1]), "state", "is of the type numpy.ma.MaskedArray"),
        (datetime(2024, 1, 1, tzinfo=timezone(timedelta(0), "X")), "state", "has the time zone"),
    ],
    ids=map(str, itertools.count()),  # not by their values, some of which show addresses
)
def test_what_would_come_back_as_something_else_is_refused(
    value: Any, path: str, problem: str
) -> None:
    with pytest.raises(NotPlain) as caught:
        encode(value, "state")
    assert caught.value.path == path
    assert problem in caught.value.problem


def test_a_state_that_is_too_deep_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotPlain, match="nested too deeply"):
        encode(deep, "state")
    while deep:  # else the interpreter takes it apart by recursion
        deep = deep[0]


def test_a_head_has_the_timers_in_their_order() -> None:
    assert read(write(StoredHead({"a": 1}, (7, 3, 5)), False), False, "w") == StoredHead(
        {"a": 1}, (3, 5, 7)
    )
    kept = StoredHead({"a": 0, 5: [1], "t": pa.array([1])}, (4,), 7)
    assert read(write(kept, False, attributes=True), False, "w") == kept
    assert write(kept, False, attributes=True) == write(kept, False)


def test_a_head_that_kept_mappings_by_entry_is_refused() -> None:
    head = write(StoredHead([["a", 1]], ()), False).replace(b"TGP2J", b"TGP2A", 1)
    with pytest.raises(StateError) as caught:
        read(head, False, "batch 7, bucket 3")
    assert str(caught.value) == (
        "batch 7, bucket 3: the state must be of this version, which keeps attributes whole; got "
        "attributes that an earlier version kept entry by entry. Start with a new checkpoint."
    )


def test_a_pickle_is_opened_only_where_the_class_says_so() -> None:
    snapshot = write(StoredHead(Colour.RED, (1,)), True)
    assert read(snapshot, True, "w") == StoredHead(Colour.RED, (1,))
    with pytest.raises(StateError, match="w: the class must keep its state as it did"):
        read(snapshot, False, "w")
    with pytest.raises(StateError, match="got a state made with pickle = False"):
        read(write(StoredHead(1, ()), False), True, "w")


@pytest.mark.parametrize("cut", [0, 3, 20, -1])
def test_damage_is_told(cut: int) -> None:
    snapshot = write(StoredHead({"a": pa.table({"x": [1]})}, (1,)), False)
    with pytest.raises(StateError, match="the state of a bucket must be a snapshot"):
        read(snapshot[:cut], False, "w")
    with pytest.raises(StateError, match="start with a new one"):
        read(pickle.dumps({"a": 1} | {str(i): i for i in range(9)}), False, "w")
