"""A cut that is made while the batch before it runs, beside a gate that cuts in turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate.test_intake import Scripted, consumed, intake_of
from tidegate.errors import SourceError
from tidegate.gate.intake import Intake

columns = st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=4)


def saved_after(intake: Intake) -> object:
    """What the manifest of the newest batch has of the gate."""
    with intake.before_ahead():
        intake.write_names(None, 0)  # sources in memory have no names to write
        found = intake.saved(), intake.frontier_us, intake.standing()
        intake.forget()
    return found


@given(columns, st.booleans(), st.data())
def test_batches_are_the_same_whether_they_are_cut_ahead_or_not(values, hold, data):
    """Whatever becomes of the cut ahead: taken, dropped, or given up for another limit."""
    sources = [Scripted(f"s{i}", sorted(v), closed=True) for i, v in enumerate(values)]
    ahead, plain = (intake_of(*sources, hold=hold) for _ in range(2))
    rows, limit = [], data.draw(st.integers(1, 9))
    for _ in range(60):
        cut, meant = ahead.take_ahead(limit) or ahead.next_cut(limit, 0.0), plain.next_cut(limit, 0)
        assert (cut.rows, cut.previous_us, cut.frontier_us) == (
            meant.rows,
            meant.previous_us,
            meant.frontier_us,
        )
        assert [p.slice.stop for p in cut.parts] == [p.slice.stop for p in meant.parts]
        if data.draw(st.booleans()) and not cut.exhausted:
            ahead.cut_ahead(limit, 0.0)
        if data.draw(st.booleans()):
            for gate in (ahead, plain):  # it did not fit into memory
                gate.undo()
            limit = data.draw(st.integers(1, 9))
            continue
        rows += consumed(cut, sources)
        assert saved_after(ahead) == saved_after(plain)
        if data.draw(st.booleans()):
            ahead.drop_ahead()
        if cut.exhausted:
            break
        if data.draw(st.booleans()):
            limit = data.draw(st.integers(1, 9))
    assert rows == sorted(rows)


def test_a_batch_that_more_may_come_for_is_not_cut_ahead():
    source = Scripted("a", [1, 2, 3])
    intake = intake_of(source)
    assert intake.next_cut(2, 0.0).rows == 2
    assert intake.cut_ahead(2, 0.0) is None
    source.values += [4, 5]
    assert intake.take_ahead(2) is None
    assert intake.next_cut(2, 0.0).rows == 2


def test_a_cut_ahead_that_fails_leaves_the_gate_as_it_was():
    class Broken(Scripted):
        def times(self, start, stop):
            if stop > 2:
                raise SourceError("a", "must be readable", "an error")
            return super().times(start, stop)

    intake = intake_of(Broken("a", [1, 2, 3, 4]), hold=False)
    assert intake.next_cut(2, 0.0).rows == 2
    before = intake.frontier_us, [t.position for i in intake.inlets for t in i.tracks.values()]
    with pytest.raises(SourceError):
        intake.cut_ahead(2, 0.0)
    after = intake.frontier_us, [t.position for i in intake.inlets for t in i.tracks.values()]
    assert (after, before) == ((2, [2]), (2, [2]))
    assert intake.take_ahead(2) is None
