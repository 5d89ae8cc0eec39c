"""Any series of operations on a gate object does what its plain twin does."""

from __future__ import annotations

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.conftest import LONG
from tests.gate.object import gate_of, ids, rows
from tests.oracle.gate_object import PlainGate, Refused
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import GateError

SOURCES = st.sampled_from(["a", "b", "c", "d"])
READERS = st.sampled_from(["r", "s", "t"])
STEPS = st.lists(st.one_of(st.none(), st.integers(-6, 9)), max_size=8)


def plain(time_us: int) -> float:
    return {MIN_US: -math.inf, MAX_US: math.inf}.get(time_us, time_us)


class GateMachine(RuleBasedStateMachine):
    @initialize(disorder=st.integers(0, 8))
    def begin(self, disorder: int) -> None:
        self.gate = gate_of(["a", "b"], disorder=disorder)
        self.twin = PlainGate(disorder, readers={"r": 0})
        for name in ("a", "b"):
            self.twin.announce(name, -math.inf)
        self.given = 0
        self.clock = 0

    def both(self, real, twin):
        """Do one operation on both; either both refuse it or both answer."""
        try:
            expected = twin()
        except Refused:
            try:
                real()
            except GateError:
                return None
            raise AssertionError("the twin refuses this") from None
        return real(), expected

    @rule(source=SOURCES, steps=STEPS)
    def append(self, source, steps):
        batch = []
        for step in steps:
            ts = None if step is None else self.clock + step
            self.clock = self.clock if ts is None else max(self.clock, ts)
            batch.append((ts, self.given))
            self.given += 1
        done = self.both(
            lambda: self.gate.append(source, rows(batch)), lambda: self.twin.append(source, batch)
        )
        if done:
            told, (late, rejected) = done
            assert (ids(told.late), ids(told.rejected)) == (late, rejected)
            assert told.rows == len(batch) - len(late) - len(rejected)

    @rule(reader=READERS, most=st.one_of(st.none(), st.integers(0, 5)))
    def next_ready(self, reader, most):
        done = self.both(
            lambda: ids(self.gate.next_ready(reader, most)),
            lambda: self.twin.next_ready(reader, most),
        )
        assert done is None or done[0] == done[1]

    @rule(source=SOURCES, ahead=st.one_of(st.none(), st.integers(-20, 5)))
    def announce(self, source, ahead):
        promise = None if ahead is None else self.clock + ahead
        done = self.both(
            lambda: self.gate.announce(source, promise), lambda: self.twin.announce(source, promise)
        )
        if done:
            assert (plain(done[0].promise_us), done[0].positions[source]) == done[1]

    @rule(source=SOURCES)
    def remove(self, source):
        self.both(lambda: self.gate.remove(source), lambda: self.twin.remove(source))

    @rule(source=SOURCES)
    def end(self, source):
        self.both(lambda: self.gate.end(source), lambda: self.twin.end(source))

    @rule(reader=READERS, at=st.one_of(st.none(), READERS))
    def announce_readers(self, reader, at):
        self.both(
            lambda: self.gate.announce_readers(reader, at),
            lambda: self.twin.announce_reader(reader, at),
        )

    @rule(reader=READERS)
    def remove_readers(self, reader):
        self.both(lambda: self.gate.remove_readers(reader), lambda: self.twin.remove_reader(reader))

    @rule()
    def frontier(self):
        assert plain(self.gate.frontier()) == self.twin.frontier()

    @rule(reader=READERS)
    def wait(self, reader):
        """Says whether anything is ready, without waiting here."""
        if reader in self.twin.readers:
            there = len(self.twin.ready()) > self.twin.readers[reader]
            assert self.gate.wait(reader, timeout_s=0) == there

    @invariant()
    def keeps_what_some_reader_needs(self):
        if hasattr(self, "gate"):
            assert self.gate._ready.kept_rows() >= self.gate._ready.stop - self.twin.oldest


GateMachine.TestCase.settings = settings(max_examples=500 if LONG else 40, stateful_step_count=40)
TestGate = GateMachine.TestCase
