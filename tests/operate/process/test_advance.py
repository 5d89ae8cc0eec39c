"""The user's own operator: the same rows as its twin for any cut, and mistakes that are told."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operate.process.stream import (
    COLUMNS,
    US,
    Dealt,
    Recent,
    Row,
    Seen,
    SeenByBatch,
    Silence,
    TimedByBatch,
    objects_in,
    opened,
    router_of,
    run,
    spec_of,
    table_of,
)
from tests.oracle.process import process as plain
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import StateError, TaskError
from tidegate.operate.process.advance import advance, assign
from tidegate.operate.process.definition import CALLS, Process, ProcessSpec
from tidegate.operate.process.entry import HEAD
from tidegate.operate.process.hot import HotState
from tidegate.route.bucket import bucket_of
from tidegate.route.partitioner import EVERY_BUCKET

TOTAL = 5
KEYS = st.lists(st.sampled_from(["a", "b", "c", "d", "", None]), max_size=4)
TUPLES = st.lists(
    st.tuples(
        st.integers(0, 12), st.integers(0, 2), st.none() | KEYS, st.none() | st.integers(0, 3)
    ),
    max_size=25,
)
CUTS = st.lists(st.integers(-1, 15), max_size=5)
INSTANCES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def rows_of(made: Sequence[tuple[Any, ...]]) -> list[Row]:
    return [
        {"ts": ts, "src": src, "seq": seq, "k": k, "v": v}
        for seq, (ts, src, k, v) in enumerate(made)
    ]


def bucket(key: Any) -> int:
    return int(bucket_of([pa.array([key], pa.string())], TOTAL)[0])


def distinct(row: Row) -> list[Any]:
    return list(dict.fromkeys(row["k"] or ()))


def expected(factory: Any, rows: list[Row], keys: Any = distinct) -> list[tuple[Any, ...]]:
    return plain(factory, list(factory().output), rows, keys, bucket, TOTAL, CALLS)


@given(TUPLES, CUTS, INSTANCES, st.integers(0, 99))
def test_any_cut_and_mapping_gives_the_rows_of_the_twin(
    made: Any, cuts: list[int], instances: list[int], seed: int
) -> None:
    rows = rows_of(made)
    for factory in (Seen, Silence, Recent):
        assert run(spec_of(factory), rows, cuts, instances, TOTAL, seed) == expected(factory, rows)


@given(TUPLES, CUTS, INSTANCES, st.integers(0, 99))
def test_without_keys_every_bucket_sees_every_tuple(
    made: Any, cuts: list[int], instances: list[int], seed: int
) -> None:
    rows, factory = rows_of(made), functools.partial(Dealt, most=3)
    found = run(spec_of(factory, None), rows, cuts, instances, TOTAL, seed)
    assert found == expected(factory, rows, None)


@given(TUPLES, CUTS, INSTANCES, st.integers(0, 99))
def test_by_batch_the_rows_are_those_of_one_call(
    made: Any, cuts: list[int], instances: list[int], seed: int
) -> None:
    rows = rows_of(made)
    found = run(spec_of(SeenByBatch), rows, cuts, instances, TOTAL, seed)
    assert found == [row[:3] for row in expected(Seen, rows)]
    timed = spec_of(TimedByBatch)
    assert run(timed, rows, cuts, instances, TOTAL, seed) == run(timed, rows, total=TOTAL)


@given(TUPLES, CUTS)
def test_equal_states_are_equal_bytes(made: Any, cuts: list[int]) -> None:
    rows = rows_of(made)
    for factory in (Seen, Silence):
        one: list[pa.Table] = []
        two: list[pa.Table] = []
        run(spec_of(factory), rows, cuts, (3,), TOTAL, 1, one)
        run(spec_of(factory), rows, (), (1,), TOTAL, 2, two)
        assert objects_in(one) == objects_in(two)


def at(ts: int, k: list[str] | None = None, v: int | None = None, seq: int = 0) -> Row:
    return {"ts": ts, "src": 0, "seq": seq or ts, "k": ["a"] if k is None else k, "v": v}


def test_timers_fire_after_the_tuples_of_their_time_and_before_later_ones() -> None:
    class Order(Process):
        output = {"what": "string"}  # noqa: RUF012

        def on_tuple(self, tuple: Any, keys: list[str]) -> tuple[str]:
            if tuple.v == 1:
                self.wake(tuple.ts)
                self.wake(tuple.ts + US)
                self.wake(tuple.ts)
            return (f"tuple {tuple.v}",)

        def on_frontier(self, ts: datetime) -> tuple[str]:
            return (f"timer {(ts - datetime(1970, 1, 1, tzinfo=UTC)) // US}",)

    rows = [at(5, v=1, seq=1), at(5, v=2, seq=2), at(6, v=3, seq=3), at(7, v=4, seq=4)]
    told = [(5, "tuple 1"), (5, "tuple 2"), (5, "timer 5")]
    told += [(6, "tuple 3"), (6, "timer 6"), (7, "tuple 4")]
    for cuts in ((), (6,), (6, 7), (5, 6, 7, 8)):
        assert run(spec_of(Order), rows, cuts) == told


def nothing() -> HotState:
    return opened([], range(TOTAL))


def heads(state: pa.Table) -> list[tuple[int, int]]:
    """The buckets whose heads are among these rows, and their earliest timers."""
    columns = [state[name].to_pylist() for name in ("bucket", "pending_us", "entry")]
    return [(number, pending) for number, pending, entry in zip(*columns) if entry == HEAD]


def test_a_timer_that_is_due_touches_a_bucket_without_tuples() -> None:
    spec = spec_of(Silence)
    news = assign(spec, table_of([at(10)]), router_of(spec, TOTAL))
    made, first = advance(spec, range(TOTAL), nothing(), news, MIN_US, 11, "w", total=TOTAL)
    state = opened([first], range(TOTAL))
    assert made.num_rows == 0
    assert heads(first) == [(bucket("a"), 13)]
    made, after = advance(spec, range(TOTAL), state, None, 11, 13, "w", total=TOTAL)
    assert (made.num_rows, after.num_rows) == (0, 0), "not yet, and so nothing is written"
    made, after = advance(spec, range(TOTAL), state, None, 13, 14, "w", total=TOTAL)
    assert made["trigger_ts"].to_pylist() == [13]
    assert made["trigger_src"].to_pylist() == [MAX_US]
    assert heads(after) == [(bucket("a"), 15)]


def test_a_snapshot_that_stays_the_same_is_not_given_again() -> None:
    class Deaf(Process):
        output = {"n": "bigint"}  # noqa: RUF012

        def on_tuple(self, tuple: Any, keys: list[str]) -> None:
            return None

    spec = spec_of(Deaf)
    news = assign(spec, table_of([at(1)]), router_of(spec, TOTAL))
    _, first = advance(spec, range(TOTAL), nothing(), news, MIN_US, 2, "w", total=TOTAL)
    assert heads(first) == [(bucket("a"), MAX_US)]
    state = opened([first], range(TOTAL))
    news = assign(spec, table_of([at(2)]), router_of(spec, TOTAL))
    assert advance(spec, range(TOTAL), state, news, 2, 3, "w", total=TOTAL)[1].num_rows == 0


def test_keys_of_one_tuple_come_together_each_once_in_their_order() -> None:
    calls: list[list[str | None]] = []

    class Listen(Seen):
        def on_tuple(self, tuple: Any, keys: list[str | None]) -> Iterator[dict[str, Any]]:
            calls.append(keys)
            assert tuple["src"] == "x"
            assert dict(tuple)["v"] == tuple.v
            return iter(())

    run(spec_of(Listen), [at(1, ["b", "a", "b", "d", "a"])], total=1)
    assert calls == [["b", "a", "d"]]


def test_assign_names_one_bucket_per_key() -> None:
    spec = spec_of(Seen)
    routed = assign(
        spec, table_of([at(1, ["a", "b"]), at(2, []), at(3, ["b"])]), router_of(spec, TOTAL)
    )
    assert routed.schema == spec.routed
    assert routed["~key"].to_pylist() == ["a", "b", "b"]
    assert routed["bucket"].to_pylist() == [bucket("a"), bucket("b"), bucket("b")]
    assert routed["~position"].to_pylist() == [0, 1, 0]
    everyone = assign(
        spec_of(Dealt, None), table_of([at(1)]), router_of(spec_of(Dealt, None), TOTAL)
    )
    assert everyone["bucket"].to_pylist() == [EVERY_BUCKET]


def test_columns_are_keys_alone_or_together() -> None:
    calls: list[Any] = []

    class Listen(Seen):
        def on_tuple(self, tuple: Any, keys: list[Any]) -> Iterator[dict[str, Any]]:
            calls.append(keys)
            return iter(())

    run(spec_of(Listen, ("v",)), [at(1, v=7), at(2, v=None)])
    run(spec_of(Listen, ("v", "src")), [at(1, v=7)])
    assert calls == [[7], [None], [(7, "x")]]


def test_a_function_gives_the_keys() -> None:
    rows = rows_of([(i, 0, ["a b", "c"][i % 2 : i % 2 + 1], i) for i in range(6)])

    def split(tuples: pa.Table) -> pa.Array:
        return pc.split_pattern(pc.list_element(tuples["k"], 0), " ")

    found = run(spec_of(Seen, split), rows, (2, 4))
    assert found == expected(Seen, rows, lambda r: r["k"][0].split(" "))

    def first(tuples: pa.Table) -> pa.Array:
        return pc.list_element(tuples["k"], 0)

    found = run(spec_of(Seen, first), rows, (2, 4))
    assert found == expected(Seen, rows, lambda r: r["k"])


def test_a_filter_spares_a_bucket_what_it_does_not_need() -> None:
    rows = rows_of([(i, 0, ["a", "b", "c"], i % 4) for i in range(12)])

    def small(number: int, tuples: pa.Table) -> pa.Array:
        assert tuples.column_names == ["ts", "k", "v", "src", "key"]
        assert {bucket(k) for k in tuples["key"].to_pylist()} == {number}
        return pc.less(tuples["v"], 2)

    few = [r for r in rows if r["v"] < 2]
    assert run(spec_of(Seen, filter=small), rows, (5,)) == expected(Seen, few)
    state: list[pa.Table] = []
    run(spec_of(Seen, filter=lambda b, t: np.zeros(t.num_rows, bool)), rows, state=state)
    assert state == [], "a bucket that sees nothing has no object"


def test_rows_that_change_later_are_as_they_were_when_given() -> None:
    class Lend(Process):
        output = {"all": pa.list_(pa.int64())}  # noqa: RUF012

        def __init__(self) -> None:
            self.all: list[int] = []

        def on_tuple(self, tuple: Any, keys: list[str]) -> dict[str, Any]:
            self.all.append(tuple.v)
            return {"all": self.all}

    spec = ProcessSpec(Lend, COLUMNS, ("k",), (("all", pa.list_(pa.int64())),), None, "Lend")
    rows = [at(i, v=i) for i in range(3)]
    assert run(spec, rows) == [(0, [0]), (1, [0, 1]), (2, [0, 1, 2])] == run(spec, rows, (1, 2))


def test_an_attribute_that_was_deleted_stays_so() -> None:
    class Once(Process):
        output = {"first": "bigint"}  # noqa: RUF012

        def __init__(self) -> None:
            self.fresh = True

        def on_tuple(self, tuple: Any, keys: list[str]) -> tuple[int] | None:
            if not hasattr(self, "fresh"):
                return None
            del self.fresh
            return (tuple.v,)

    rows = [at(i, v=i) for i in range(3)]
    assert run(spec_of(Once), rows, (1, 2)) == [(0, 0)] == run(spec_of(Once), rows)


def test_own_snapshots_and_pickles() -> None:
    class Total:
        def __init__(self) -> None:
            self.n = 0

    class Own(Process):
        output = {"n": "bigint"}  # noqa: RUF012

        def __init__(self) -> None:
            self.total = Total()

        def on_tuple(self, tuple: Any, keys: list[str]) -> tuple[int]:
            self.total.n += 1
            return (self.total.n,)

        def snapshot(self) -> Any:
            return self.total.n

        def restore(self, state: Any) -> None:
            self.total.n = state

    class Pickled(Process):
        output = {"n": "bigint"}  # noqa: RUF012
        pickle = True

        def __init__(self) -> None:
            self.steps: Any = range(0)

        def on_tuple(self, tuple: Any, keys: list[str]) -> tuple[int]:
            self.steps = range(len(self.steps) + 1)
            return (len(self.steps),)

    class NotPickled(Pickled):
        pickle = False

    rows = [at(i) for i in range(4)]
    for factory in (Own, Pickled):
        assert run(spec_of(factory), rows, (1, 2, 3)) == [(i, i + 1) for i in range(4)]
    with pytest.raises(TaskError, match=r"self\.steps, which is of the type builtins\.range"):
        run(spec_of(NotPickled), rows)
    news = assign(spec_of(Pickled), table_of(rows), router_of(spec_of(Pickled), TOTAL))
    _, rows_ = advance(spec_of(Pickled), range(5), nothing(), news, MIN_US, 9, "w", total=TOTAL)
    state = opened([rows_], range(5))
    late = assign(spec_of(Pickled), table_of([at(20)]), router_of(spec_of(Pickled), TOTAL))
    with pytest.raises(StateError, match="the class must keep its state as it did"):
        advance(spec_of(NotPickled), range(5), state, late, 9, MAX_US, "w", total=TOTAL)


class Wrong(Process):
    """Does one thing wrong, as told."""

    output = {"n": "bigint", "s": "string"}  # noqa: RUF012

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def on_tuple(self, tuple: Any, keys: list[str]) -> Any:
        return self._answer(self, tuple)

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        pass


def lazily(self: Wrong, tuple: Any) -> Iterator[Any]:
    yield 1, "x"
    raise KeyError("word")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lazily,
            "Wrong.on_tuple must not raise; got KeyError: 'word'. "
            "Fix the class; the run continues from the last committed batch.",
        ),
        (
            lambda s, t: t.w,
            "Wrong.on_tuple must not raise; got AttributeError: the tuple has no column w; "
            "there are ts, k, v, src. "
            "Fix the class; the run continues from the last committed batch.",
        ),
        (lambda s, t: "text", "Wrong.on_tuple must return rows: dicts, tuples, or a list of them"),
        (lambda s, t: [5], "Wrong.on_tuple must give dicts or tuples as rows; got a row of type"),
        (lambda s, t: {"n": 1}, "Wrong.on_tuple must give rows of n, s; got n."),
        (lambda s, t: {"n": 1, "s": "", "x": 1}, "must give rows of n, s; got n, s, x."),
        (lambda s, t: (1,), "Wrong.on_tuple must give rows of n, s; got 1 values."),
        (lambda s, t: (1.5, ""), "Wrong.on_tuple must give bigint as n; got 1.5."),
        (lambda s, t: (True, ""), "Wrong.on_tuple must give bigint as n; got True."),
        (
            lambda s, t: (2**64, ""),
            "Wrong.on_tuple must give bigint as n; got 18446744073709551616",
        ),
        (lambda s, t: (1, 2), "Wrong.on_tuple must give string as s; got 2."),
        (lambda s, t: s.wake(t.ts), "ValueError: wake needs a method on_frontier(ts) in the class"),
    ],
)
def test_mistakes_name_the_class_the_bucket_and_the_time(answer: Any, message: str) -> None:
    good = at(1_000_000, v=1)
    bad = at(1_500_000, v=2)
    spec = spec_of(lambda: Wrong(lambda s, t: (1, "x") if t.v == 1 else answer(s, t)))
    with pytest.raises(TaskError) as caught:
        run(spec, [good, bad])
    where = f"test, bucket {bucket('a')}, tuple at 1970-01-01T00:00:01.500000Z: "
    assert str(caught.value).startswith(where)
    assert message in str(caught.value)


class WrongTimer(Process):
    output = {"n": "bigint"}  # noqa: RUF012

    def __init__(self, first: Any, then: Any = None) -> None:
        self._first, self._then = first, then

    def on_tuple(self, tuple: Any, keys: list[str]) -> None:
        self.wake(self._first(tuple.ts))

    def on_frontier(self, ts: datetime) -> Any:
        return self._then(self, ts)

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (
            lambda ts: ts - US,
            None,
            "tuple at 1970-01-01T00:00:01Z: WrongTimer.on_tuple must not raise; got ValueError: "
            "wake(1970-01-01T00:00:00.999999Z) must not be before the tuple at work, "
            "1970-01-01T00:00:01Z",
        ),
        (
            lambda ts: ts,
            lambda s, ts: s.wake(ts),
            "timer at 1970-01-01T00:00:01Z: WrongTimer.on_frontier must not raise; got ValueError: "
            "wake(1970-01-01T00:00:01Z) must be after the timer at work, 1970-01-01T00:00:01Z",
        ),
        (lambda ts: MAX_US - 1, None, "is outside the years 1 to 9999"),
        (lambda ts: "soon", None, "TypeError: a time is a datetime or whole microseconds"),
        (
            lambda ts: ts,
            lambda s, ts: s.wake(ts + US),
            "the timers of WrongTimer must come to an end when the input has; got 100,000 in a row "
            "that asked for the next one. Call wake() in on_frontier only while there is",
        ),
        (
            lambda ts: ts,
            lambda s, ts: [(1,), ("one",)],
            "timer at 1970-01-01T00:00:01Z: WrongTimer.on_frontier must give bigint as n; got 'one",
        ),
    ],
)
def test_mistakes_with_timers(first: Any, then: Any, message: str) -> None:
    with pytest.raises(TaskError) as caught:
        run(spec_of(lambda: WrongTimer(first, then)), [at(1_000_000)])
    assert message in str(caught.value)


class WrongBatch(Process):
    output = {"n": "bigint"}  # noqa: RUF012

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def process(self, batch: pa.Table) -> Any:
        return self._answer(batch)

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda b: 1 // 0, "WrongBatch.process must not raise; got ZeroDivisionError"),
        (lambda b: [(1,)], "WrongBatch.process must return an Arrow table; got list"),
        (lambda b: pa.table({"n": [1]}), "must return the columns n, row; got n"),
        (lambda b: pa.table({"n": [1], "row": [2]}), "name rows from 0 to 1 as row; got 2"),
        (lambda b: pa.table({"n": [1], "row": [-1]}), "name rows from 0 to 1 as row; got -1"),
        (lambda b: pa.table({"n": [1], "row": ["0"]}), "give integers as row; got string"),
        (lambda b: pa.table({"n": ["x"], "row": [0]}), "WrongBatch.process must give bigint as n"),
    ],
)
def test_mistakes_with_batches(answer: Any, message: str) -> None:
    with pytest.raises(TaskError) as caught:
        run(spec_of(lambda: WrongBatch(answer)), [at(1_000_000), at(3_000_000)])
    span = "tuples from 1970-01-01T00:00:01Z to 1970-01-01T00:00:03Z: "
    assert str(caught.value).startswith(f"test, bucket {bucket('a')}, {span}")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda b, t: 1 // 0, "Seen.filter must not raise; got ZeroDivisionError"),
        (lambda b, t: [True], "filter must return one boolean per row; got 1 for 2"),
        (lambda b, t: ["x", "y"], "filter must return booleans"),
    ],
)
def test_mistakes_with_filters(answer: Any, message: str) -> None:
    with pytest.raises(TaskError) as caught:
        run(spec_of(Seen, filter=answer), [at(1), at(2)])
    assert message in str(caught.value)


def test_mistakes_with_functions_of_keys() -> None:
    def short(tuples: pa.Table) -> pa.Array:
        return pa.array(["a"][: tuples.num_rows], pa.string())

    with pytest.raises(TaskError, match="must return string keys for 2 tuples; got string for 1"):
        run(spec_of(Seen, short), [at(1), at(2)])

    def broken(tuples: pa.Table) -> pa.Array:
        assert not tuples.num_rows, "no"
        return pa.array([], pa.string())

    with pytest.raises(TaskError, match="function of the keys must not raise; got AssertionError"):
        run(spec_of(Seen, broken), [at(1)])


def test_the_state_is_checked_in_every_batch() -> None:
    class Turning(Process):
        output = {"n": "bigint"}  # noqa: RUF012

        def on_tuple(self, tuple: Any, keys: list[str]) -> None:
            self.words = {"a": [1, {2: object() if tuple.v == 2 else 3}]}

    with pytest.raises(TaskError) as caught:
        run(spec_of(Turning), [at(1, v=1), at(2, v=2)], (2,))
    assert str(caught.value) == (
        f"test, bucket {bucket('a')}, tuple at 1970-01-01T00:00:00.000002Z: the state of Turning "
        "must be made of plain values; got self.words['a'][1][2], which is of the type "
        "builtins.object. Keep numbers, texts, times, lists, dicts, sets, Arrow data or numpy "
        "arrays, each in one place; write snapshot() and restore(state); or set pickle = True in "
        "the class."
    )


def test_bucket_is_not_known_before_the_object_is_at_work() -> None:
    class Early(Seen):
        def __init__(self) -> None:
            super().__init__()
            self.mine = self.bucket

    spec = ProcessSpec(Early, COLUMNS, ("k",), (("n", pa.int64()),), None, "Early")
    with pytest.raises(TaskError, match="bucket can be used when the object is at work, not in"):
        run(spec, [at(1)])


def test_tuples_of_buckets_that_are_not_here_are_refused() -> None:
    spec = spec_of(Seen)
    news = assign(spec, table_of([at(5)]), router_of(spec, TOTAL))
    with pytest.raises(ValueError, match="which are not owned here"):
        advance(spec, [(bucket("a") + 1) % TOTAL], nothing(), news, MIN_US, 9, "w", total=TOTAL)
    with pytest.raises(ValueError, match=r"tuples outside \[0, 5\)"):
        advance(spec, range(TOTAL), nothing(), news, 0, 5, "w", total=TOTAL)
