"""The gate object, operation by operation."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.gate.object import SCHEMA, gate_of, ids, rows, table
from tidegate.batch import MAX_US, MIN_US
from tidegate.calendar.microsecond import FIRST_US, LAST_US
from tidegate.errors import GateError, OptionError, SourceError
from tidegate.gate.gate import Gate


def test_tuples_of_one_time_come_by_source_and_sequence():
    gate = gate_of(["b", "a"])
    gate.append("a", rows([(1, 10), (1, 11), (3, 12)]))
    gate.append("b", rows([(1, 20), (2, 21), (3, 22)]))
    assert ids(gate.next_ready("r")) == [20, 10, 11, 21]
    gate.end("a")
    gate.end("b")
    assert ids(gate.next_ready("r")) == [22, 12]
    assert gate.frontier() == MAX_US


def test_a_reader_takes_no_more_than_it_asks_for():
    gate = gate_of(["a"])
    gate.append("a", rows([(t, t) for t in range(10)]))
    taken = [ids(gate.next_ready("r", most)) for most in (0, 4, 4, 4, None)]
    assert taken == [[], [0, 1, 2, 3], [4, 5, 6, 7], [8], []]
    with pytest.raises(OptionError, match="most: must be at least 0; got -1"):
        gate.next_ready("r", -1)


def test_a_source_that_has_not_spoken_holds_everything():
    gate = gate_of(["a", "b"])
    gate.append("a", rows([(1, 1), (2, 2)]))
    assert gate.frontier() == MIN_US
    assert gate.next_ready("r").num_rows == 0


def test_late_rows_and_rows_without_a_time_are_given_back_and_counted():
    gate = gate_of(["a"], disorder=5)
    told = gate.append("a", rows([(10, 0), (None, 1), (20, 2), (15, 3), (14, 4), (21, 5)]))
    assert (told.rows, ids(told.late), ids(told.rejected)) == (4, [4], [1])
    assert (gate.status().late_rows, gate.status().rejected_rows) == (1, 1)
    assert ids(gate.append("a", rows([(15, 6)])).late) == [6]
    gate.end("a")
    assert ids(gate.next_ready("r")) == [0, 3, 2, 5]


def test_event_times_are_those_of_the_years_1_to_9999():
    gate = gate_of(["a"])
    times = [MIN_US, FIRST_US - 1, FIRST_US, LAST_US, LAST_US + 1, MAX_US]
    told = gate.append("a", rows(list(zip(times, [0, 4, 1, 2, 5, 3]))))
    assert (told.rows, ids(told.rejected)) == (2, [0, 4, 5, 3])
    gate.end("a")
    assert ids(gate.next_ready("r")) == [1, 2]


def test_a_joining_source_must_not_promise_what_readers_have_passed():
    gate = gate_of(["a"])
    gate.append("a", rows([(1, 1), (50, 2)]))
    assert ids(gate.next_ready("r")) == [1]
    with pytest.raises(GateError, match=r"source b: .* from 50 us on; got a promise of 49 us"):
        gate.announce("b", 49)
    joined = gate.announce(["b", "c"], datetime.fromtimestamp(0, UTC) + timedelta(microseconds=60))
    assert (joined.promise_us, joined.positions) == (60, {"b": 1, "c": 2})
    gate.append("a", rows([(90, 3)]))
    assert gate.frontier() == 60
    assert ids(gate.append("b", rows([(59, 4), (70, 5)])).late) == [4]
    gate.remove("c")
    assert (gate.frontier(), ids(gate.next_ready("r"))) == (70, [2])


def test_a_source_may_join_below_what_was_appended_as_long_as_nobody_has_seen_it():
    gate = gate_of(["a"])
    gate.append("a", rows([(1, 1), (50, 2)]))
    gate.announce("b", 10)
    assert ids(gate.next_ready("r")) == [1]
    assert gate.frontier() == 10


def test_without_a_promise_a_source_joins_at_the_frontier():
    gate = gate_of(["a"])
    gate.append("a", rows([(50, 1)]))
    assert gate.announce("b").promise_us == 50


def test_what_a_source_has_appended_is_flushed_when_it_leaves():
    gate = gate_of(["a", "b"])
    gate.append("a", rows([(1, 1), (5, 2)]))
    gate.append("b", rows([(2, 3), (9, 4)]))
    gate.remove("a")
    assert ids(gate.next_ready("r")) == [1, 3, 2]
    with pytest.raises(GateError, match=r"source a: must be known; got no such source"):
        gate.append("a", rows([(6, 5)]))
    gate.remove("b")
    assert ids(gate.next_ready("r")) == [4]
    assert gate.frontier() == 10
    assert gate.announce("a").positions == {"a": 2}
    gate.append("a", rows([(9, 6), (12, 7)]))
    gate.end("a")
    assert ids(gate.next_ready("r")) == [7]


def test_nobody_joins_when_all_have_ended_and_readers_know_it():
    gate = gate_of(["a"])
    gate.end("a")
    gate.announce("b", 7)
    gate.end("b")
    assert gate.frontier() == MAX_US
    with pytest.raises(GateError, match="must join before all sources have ended"):
        gate.announce("c")
    with pytest.raises(GateError, match=r"source b: rows come before it ends or leaves"):
        gate.append("b", rows([(9, 1)]))


def test_names_are_used_once():
    gate = gate_of(["a"])
    with pytest.raises(GateError, match="source a: must not be here yet"):
        gate.announce(["b", "a"])
    with pytest.raises(GateError, match="reader q: must not be here yet"):
        gate.announce_readers(["q", "q"])
    assert (list(gate.status().sources), list(gate.status().readers)) == (["a"], ["r"])
    with pytest.raises(GateError, match=r"Did you mean r\?"):
        gate.next_ready("R")
    with pytest.raises(GateError, match="reader q: must be known"):
        gate.remove_readers(["r", "q"])
    with pytest.raises(GateError, match="source z: must be known"):
        gate.remove(["a", "z"])
    assert list(gate.status().readers) == ["r"]


def test_a_new_reader_starts_with_the_tuple_that_another_was_given_last():
    gate = gate_of(["a"], readers=["slow", "fast"])
    gate.append("a", rows([(t, t) for t in range(7)]))
    gate.next_ready("fast", 4)
    gate.next_ready("slow", 1)
    gate.announce_readers("beside", at="fast")
    gate.announce_readers(["old", "older"])
    assert ids(gate.next_ready("beside")) == [3, 4, 5]
    gate.announce_readers("same", at="old")
    assert ids(gate.next_ready("same", 2)) == [1, 2], "the other was given nothing yet"
    assert ids(gate.next_ready("old")) == ids(gate.next_ready("older")) == [1, 2, 3, 4, 5]


def test_what_all_readers_have_passed_is_freed():
    gate = gate_of(["a"], readers=["one", "two"])
    for start in range(0, 100, 10):
        gate.append("a", rows([(t, t) for t in range(start, start + 10)]))
        gate.next_ready("one")
    assert (gate.status().kept_rows, gate.status().waiting_rows) == (99, 1)
    gate.next_ready("two", 50)
    assert gate.status().kept_rows == 50
    gate.remove_readers("two")
    assert gate.status().kept_rows == 10, "those that became ready with the last one"
    gate.announce_readers("late", at="one")
    assert ids(gate.next_ready("late")) == [98]
    gate.remove_readers("late")
    gate.remove_readers("one")
    gate.append("a", rows([(200, 200), (300, 300)]))
    gate.announce_readers("three")
    assert ids(gate.next_ready("three")) == [99, 200]


def test_memory_stays_bounded_over_a_long_run():
    gate = gate_of(["a", "b"])
    before = pa.total_allocated_bytes()
    for turn in range(200):
        times = np.arange(turn * 1000, turn * 1000 + 1000)
        for source in ("a", "b"):
            gate.append(source, table(times, times))
        gate.next_ready("r")
    assert pa.total_allocated_bytes() - before < 10 * 2 * 1000 * 16


def test_a_merge_that_breaks_off_loses_nothing(monkeypatch):
    gate = gate_of(["a", "b"])
    for start in (0, 10):
        for number, source in enumerate("ab"):
            gate.append(source, rows([(t, 2 * t + number) for t in range(start, start + 10)]))
        gate.frontier()
    with monkeypatch.context() as patched:
        patched.setattr("tidegate.gate.merge.merge_ready", Mock(side_effect=MemoryError))
        for most in (None, 5):
            with pytest.raises(MemoryError):
                gate.next_ready("r", most)
    assert gate.status().readers == {"r": 0}
    assert [ids(gate.next_ready("r", most)) for most in (20, None)] == [
        list(range(20)),
        list(range(20, 38)),
    ]


def test_the_first_rows_decide_the_columns():
    gate = tg.Gate(time="at", sources=["a"], readers=["r"])
    assert gate.next_ready("r").schema == pa.schema([])
    assert gate.append("a", []).rows == 0
    gate.append("a", [{"at": datetime(2024, 1, 1), "v": 1}])
    gate.append("a", [{"at": datetime(2024, 1, 1, tzinfo=UTC)}])
    with pytest.raises(SourceError, match="source a: rows must have the columns at, v; got column"):
        gate.append("a", [{"at": datetime(2024, 1, 1), "w": 1}])
    gate.end("a")
    assert gate.next_ready("r").column("v").to_pylist() == [1, None]


def test_wrong_rows_are_refused_whole_and_decide_nothing():
    gate = Gate(time="ts", sources=["a"], readers=["r"])
    with pytest.raises(SourceError, match="source a: the time column must be there"):
        gate.append("a", [{"t": datetime(2024, 1, 1)}])
    with pytest.raises(SourceError, match="must be a timestamp or a date; got string"):
        gate.append("a", [{"ts": "yesterday"}])
    with pytest.raises(SourceError, match="gate: the time column must be there"):
        Gate(time="t", schema=SCHEMA)
    with pytest.raises(OptionError, match="disorder: must be from 0 to 10,000 years; got -1"):
        Gate(time="ts", disorder=timedelta(seconds=-1))
    gate.append("a", rows([(1, 1)]))
    gate.end("a")
    assert ids(gate.next_ready("r")) == [1]


def test_wait_returns_when_tuples_are_ready_and_when_all_have_ended():
    gate = gate_of(["a"], readers=["r", "gone"])
    assert not gate.wait("r", timeout_s=0)
    found: list[int] = []

    def read() -> None:
        while gate.wait("r"):
            found.extend(ids(gate.next_ready("r", 3)))

    reader = threading.Thread(target=read)
    reader.start()
    for t in range(50):
        gate.append("a", rows([(t, t)]))
    gate.end("a")
    reader.join(30)
    assert found == list(range(50))
    gate.remove_readers("gone")
    with pytest.raises(GateError, match="reader gone: must be known"):
        gate.wait("gone")
