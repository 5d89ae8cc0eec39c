"""Concurrent histories of the gate object are explained by single calls, one after the other."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, permutations

import pytest

from tests.conftest import LONG
from tests.gate.history import REFUSED, Call, Event, Recorder, eager_switching, explained, run_all
from tests.gate.object import gate_of, ids, rows
from tests.oracle.gate_object import PlainGate
from tests.seed import seeds
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import GateError
from tidegate.gate.gate import Gate


def plain(time_us: int) -> float:
    return {MIN_US: -math.inf, MAX_US: math.inf}.get(time_us, time_us)


def on_gate(gate: Gate, call: Call) -> object:
    """Do a call of the twin on the gate, and give the answer in the twin's terms."""
    name, arguments = call
    try:
        if name == "append":
            told = gate.append(arguments[0], rows(arguments[1]))
            return ids(told.late), ids(told.rejected)
        if name == "next_ready":
            return ids(gate.next_ready(*arguments))
        if name == "frontier":
            return plain(gate.frontier())
        if name == "announce":
            joined = gate.announce(*arguments)
            return plain(joined.promise_us), joined.positions[arguments[0]]
        if name == "announce_reader":
            return gate.announce_readers(*arguments)
        if name == "remove_reader":
            return gate.remove_readers(*arguments)
        return getattr(gate, name)(*arguments)
    except GateError:
        return REFUSED


def script(draw: random.Random, thread: int, calls: int) -> list[Call]:
    """What one thread does: its own rows in order, and anything else."""
    made: list[Call] = []
    clock = 0
    for number in range(calls):
        source = draw.choice(["a", "b", "c"])
        kinds = ["append"] * 4 + ["next_ready"] * 4
        kinds += ["frontier", "announce", "remove", "end", "announce_reader", "remove_reader"]
        kind = draw.choice(kinds)
        if kind == "append":
            clock += draw.randint(0, 4)
            batch = [
                (clock + k, thread * 1000 + number * 10 + k) for k in range(draw.randint(1, 3))
            ]
            made.append(("append", (source, batch)))
        elif kind == "next_ready":
            made.append((kind, (draw.choice("rs"), draw.choice([None, 2]))))
        elif kind == "frontier":
            made.append((kind, ()))
        elif kind == "announce":
            made.append((kind, (source, draw.choice([None, clock + 2]))))
        elif kind == "announce_reader":
            made.append((kind, (draw.choice("st"), draw.choice([None, "r"]))))
        elif kind == "remove_reader":
            made.append((kind, (draw.choice("st"),)))
        else:
            made.append((kind, (source,)))
    return made


def recorded(seed: int, threads: int, calls: int) -> list[Event]:
    draw = random.Random(seed)
    gate, recorder = gate_of(["a", "b"], readers=["r", "s"]), Recorder()
    scripts = [script(draw, thread, calls) for thread in range(threads)]

    def work(mine: list[Call]) -> None:
        for call in mine:
            recorder.record(call, partial(on_gate, gate))

    run_all([lambda mine=mine: work(mine) for mine in scripts])
    return recorder.events


def twin() -> PlainGate:
    start = PlainGate(readers={"r": 0, "s": 0})
    for name in ("a", "b"):
        start.announce(name, -math.inf)
    return start


ENOUGH, MOST_TURNS = 20, 20
"""Calls that overlapped, and how often all is done again until there are more than so many.

Who runs when is up to the system: on a machine with much else to do, threads may take turns.
"""


@pytest.mark.parametrize("part", range(4))
def test_every_history_is_explained_by_single_calls(part):
    overlapping = 0
    with eager_switching():
        for _ in range(MOST_TURNS):
            for seed in seeds(1000 if LONG else 80):
                events = recorded(4 * seed + part, threads=3, calls=5)
                assert explained(events, twin()), f"seed {seed}: {events}"
                ordered = sorted(events, key=lambda e: e.began)
                overlapping += sum(b.began < a.returned for a, b in pairwise(ordered))
            if overlapping > ENOUGH:
                break
    assert overlapping > ENOUGH, "the threads took turns: this shows nothing"


class Interrupting:
    """A lock that lets others in each time it is given back: what may come between, comes."""

    def __init__(self) -> None:
        self._held = threading.Lock()
        self.meanwhile: list[Callable[[], None]] = []

    def acquire(self, *arguments: object) -> bool:
        return self._held.acquire(*arguments)

    def release(self) -> None:
        self._held.release()
        meanwhile, self.meanwhile = self.meanwhile, []
        for others in meanwhile[:1]:
            others()
            self.meanwhile = meanwhile[1:]

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


BETWEEN: list[Call] = [
    ("append", ("b", [(6, 80), (9, 81)])),
    ("announce_reader", ("t", "r")),
    ("next_ready", ("s", None)),
    ("next_ready", ("r", 2)),
    ("frontier", ()),
    ("announce", ("c", 4)),
    ("remove", ("b",)),
    ("end", ("a",)),
]


def interrupted(call: Call, point: int, others: Sequence[Call]) -> tuple[list[Event], PlainGate]:
    """A call with others at its point, then reads by all; and the twin as it was before."""
    gate, start, recorder = gate_of(["a", "b"], readers=["r", "s"]), twin(), Recorder()
    for source, first in (("a", 1), ("b", 2)):
        batch = [(first, first), (5, 10 * first), (6, 11 * first)]
        gate.append(source, rows(batch))
        start.append(source, batch)
    lock = gate._lock = Interrupting()
    gate._changed = threading.Condition(lock)

    def let_in() -> None:
        for other in others:
            recorder.record(other, partial(on_gate, gate))

    lock.meanwhile = [*([lambda: None] * point), let_in]
    recorder.record(call, partial(on_gate, gate))
    lock.meanwhile = []
    for reader in "rs":
        recorder.record(("next_ready", (reader, None)), partial(on_gate, gate))
    return recorder.events, start


@pytest.mark.parametrize(
    "call",
    [
        ("next_ready", ("r", None)),
        ("next_ready", ("r", 3)),
        ("append", ("a", [(7, 70), (8, 71)])),
        ("announce", ("d", None)),
        ("remove", ("a",)),
        ("announce_reader", ("u", "r")),
    ],
    ids=lambda call: call[0],
)
@pytest.mark.parametrize("point", [0, 1])
def test_whatever_comes_between_two_holds_of_the_lock_is_explained(call, point):
    """Every pair of other calls, put where the call gives the lock back."""
    for others in permutations(BETWEEN, 2):
        events, start = interrupted(call, point, others)
        assert explained(events, start), events


def test_the_check_finds_a_tuple_that_was_lost():
    batch = [(1, 0), (2, 1)]
    events = [
        Event(("append", ("a", batch)), ([], []), 0, 1),
        Event(("append", ("b", batch)), ([], []), 2, 3),
        Event(("next_ready", ("r", None)), [], 4, 5),
    ]
    assert not explained(events, twin())
    assert explained([*events[:2], Event(events[2].call, [0, 0], 4, 5)], twin())
    assert explained(
        [events[0], Event(*(events[1].call, events[1].answer), 2, 5), events[2]], twin()
    )
