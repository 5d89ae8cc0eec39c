"""Declared state: beside dicts that forget, through any operations and batches; what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.oracle.process import Clock, PlainMap
from tidegate.errors import QueryError
from tidegate.operate.layered_state import HIDES
from tidegate.operate.process import entry, initial, segment_rows
from tidegate.operate.process.definition import InitialState, Process
from tidegate.operate.process.entry import HEAD, EntryHorizon, StateRow, newest, table_of
from tidegate.operate.process.hot import HotState
from tidegate.operate.process.initial import InitialIndex
from tidegate.operate.process.key import span_of
from tidegate.operate.process.segment_rows import StoredBucket, StoredState
from tidegate.operate.process.snapshot import ObjectState
from tidegate.operate.process.value_json import NotPlain, encode
from tidegate.schema import TIME
from tidegate.state.segment.segment import Segment

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
KEYS: list[Any] = ["a", "b", "", 0, 1, 1.0, True, Decimal(1), -1, 2.5, np.float64(1), np.str_("a")]
KEYS += [None, b"a", (), (1, "a"), (1.0, np.str_("a")), frozenset({1, 2}), frozenset({2.0, 1})]
KEYS += [NOON, NOON.astimezone(timezone(timedelta(hours=1))), NOON.replace(tzinfo=None)]
KEYS += [date(2024, 1, 1), timedelta(seconds=1), 2**70, -(2**61), float("inf"), Decimal("2.50")]
keys = st.sampled_from(KEYS)
numbers = st.integers(0, 3)

SEGMENT = Segment("other", 1, 1, 0, (0,), 0, 0, 0)


class Declaring(Process):
    """Declares what a test says."""

    output = {"n": "bigint"}  # noqa: RUF012

    def __init__(self, declare: Callable[[Any], None]) -> None:
        declare(self)


class Bucket:
    """One bucket's object through batches without calls: what is written of it, and read again.

    `layers` are what was written, the oldest first, and `now_us` is the event time.
    """

    def __init__(
        self,
        declare: Callable[[Any], None],
        kind: type[Declaring] = Declaring,
        initial: InitialIndex | None = None,
    ) -> None:
        self._initial = initial
        self.layers: list[pa.Table] = []
        self._kind = kind
        self.now_us = 0
        self._declare = declare
        self.begin()

    def begin(self) -> Any:
        """A new object at the begin of a batch."""
        layers, state = list(self.layers), HotState([1, 3])
        state.begin(lambda: StoredState(layers, [1, 3]), 2**30, initial=self._initial)
        self.object: Any = self._kind(self._declare)
        self._state = ObjectState(self.object, state.bucket(3), "test")
        self._state.attach(lambda: self.now_us)
        if self._state.kept is not None:
            self.object.restore(self._state.kept.state)
        return self.object

    def commit(self, merge: int = 0) -> list[str]:
        """Write what changed, and begin the next batch; with `merge` n the newest n are merged."""
        rows = self._state.changes(self.object.snapshot(), ())
        if merge and len(self.layers) >= merge:
            horizon = EntryHorizon(entry.ENTRY, None, frontier_us=self.now_us)
            last = [t.filter(pa.array(horizon.live(t, SEGMENT))) for t in self.layers[-merge:]]
            if merge == len(self.layers):
                last[0] = last[0].filter(pa.array(last[0][entry.ENTRY].to_numpy() < HIDES))
            self.layers[-merge:] = [newest(pa.concat_tables(last))]
        if rows:
            self.layers.append(table_of([(3, rows)]))
        self.begin()
        return written(rows)


def written(rows: list[StateRow]) -> list[str]:
    """Heads, entries and entries that are gone, by name."""
    return sorted(
        "head" if row.entry == HEAD else f"{'gone ' * (row.entry >= HIDES)}{row.name.decode()}"
        for row in rows
    )


class Beside(RuleBasedStateMachine):
    """A declared map and a plain one that is never stored: what is done to both gives the same."""

    collisions = False

    @initialize(ttl_us=st.none() | st.integers(1, 6), data=st.data())
    def start(self, ttl_us: int | None, data: st.DataObject) -> None:
        self.data = data
        self.patch = pytest.MonkeyPatch()
        if self.collisions:
            few = lambda name: span_of(name[: name.index(b":") + 1])[0] + len(name) % 2  # noqa: E731
            self.patch.setattr(entry, "entry_of", few)
            self.patch.setattr(segment_rows, "entry_of", few)
        self.clock = Clock(3, 5)
        self.plain = PlainMap(self.clock, ttl_us)
        ttl = None if ttl_us is None else timedelta(microseconds=ttl_us)

        def declare(made: Any) -> None:
            made.before = made.state.map("w")
            made.x = made.state.map("x", ttl=ttl)
            made.after = {"y": 2}

        self.bucket = Bucket(declare, initial=self.initial(ttl_us))

    def initial(self, ttl_us: int | None) -> InitialIndex | None:
        """What a table has of x before the first tuple."""
        return None

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()

    def both(self, action: Callable[[Any], Any]) -> None:
        """What an action gives, or raises, is the same for both."""
        outcomes = []
        for mapping in (self.plain, self.bucket.object.x):
            try:
                outcomes.append(f"gave {action(mapping)!r}")
            except (KeyError, TypeError, ValueError) as error:
                outcomes.append(f"raised {error!r}")
        assert outcomes[0] == outcomes[1]

    @rule(us=st.integers(0, 3))
    def pass_time(self, us: int) -> None:
        self.clock.now_us += us
        self.bucket.now_us += us

    @rule(key=keys)
    def ask(self, key: Any) -> None:
        self.both(lambda m: m[key])
        self.both(lambda m: (m.get(key, 7), key in m))

    @rule(key=keys, value=numbers)
    def put(self, key: Any, value: int) -> None:
        self.both(lambda m: m.__setitem__(key, [value]))
        self.bucket.object.before[key] = value

    @rule(key=keys, value=numbers)
    def change_in_place(self, key: Any, value: int) -> None:
        self.both(lambda m: m.setdefault(key, [value]).append(value))

    @rule(key=keys)
    def remove(self, key: Any) -> None:
        self.both(lambda m: m.__delitem__(key))

    @rule(key=keys, default=st.sampled_from([(), (None,), (1,)]))
    def pop(self, key: Any, default: tuple[Any, ...]) -> None:
        self.both(lambda m: m.pop(key, *default))

    @rule(news=st.dictionaries(keys, numbers, max_size=3))
    def update(self, news: dict[Any, int]) -> None:
        self.both(lambda m: m.update({key: [value] for key, value in news.items()}))

    @rule()
    def clear(self) -> None:
        self.both(lambda m: m.clear())

    @rule()
    def read_all(self) -> None:
        self.both(lambda m: [len(m), list(m), list(m.values()), list(m.items())])

    @rule(merge=st.integers(0, 5))
    def commit(self, merge: int) -> None:
        """The batch ends: what changed is written, and the next one reads it."""
        self.bucket.commit(merge)

    @rule()
    def read_again(self) -> None:
        """What the next batch sees has the order and the types of keys and values."""
        self.bucket.commit()
        assert encode(dict(self.bucket.object.x), "") == encode(dict(self.plain), "")
        self.bucket.commit()


class BesideWithCollisions(Beside):
    collisions = True


COLUMNS: list[tuple[list[pa.DataType], list[Any]]] = [
    ([pa.string()], ["a", "b", "", None, "é" * 300]),
    ([pa.large_binary()], [b"a", None, b"b"]),
    ([pa.int32()], [0, 1, -1, None]),
    ([pa.bool_()], [True, False]),
    ([pa.float64()], [1.0, 2.5, float("inf"), None]),
    ([pa.decimal128(20, 3)], [Decimal("1.000"), Decimal("2.500"), Decimal("-1.000")]),
    ([pa.timestamp("us", "UTC")], [NOON, None]),
    ([pa.timestamp("us", "UTC")], []),
    ([pa.date32()], [date(2024, 1, 1), date(1, 1, 1)]),
    ([pa.int64(), pa.string()], [(1, "a"), (0, "a"), (None, None)]),
]


class BesideFromTable(Beside):
    """The same where both begin with the rows of a table."""

    def initial(self, ttl_us: int | None) -> InitialIndex | None:
        types, found = self.data.draw(st.sampled_from(COLUMNS))
        rows = self.data.draw(st.permutations(found))
        values = self.data.draw(
            st.lists(st.none() | numbers, min_size=len(rows), max_size=len(rows))
        )
        since = self.data.draw(st.lists(st.integers(-4, 0), min_size=len(rows), max_size=len(rows)))
        parts = [[row] for row in rows] if len(types) == 1 else rows
        columns = {
            f"k{i}": pa.array([part[i] for part in parts], type_) for i, type_ in enumerate(types)
        }
        columns["x"] = pa.array([None if v is None else [v] for v in values], pa.list_(pa.int64()))
        columns["ts"] = pa.array(since, pa.int64()).cast(TIME)
        for row, value, ts in zip(rows, values, since, strict=True):
            if value is not None:
                self.plain.begin(row, [value], ts)
        keys = tuple(f"k{i}" for i in range(len(types)))
        spec = InitialState("t", keys, (("x", ttl_us),), None if ttl_us is None else "ts")
        self.patch.setattr(initial, "bucket_of", lambda keys, _: np.full(len(keys[0]), 3))
        return InitialIndex(spec, 5, pa.table(columns))


TestBeside = Beside.TestCase
TestBesideFromTable = BesideFromTable.TestCase
TestBesideWithCollisions = BesideWithCollisions.TestCase


def two_maps(made: Any) -> None:
    made.n = 0
    made.x, made.y = made.state.map("x"), made.state.map("y")


def test_a_batch_writes_what_it_changed() -> None:
    bucket = Bucket(two_maps)
    bucket.object.x.update({i: [i] for i in range(5)})
    bucket.object.y.update({"a": 2, "b": 1})
    assert len(bucket.commit()) == 1 + 5 + 2
    assert bucket.commit() == [], "nothing was used"
    assert bucket.object.x[3] == [3]
    assert bucket.object.x.get(9) is None
    assert bucket.commit() == [], "nothing was changed"
    bucket.object.x[3].append(4)
    bucket.object.x[1] = [1]
    assert bucket.commit() == ["x:3"], "one was changed in place, one is equal"
    bucket.object.n = 1
    assert bucket.commit() == ["head"]
    del bucket.object.x[0]
    bucket.object.x[7] = 1
    bucket.object.y["b"] += 1
    assert bucket.commit() == ["gone x:0", "head", "x:7", 'y:"b"']
    assert dict(bucket.object.x) == {1: [1], 2: [2], 3: [3, 4], 4: [4], 7: 1}
    assert dict(bucket.object.y) == {"a": 2, "b": 2}


def test_what_is_not_asked_for_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(two_maps)
    bucket.object.x.update({f"key {i}": i for i in range(1000)})
    bucket.object.y.update({i: i for i in range(20)})
    bucket.commit()
    read: list[bytes] = []
    find, load = StoredBucket.find, StoredBucket.load

    def found(self: StoredBucket, name: bytes) -> Any:
        read.append(name)
        return find(self, name)

    def loaded(self: StoredBucket, prefix: bytes) -> Any:
        rows = load(self, prefix)
        read.extend(rows)
        return rows

    monkeypatch.setattr(StoredBucket, "find", found)
    monkeypatch.setattr(StoredBucket, "load", loaded)
    x = bucket.object.x
    assert x["key 5"] == 5
    assert "key 1000" not in x
    assert (x.pop("key 9"), x.get("key 9", 3), x.get("key 5")) == (9, 3, 5)
    x["key 5"] = 6
    assert read == [b'x:"key 5"', b'x:"key 1000"', b'x:"key 9"']
    read.clear()
    assert len(bucket.object.y) == 20
    assert len(read) == 20, "walking through one state reads nothing of another"
    assert bucket.commit() == ['gone x:"key 9"', 'x:"key 5"']


def test_entries_stay_in_the_order_in_which_they_were_set() -> None:
    bucket = Bucket(two_maps)
    bucket.object.x.update(dict.fromkeys("abcdef", 0))
    bucket.commit()
    x = bucket.object.x
    assert x["e"] == x["b"] == 0
    del x["c"]
    x["g"] = 1
    x["a"] = x.pop("a") + 1
    x["b"] = 2
    assert "".join(x) == "bdefga"
    bucket.commit()
    bucket.object.x["c"] = 1
    bucket.commit()
    assert "".join(bucket.object.x) == "bdefgac"


def test_an_entry_is_gone_when_its_time_has_passed_since_it_was_set() -> None:
    bucket = Bucket(lambda made: vars(made).update(x=made.state.map("x", ttl="10 us")))
    bucket.object.x["a"] = [1]
    bucket.commit()
    bucket.now_us = 9
    bucket.object.x["a"].append(2)  # no setting: the time goes on
    assert bucket.commit() == ['x:"a"']
    bucket.now_us = 10
    assert "a" not in bucket.object.x
    assert (len(bucket.object.x), list(bucket.object.x)) == (0, [])
    with pytest.raises(KeyError):
        del bucket.object.x["a"]
    assert bucket.commit() == []
    bucket.object.x["b"] = 1
    bucket.object.x["a"] = 3
    bucket.now_us = 15
    bucket.object.x["b"] = 2
    bucket.commit()
    bucket.now_us = 20
    assert dict(bucket.object.x) == {"b": 2}, "setting again begins the time anew"


def test_a_value_is_one_entry() -> None:
    def declare(made: Any) -> None:
        made.last = made.state.value("last")
        made.seen = made.state.value("seen", [0], ttl=timedelta(microseconds=5))

    bucket = Bucket(declare)
    last, seen = bucket.object.last, bucket.object.seen
    assert (last.get(), last.exists(), seen.get()) == (None, False, [0])
    seen.get().append(1)
    assert seen.get() == [0], "the default is not the value"
    last.clear()
    last.update("x")
    assert seen.exists() is False
    seen.update([1])
    assert (last.get(), last.exists(), seen.get()) == ("x", True, [1])
    assert bucket.commit() == ["head", "last:null", "seen:null"]
    bucket.object.seen.get().append(2)
    assert bucket.object.last.get() == "x"
    assert bucket.commit() == ["seen:null"]
    bucket.now_us = 5
    assert (bucket.object.seen.get(), bucket.object.seen.exists()) == ([0], False)
    bucket.object.last.update(None)
    assert bucket.object.last.exists()
    bucket.object.last.clear()
    assert bucket.commit() == ["gone last:null"]
    assert bucket.object.state.value("last") is bucket.object.last


def test_arrow_and_numpy_are_kept_beside_other_values() -> None:
    bucket = Bucket(two_maps)
    table = pa.table({"a": [1]})
    bucket.object.x.update({"t": table, "n": 1, "a": np.arange(3), 1.0: np.arange(2)})
    bucket.commit()
    assert bucket.object.x["t"].equals(table)
    assert bucket.object.x["a"].tolist() == [0, 1, 2]
    assert bucket.commit() == []
    bucket.object.x["a"][0] = 5
    assert bucket.commit() == ['x:"a"']
    assert bucket.object.x["a"].tolist() == [5, 1, 2]
    assert [type(key) for key in bucket.object.x] == [str, str, str, float]


def share_in_one(made: Any) -> None:
    made.x["a"] = made.x["b"] = [1]


def share_in_two(made: Any) -> None:
    made.x["a"] = made.y[2] = [1]


def share_with_an_attribute(made: Any) -> None:
    made.n = [1]
    made.x["a"] = {2: made.n}


@pytest.mark.parametrize(
    ("action", "path", "problem"),
    [
        (share_in_one, "x['b']", "is the same object as x['a']"),
        (share_in_two, "y[2]", "is the same object as x['a']"),
        (share_with_an_attribute, "self.n", "is the same object as x['a'][2]"),
        (lambda made: made.x.update(a=object()), "x['a']", "is of the type builtins.object"),
        (lambda made: setattr(made, "n", [made.x]), "self.n[0]", "is of the type tidegate."),
    ],
)
def test_what_cannot_be_kept_is_named(action: Any, path: str, problem: str) -> None:
    bucket = Bucket(two_maps)
    action(bucket.object)
    with pytest.raises(NotPlain) as caught:
        bucket.commit()
    assert (caught.value.path, problem in caught.value.problem) == (path, True)


@pytest.mark.parametrize(
    ("declare", "error", "message"),
    [
        (
            lambda made: (made.state.map("x"), made.state.value("x")),
            ValueError,
            "state x is declared already, as map x",
        ),
        (lambda made: made.state.map("x")["a"], RuntimeError, "not in __init__"),
        (lambda made: made.state.map("x").update(a=1), RuntimeError, "not in __init__"),
        (lambda made: len(made.state.map("x")), RuntimeError, "not in __init__"),
        (lambda made: made.state.value("x").get(), RuntimeError, "not in __init__"),
        (lambda made: made.state.map(""), ValueError, "must be a text without ':'; got ''"),
        (lambda made: made.state.map("a:b"), ValueError, "must be a text without ':'; got 'a:b'"),
        (lambda made: made.state.map(5), ValueError, "must be a text without ':'; got 5"),
        (lambda made: made.state.map("x", ttl=0), ValueError, "ttl must be longer than zero; got"),
        (lambda made: made.state.map("x", ttl="a day"), QueryError, "state x ttl"),
    ],
)
def test_declarations_that_are_refused(declare: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Bucket(declare)


class Own(Declaring):
    """Keeps its attributes itself."""

    def snapshot(self) -> Any:
        return vars(self)["n"]

    def restore(self, state: Any) -> None:
        vars(self)["n"] = state


def test_a_snapshot_of_its_own_is_kept_beside_declared_state() -> None:
    bucket = Bucket(two_maps, Own)
    bucket.object.n = [7]
    bucket.object.x["a"] = 1
    assert bucket.commit() == ["head", 'x:"a"']
    assert (bucket.object.n, bucket.object.x["a"]) == ([7], 1)
    bucket.object.x["b"] = bucket.object.n
    with pytest.raises(NotPlain, match="is the same object as"):
        bucket.commit()


def test_the_name_is_taken_and_windows_have_none() -> None:
    with pytest.raises(AttributeError, match="give the attribute another name"):
        Declaring(lambda made: setattr(made, "state", {}))
    kind = type("Merged", (Declaring,), {"mergeable": True})
    with pytest.raises(RuntimeError, match="state is not for a process that is mergeable"):
        kind(lambda made: made.state.map("x"))


def test_state_is_declared_in_init_only_and_used_at_work_only() -> None:
    bucket = Bucket(two_maps)
    assert bucket.object.state.map("x") is bucket.object.x
    with pytest.raises(RuntimeError, match="state z must be declared in __init__"):
        bucket.object.state.map("z")
    with pytest.raises(ValueError, match="state x is declared already, as map x"):
        bucket.object.state.value("x")
    with pytest.raises(TypeError, match="state x: a key must be a number other than NaN"):
        bucket.object.x[object()] = 1
    with pytest.raises(TypeError, match="unhashable"):
        bucket.object.x[[]] = 1
    assert repr(bucket.object.x) == "<x {}>"
    assert repr(Declaring(two_maps).state.map) is not None


def test_the_state_of_a_class_may_grow() -> None:
    bucket = Bucket(lambda made: vars(made).update(x=made.state.map("x")))
    bucket.object.x["a"] = 1
    bucket.commit()
    bucket._declare = two_maps
    bucket.begin()
    bucket.object.y["a"] = bucket.object.x["a"]
    bucket.commit()
    assert (dict(bucket.object.x), dict(bucket.object.y)) == ({"a": 1}, {"a": 1})
