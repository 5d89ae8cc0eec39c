"""Sources that join and leave the gate, and what a restart knows of them."""

from __future__ import annotations

import pytest

from tests.gate.test_intake import Feeding, Scripted, consumed, intake_of
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import GateError, SourceError
from tidegate.gate.intake import Intake


def restarted(intake: Intake, *sources: Scripted, disorder: int = 0) -> Intake:
    """A new process: the sources of the query are there again, the joined ones are not."""
    again = Intake(intake.hold)
    again.restore(intake.frontier_us, intake.saved())
    for source in sources:
        again.add(0, Feeding([source], more=not source.closed), disorder)
    return again


def test_a_tuple_below_a_promise_stays_late_while_others_wait():
    a = Scripted("a", [50])
    intake = intake_of(a, disorder=50)
    joined = Scripted("b", [105, 60])
    intake.join(0, Feeding([joined], more=True), 50, promised_us=100)
    first = intake.next_cut(10, 0.0)
    late = {p.track.source.id: p.slice.late_rows for p in first.parts}
    assert late == {"a": 0, "b": 1}
    a.values.append(400)
    joined.values.append(400)
    second = intake.next_cut(10, 0.0)
    rows = consumed(first, [a, joined]) + consumed(second, [a, joined])
    assert [ts for ts, *_ in rows] == [50, 105]


def test_a_source_that_joins_without_a_promise_starts_at_the_frontier():
    a = Scripted("a", [1, 50])
    intake = intake_of(a)
    assert intake.next_cut(10, 0.0).frontier_us == 50
    joined = Scripted("b", [49, 70])
    intake.join(0, Feeding([joined], more=True), 0)
    cut = intake.next_cut(10, 0.0)
    assert cut.frontier_us == 50
    assert next(p for p in cut.parts if p.track.source.id == "b").slice.late.tolist() == [1, 0]


def test_a_source_that_has_joined_holds_the_frontier_until_it_speaks():
    a = Scripted("a", [1, 50])
    intake = intake_of(a)
    intake.next_cut(10, 0.0)
    joined = Scripted("b")
    intake.join(0, Feeding([joined], more=True), 0, promised_us=60)
    a.values.append(90)
    assert intake.next_cut(10, 0.0).frontier_us == 60
    joined.values.append(80)
    assert intake.next_cut(10, 0.0).frontier_us == 80


def test_a_source_that_left_stays_away_after_a_restart():
    a, b = Scripted("a", [1, 9]), Scripted("b", [2])
    intake = Intake(hold=False)
    for source in (a, b):
        intake.add(0, Feeding([source], more=True), 0)
    assert intake.next_cut(10, 0.0).frontier_us == 2
    intake.remove("b")
    assert intake.next_cut(10, 0.0).frontier_us == 9
    b.values.append(3)
    again = restarted(intake, a, b)
    a.values.append(12)
    cut = again.next_cut(10, 0.0)
    assert (cut.frontier_us, cut.rows) == (12, 1)


def test_a_source_at_two_places_of_a_query_leaves_both():
    one = Scripted("a", [5])
    intake = Intake(hold=False)
    intake.add(0, Feeding([one], more=True), 0)
    intake.add(1, Feeding([one], more=True), 0)
    intake.next_cut(10, 0.0)
    intake.remove("a")
    assert intake.next_cut(10, 0.0).frontier_us == MAX_US


def test_a_joined_source_with_a_uri_is_listed_for_the_next_start():
    intake = intake_of(Scripted("a", [1, 50]))
    intake.next_cut(10, 0.0)
    intake.join(0, Feeding([Scripted("b.csv", [60])], more=True), 0, uri="b.csv")
    intake.next_cut(10, 0.0)
    again = Intake(hold=True)
    again.restore(intake.frontier_us, intake.saved())
    (joined,) = again.joined_before()
    assert (joined.stream, joined.uri) == (0, "b.csv")


def test_a_joined_source_goes_on_after_a_restart_where_it_was():
    a, b = Scripted("a", [1, 50]), Scripted("b", [60, 70])
    intake = intake_of(a)
    intake.next_cut(10, 0.0)
    intake.join(0, Feeding([b], more=True), 0)
    a.values += [80]
    first = intake.next_cut(10, 0.0)
    again = restarted(intake, a)
    assert again.join(0, Feeding([b], more=True), 0).place == intake.inlets[-1].place
    a.values += [90]
    b.values += [90]
    second = again.next_cut(10, 0.0)
    assert (first.frontier_us, second.frontier_us, second.rows) == (70, 90, 2)
    rows = consumed(first, [a, b]) + consumed(second, [a, b])
    assert [ts for ts, *_ in rows] == [50, 60, 70, 80]


def test_a_joined_source_that_is_not_back_yet_holds_the_frontier():
    a, b = Scripted("a", [1, 50]), Scripted("b", [60])
    intake = intake_of(a)
    intake.next_cut(10, 0.0)
    intake.join(0, Feeding([b], more=True), 0)
    intake.next_cut(10, 0.0)
    again = restarted(intake, a)
    again.check_complete()
    a.values += [90]
    assert again.next_cut(10, 0.0).frontier_us == intake.frontier_us == 50
    again.join(0, Feeding([b], more=True), 0)
    assert again.next_cut(10, 0.0).frontier_us == 60


def test_a_joined_source_that_had_ended_does_not_hold_anything_after_a_restart():
    a, b = Scripted("a", [1, 50]), Scripted("b", [60], closed=True)
    intake = Intake(hold=False)
    intake.add(0, Feeding([a], more=True), 0)
    intake.next_cut(10, 0.0)
    intake.join(0, Feeding([b]), 0)
    intake.next_cut(10, 0.0)
    again = restarted(intake, a)
    a.values += [90]
    assert again.next_cut(10, 0.0).frontier_us == 90
    again.join(0, Feeding([b]), 0)
    a.values += [95]
    cut = again.next_cut(10, 0.0)
    assert (cut.frontier_us, cut.rows) == (95, 1)


def test_the_newest_tuple_of_all_is_known_when_its_source_is_gone():
    a, b = Scripted("a", [1, 50]), Scripted("b", [60], closed=True)
    intake = Intake(hold=False)
    intake.add(0, Feeding([a], more=True), 0)
    assert intake.next_cut(10, 0.0).newest_us == 50
    intake.join(0, Feeding([b]), 0)
    assert intake.next_cut(10, 0.0).newest_us == 60
    a.values, a.closed = [1, 50, 55], True
    cut = restarted(intake, a).next_cut(10, 0.0)
    assert (cut.frontier_us, cut.newest_us) == (MAX_US, 60)


def test_two_joined_sources_of_one_name_come_back_in_their_order():
    a, b, c = Scripted("a", [1, 50]), Scripted("m", [60]), Scripted("m", [61, 62])
    intake = Intake(hold=False)
    intake.add(0, Feeding([a], more=True), 0)
    intake.next_cut(10, 0.0)
    places = [intake.join(0, Feeding([s], more=True), 0).place for s in (b, c)]
    intake.next_cut(10, 0.0)
    again = restarted(intake, a)
    assert [again.join(0, Feeding([s], more=True), 0).place for s in (b, c)] == places
    assert again.next_cut(10, 0.0) is None


def test_the_same_source_joins_once():
    intake = intake_of(Scripted("a", [1, 50]))
    feeding = Feeding([Scripted("b", [60])], more=True)
    first = intake.join(0, feeding, 0)
    assert intake.join(0, feeding, 0) is first
    named = intake.join(0, Feeding([Scripted("c.csv", [60])]), 0, uri="c.csv")
    assert intake.join(0, Feeding([Scripted("c.csv", [60])]), 0, uri="c.csv") is named
    assert len(intake.inlets) == 3


def test_a_source_that_has_left_cannot_join_again():
    intake = intake_of(Scripted("a", [1, 50]))
    intake.join(0, Feeding([Scripted("c.csv", [60])], more=True), 0, uri="c.csv")
    intake.remove("c.csv")
    with pytest.raises(GateError, match=r"c\.csv: has left this query"):
        intake.join(0, Feeding([Scripted("c.csv", [60])], more=True), 0, uri="c.csv")


def test_a_source_that_is_not_back_yet_can_leave():
    a, b = Scripted("a", [1, 50]), Scripted("b", [60])
    intake = Intake(hold=False)
    intake.add(0, Feeding([a], more=True), 0)
    intake.next_cut(10, 0.0)
    intake.join(0, Feeding([b], more=True), 0)
    intake.next_cut(10, 0.0)
    again = restarted(intake, a)
    again.remove("b")
    a.values += [90]
    assert again.next_cut(10, 0.0).frontier_us == 90
    assert [s["removed"] for s in again.saved() if s["id"] == "b"] == [True]


def test_a_source_whose_tuples_wait_must_come_back_before_it_leaves():
    a, b = Scripted("a", [1, 50]), Scripted("b", [60, 70])
    intake = intake_of(a)
    intake.next_cut(10, 0.0)
    intake.join(0, Feeding([b], more=True), 0)
    intake.next_cut(10, 0.0)
    again = restarted(intake, a)
    with pytest.raises(GateError, match="b: tuples of it wait"):
        again.remove("b")


def test_a_source_read_to_its_end_must_be_there_while_its_tuples_wait():
    a, b = Scripted("a", [1, 2]), Scripted("b", [5, 6], closed=True)
    intake = intake_of(a, b)
    assert intake.next_cut(10, 0.0).frontier_us == 2
    again = restarted(intake, a)
    with pytest.raises(SourceError, match="b: was read up to row 2"):
        again.check_complete()


def test_a_source_with_tuples_to_read_is_not_silent():
    """A replay takes the oldest tuples first: those of the other source just have to wait."""
    a, b = Scripted("a", [1, 2, 3, 100, 200]), Scripted("b", [100, 70])
    intake = Intake(hold=True)
    intake.add(0, Feeding([a], more=True), 0)
    intake.add(1, Feeding([b], more=True), 50, idle_us=5_000_000)
    late = 0
    for now in range(0, 70, 10):
        cut = intake.next_cut(1, float(now))
        late += sum(p.slice.late_rows for p in cut.parts) if cut else 0
    assert late == 0
    assert intake.frontier_us > MIN_US


def test_a_uri_that_joined_may_be_among_those_the_next_run_starts_with():
    a, b = Scripted("a.csv", [1, 50]), Scripted("b.csv", [60, 70])
    intake = Intake(hold=False)
    intake.add(0, Feeding([a], more=True), 0, uri="a.csv")
    intake.next_cut(10, 0.0)
    intake.join(0, Feeding([b], more=True), 0, uri="b.csv")
    assert intake.next_cut(1, 0.0).rows == 1
    again = Intake(hold=False)
    again.restore(intake.frontier_us, intake.saved())
    again.add(0, Feeding([a], more=True), 0, uri="a.csv")
    again.add(0, Feeding([b], more=True), 0, uri="b.csv")
    assert again.joined_before() == []
    assert again.next_cut(10, 0.0).rows == 1
