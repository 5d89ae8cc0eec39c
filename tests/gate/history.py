"""Histories of concurrent calls: recorded with their order in real time, and searched for a series
of single calls that explains them (Wing and Gong's check of linearizability).
"""

from __future__ import annotations

import copy
import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.oracle.gate_object import PlainGate, Refused

REFUSED = "refused"
Call = tuple[str, tuple[object, ...]]


@dataclass(frozen=True)
class Event:
    """One call, when it began and when it returned, as numbers from one counter."""

    call: Call
    answer: object
    began: int
    returned: int


@dataclass
class Recorder:
    """Gives out times; `next` of a counter is one step, so their order is that of real time."""

    _ticks: Iterator[int] = field(default_factory=itertools.count)
    events: list[Event] = field(default_factory=list)

    def record(self, call: Call, do: Callable[[Call], object]) -> None:
        began = next(self._ticks)
        answer = do(call)
        self.events.append(Event(call, answer, began, next(self._ticks)))


@contextmanager
def eager_switching() -> Iterator[None]:
    """Let threads change places as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_all(works: Sequence[Callable[[], None]]) -> None:
    """Run one thread per work, started together; the first failure is raised here."""
    start = threading.Barrier(len(works))
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            start.wait()
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(w,), daemon=True) for w in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]


def answer_of(twin: PlainGate, call: Call) -> object:
    name, arguments = call
    try:
        return getattr(twin, name)(*arguments)
    except Refused:
        return REFUSED


def explained(events: Sequence[Event], twin: PlainGate) -> bool:
    """Whether some order of the calls, true to real time, gives the twin's answers throughout."""
    if not events:
        return True
    first_return = min(e.returned for e in events)
    for event in events:
        if event.began > first_return:
            continue
        after = copy.deepcopy(twin)
        if answer_of(after, event.call) == event.answer and explained(
            [e for e in events if e is not event], after
        ):
            return True
    return False
