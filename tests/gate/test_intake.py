"""Cuts, waiting tuples, joining and leaving, and restarts of the gate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gate.unread import UnreadSource
from tests.oracle.gate import PlainSource, plain_frontier
from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Connector
from tidegate.errors import GateError, SourceError
from tidegate.gate.extent import silent_of
from tidegate.gate.intake import Intake
from tidegate.gate.rewind import Goal, rewound


@dataclass
class Scripted(UnreadSource):
    """A source whose tuples arrive when the test says so."""

    id: str
    values: list[int | None] = field(default_factory=list)
    closed: bool = False

    def extend(self, rows):
        return len(self.values)

    def ended(self):
        return self.closed

    def times(self, start, stop):
        part = self.values[start:stop]
        array = np.array([0 if v is None else v for v in part], np.int64)
        return array, np.array([v is not None for v in part], np.bool_)


@dataclass
class Feeding(Connector):
    sources: list[Scripted]
    more: bool = False

    def discover(self):
        return list(self.sources)

    def live(self):
        return self.more


def intake_of(*sources, hold=True, disorder=0):
    intake = Intake(hold)
    for source in sources:
        intake.add(0, Feeding([source]), disorder)
    return intake


def consumed(cut, sources):
    """The tuples a batch consumes: in time, from the previous frontier up to the new one."""
    rows = []
    for part in cut.parts:
        values = next(s for s in sources if s.id == part.track.source.id).values
        for place in range(part.slice.start, part.slice.stop):
            ts = values[place]
            late = part.slice.late is not None and part.slice.late[place - part.slice.start]
            if ts is not None and not late and cut.previous_us <= ts < cut.frontier_us:
                rows.append((ts, part.stream, part.track.order, place))
    return sorted(rows)


source_values = st.lists(st.integers(0, 30), max_size=12)


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(source_values, min_size=1, max_size=4), st.integers(0, 5), st.data())
def test_any_interleaving_and_cut_gives_the_same_total_order(columns, disorder, data):
    """The concatenation of what batches consume is the sorted list of tuples in time."""
    expected = []
    for order, values in enumerate(columns):
        plain = PlainSource(disorder)
        expected += [(ts, 0, order, seq) for seq, ts in enumerate(values) if plain.speak(seq, ts)]
    sources = [Scripted(str(i)) for i in range(len(columns))]
    intake = intake_of(*sources, disorder=disorder)
    left = [list(c) for c in columns]
    found = []
    while True:
        for source, rest in zip(sources, left, strict=True):
            count = data.draw(st.integers(0, len(rest)))
            source.values += rest[:count]
            del rest[:count]
            source.closed = not rest
        limit = data.draw(st.integers(1, 20))
        cut = intake.next_cut(limit, now=0.0)
        if cut is not None:
            assert cut.rows <= limit
            found += consumed(cut, sources)
            if cut.exhausted:
                break
    assert found == sorted(expected)
    assert intake.frontier_us == MAX_US


@given(st.lists(source_values.map(sorted), min_size=1, max_size=4), st.integers(1, 9))
def test_a_replay_is_cut_in_time_order_by_exactly_the_limit(columns, limit):
    sources = [Scripted(str(i), list(c), closed=True) for i, c in enumerate(columns)]
    intake = intake_of(*sources)
    merged = sorted((ts, i, s) for i, c in enumerate(columns) for s, ts in enumerate(c))
    taken = []
    while (cut := intake.next_cut(limit, 0.0)) is not None:
        new = []
        for part in cut.parts:
            place = int(part.track.source.id)
            new += [
                (columns[place][s], place, s) for s in range(part.slice.new_from, part.slice.stop)
            ]
        assert cut.rows == len(new)
        taken.append(sorted(new))
        if cut.exhausted:
            break
    assert [row for batch in taken for row in batch] == merged
    assert all(len(batch) == limit for batch in taken[:-1])


def test_the_frontier_follows_the_plain_twin():
    a, b = Scripted("a", [1, 5, 9]), Scripted("b", [2, 4])
    intake = intake_of(a, b)
    cut = intake.next_cut(100, 0.0)
    plain = [PlainSource(0, 9), PlainSource(0, 4)]
    assert cut.frontier_us == plain_frontier(plain) == 4
    assert consumed(cut, [a, b]) == [(1, 0, 0, 0), (2, 0, 1, 0)]


def test_equal_timestamps_never_straddle_two_batches():
    a, b = Scripted("a", [1, 4]), Scripted("b", [4])
    intake = intake_of(a, b)
    first = consumed(intake.next_cut(100, 0.0), [a, b])
    a.values += [4, 6]
    b.values += [4, 7]
    second = consumed(intake.next_cut(100, 0.0), [a, b])
    assert [ts for ts, *_ in first] == [1]
    assert [ts for ts, *_ in second] == [4, 4, 4, 4]


def test_a_source_file_promises_its_first_time_before_it_is_read():
    first = Scripted("a", [1, 2, 3], closed=True)
    later = Scripted("b", [100, 101], closed=True)
    intake = Intake(hold=False)
    intake.add(0, Feeding([first, later]), 0)
    cut = intake.next_cut(2, 0.0)
    assert cut.frontier_us == 2


def test_a_joining_source_must_not_promise_what_readers_have_passed():
    intake = intake_of(Scripted("a", [1, 50]))
    intake.next_cut(10, 0.0)
    with pytest.raises(
        GateError, match="must promise event times from 50 us on; got a promise of 20"
    ):
        intake.add(0, Feeding([Scripted("b")]), 0, promised_us=20)
    intake.add(0, Feeding([Scripted("b", [60])]), 0, promised_us=50)
    assert intake.next_cut(10, 0.0).frontier_us == MIN_US or intake.frontier_us == 50


def test_a_promise_broken_makes_the_tuple_late():
    a = Scripted("a", [1, 50])
    intake = intake_of(a)
    intake.next_cut(10, 0.0)
    joined = Scripted("b", [49, 51])
    intake.add(0, Feeding([joined]), 0, promised_us=50)
    cut = intake.next_cut(10, 0.0)
    part = next(p for p in cut.parts if p.track.source.id == "b")
    assert part.slice.late.tolist() == [True, False]


def test_a_leaving_source_is_flushed_and_lets_the_frontier_go():
    a, b = Scripted("a", [1, 9]), Scripted("b", [2])
    intake = intake_of(a, b)
    assert intake.next_cut(10, 0.0).frontier_us == 2
    intake.remove("b")
    cut = intake.next_cut(10, 0.0)
    assert cut.frontier_us == 9
    assert consumed(cut, [a, b]) == [(2, 0, 1, 0)]


def test_leaving_under_an_unknown_name_lists_the_known_ones():
    with pytest.raises(GateError, match="There are: a"):
        intake_of(Scripted("a")).remove("zz")


def test_an_idle_source_stops_holding_back_after_its_time():
    a, b = Scripted("a", [1, 9]), Scripted("b", [2])
    intake = Intake(hold=True)
    intake.add(0, Feeding([a]), 0, idle_us=None)
    intake.add(0, Feeding([b]), 0, idle_us=5_000_000)
    assert intake.next_cut(10, now=0.0).frontier_us == 2
    assert intake.next_cut(10, now=4.0) is None
    assert intake.next_cut(10, now=5.0).frontier_us == 9


def test_of_several_sources_of_one_uri_the_silent_ones_are_let_go():
    a, b, c = Scripted("a", [1, 9]), Scripted("b", [2]), Scripted("c", [])
    intake = Intake(hold=True)
    intake.add(0, Feeding([a, b, c]), 0, idle_us=5_000_000)
    assert intake.next_cut(10, now=0.0).frontier_us == MIN_US
    assert intake.next_cut(10, now=4.0) is None
    a.values.append(12)
    assert intake.next_cut(10, now=4.0).frontier_us == MIN_US
    assert intake.next_cut(10, now=5.0).frontier_us == 12  # only a has spoken since
    assert intake.next_cut(10, now=9.0) is None  # all are silent: no further than the newest
    a.values.append(20)
    b.values.append(15)
    assert intake.next_cut(10, now=10.0).frontier_us == 15


def test_a_source_that_begins_later_is_cut_once_more_from_there():
    source = Scripted("a", [1, 2, 3, 4, 5, 6])
    source.first = 3
    source.absent = lambda start, stop: len(range(start, stop)) // 2
    before = Intake(hold=True)
    before.add(0, Feeding([source], more=True), 0)
    cut = before.next_cut(10, now=0.0)
    assert (cut.rows, cut.absent_rows) == (3, 1)
    after = before.saved()
    assert (after[0]["first"], after[0]["position"]) == (3, 6)
    goal = Goal.of(after, rows=2, frontier_us=cut.frontier_us, finished=False)
    source.first = 6  # as one would say that begins with what comes next
    again = Intake(hold=True)
    again.restore(MIN_US, rewound((), after, None))
    again.add(0, Feeding([source], more=True), 0)
    same = again.cut_again(goal)
    assert (same.rows, same.frontier_us) == (cut.rows, cut.frontier_us)
    assert [(p.slice.start, p.slice.stop) for p in same.parts] == [(3, 6)]


def test_a_silent_source_that_holds_others_back_is_named():
    a, b = Scripted("a", [1, 9]), Scripted("b", [2])
    intake = Intake(hold=True)
    intake.add(3, Feeding([a, b]), 0)
    assert intake.next_cut(10, now=1.0).frontier_us == 2
    assert silent_of(intake.inlets, now=10.0, after_s=10.0) is None
    named = silent_of(intake.inlets, now=11.0, after_s=10.0)
    assert (named.stream, named.source, named.newest_us, named.spoke_at) == (3, "b", 2, 1.0)
    b.values.append(9)
    assert silent_of(intake.inlets, now=11.0, after_s=10.0) is None  # it has spoken
    assert intake.next_cut(10, now=12.0).frontier_us == 9
    assert silent_of(intake.inlets, now=30.0, after_s=10.0) is None  # nobody is ahead


@given(st.lists(source_values, min_size=1, max_size=3), st.integers(1, 4), st.integers(0, 4))
def test_a_restart_continues_exactly(columns, limit, disorder):
    sources = [Scripted(str(i), list(c), closed=True) for i, c in enumerate(columns)]

    def run(restarting):
        intake, found = intake_of(*sources, disorder=disorder), []
        while (cut := intake.next_cut(limit, 0.0)) is not None:
            found.append((consumed(cut, sources), cut.newest_us))
            if cut.exhausted:
                return found
            if restarting:
                saved, reached = intake.saved(), intake.frontier_us
                intake = Intake(hold=True)
                intake.restore(reached, saved)
                for source in sources:
                    intake.add(0, Feeding([source]), disorder)
        return found

    assert run(restarting=True) == run(restarting=False)


def test_a_source_that_is_gone_at_a_restart_is_named():
    intake = intake_of(Scripted("rides.csv", [1, 2, 3]))
    intake.next_cut(2, 0.0)
    again = Intake(hold=True)
    again.restore(intake.frontier_us, intake.saved())
    with pytest.raises(SourceError, match=r"rides\.csv: was read up to row 2"):
        again.check_complete()


def test_a_new_file_of_a_followed_folder_joins_in_order():
    folder = Feeding([Scripted("1.csv", [1, 5], closed=True)], more=True)
    intake = Intake(hold=False)
    intake.add(0, folder, 0)
    assert intake.next_cut(10, 0.0).frontier_us == 5
    folder.sources.append(Scripted("2.csv", [4, 8], closed=True))
    intake.discover(1.0)
    cut = intake.next_cut(10, 1.0)
    assert cut.frontier_us == 8
    assert cut.parts[0].slice.late.tolist() == [True, False]
