"""Many threads at one gate object: every reader sees the sort of all tuples, nothing lost or twice.

No sleeps: appending threads bring a fixed number of tuples, and readers go on until the gate says
that all sources have ended.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.conftest import LONG
from tests.gate.history import eager_switching, run_all
from tests.gate.object import gate_of, table
from tidegate.errors import GateError
from tidegate.gate.gate import Gate

TUPLES = 300_000 if LONG else 30_000


@dataclass
class Ledger:
    """What went in and what came out; lists grow by one step under any threads."""

    admitted: list[np.ndarray] = field(default_factory=list)
    """Arrays of (ts, position, seq), one tuple to a row."""
    seen: dict[str, list[np.ndarray]] = field(default_factory=dict)
    given_back: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    reading: dict[str, threading.Event] = field(default_factory=dict)
    """Set when a reader has its first tuples: sources go on only then, so that both overlap."""


def payload(position: int, seq: np.ndarray) -> np.ndarray:
    return (np.int64(position) << 32) | seq


def speak(gate: Gate, ledger: Ledger, name: str, seed: int, disorder: int, tuples: int) -> None:
    """One source's life: join where the gate is, append batches of any size, leave."""
    draw = np.random.default_rng(seed)
    joined = gate.announce(name)
    position = joined.positions[name]
    clock, seq = max(joined.promise_us, 0), 0
    while seq < tuples:
        count = int(draw.choice([1, 3, 17, 200, 1000]))
        times = clock + np.cumsum(draw.integers(0, 3, count))
        clock = int(times[-1])
        times = times - draw.integers(0, 2 * disorder + 1, count) if disorder else times
        numbers = np.arange(seq, seq + count)
        told = gate.append(name, table(times, payload(position, numbers)))
        late = np.isin(payload(position, numbers), told.late.column("id").to_numpy())
        kept = np.stack([times, np.full(count, position), numbers], axis=1)[~late]
        assert len(kept) == told.rows
        ledger.admitted.append(kept)
        ledger.given_back.append(told.late.num_rows)
        ledger.made.append(count)
        seq += count
    gate.remove(name)


def consume(gate: Gate, ledger: Ledger, reader: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    mine = ledger.seen[reader] = []
    while gate.wait(reader):
        most = [None, 1, 50, 5000][int(draw.integers(4))]
        mine.append(gate.next_ready(reader, most).column("id").to_numpy())
        ledger.reading[reader].set()


def expected(ledger: Ledger) -> np.ndarray:
    """The plain oracle: all tuples, sorted."""
    rows = np.concatenate(ledger.admitted)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    return rows[:, 1] << 32 | rows[:, 2]


@pytest.mark.parametrize("disorder", [0, 20])
@pytest.mark.parametrize("appenders", [2, 6])
def test_all_readers_see_the_sort_of_all_tuples(appenders, disorder):
    """A keeper holds the gate open until the last source has left, then ends it."""
    readers = [f"r{i}" for i in range(3)]
    gate, ledger = gate_of(["keeper"], readers=readers, disorder=disorder), Ledger()
    gate.append("keeper", table(np.array([0]), np.array([0])))
    ledger.admitted.append(np.array([[0, 0, 0]]))
    ledger.made.append(1)
    ledger.reading = {reader: threading.Event() for reader in readers}
    working = threading.Semaphore(0)

    def appender(number: int) -> None:
        for life in range(3):
            name = f"s{number}"
            speak(gate, ledger, name, 10 * number + life, disorder, TUPLES // 3)
            assert all(event.wait(60) for event in ledger.reading.values())
        working.release()

    def keeper() -> None:
        """Speaks ahead of all others now and then, so that the frontier moves; ends last."""
        newest, seq, left = 0, 1, appenders
        while left:
            left -= working.acquire(timeout=0.001)
            newest = max([newest, *(int(a[-1, 0]) for a in ledger.admitted[-appenders:] if len(a))])
            gate.append("keeper", table(np.array([newest]), payload(0, np.array([seq]))))
            ledger.admitted.append(np.array([[newest, 0, seq]]))
            ledger.made.append(1)
            seq += 1
        gate.end("keeper")

    def coming_and_going() -> None:
        """Readers that join beside another one and leave again see a part of the same sequence."""
        assert ledger.reading["r0"].wait(60)
        for turn in range(20):
            name = f"guest{turn}"
            gate.announce_readers(name, at="r0" if turn % 2 else None)
            start = gate.status().readers[name]
            got = [gate.next_ready(name, 300).column("id").to_numpy() for _ in range(5)]
            gate.remove_readers(name)
            guests.append((start, np.concatenate(got)))

    guests: list[tuple[int, np.ndarray]] = []
    works = [lambda n=n: appender(n) for n in range(appenders)]
    works += [lambda n=n, r=r: consume(gate, ledger, r, n) for n, r in enumerate(readers)]
    with eager_switching():
        run_all([*works, keeper, coming_and_going])

    whole = expected(ledger)
    assert len(whole) + sum(ledger.given_back) == sum(ledger.made) >= appenders * TUPLES
    for reader in readers:
        assert np.array_equal(np.concatenate(ledger.seen[reader]), whole)
    for start, got in guests:
        assert np.array_equal(got, whole[start : start + len(got)])
    assert gate.status().waiting_rows == 0
    assert gate.status().kept_rows < len(whole), "no more than became ready at last"
    assert gate.status().late_rows == sum(ledger.given_back)


def test_threads_that_share_a_reader_share_its_tuples():
    gate, shares = gate_of(["a"]), [[] for _ in range(4)]
    times = np.arange(TUPLES)

    def work(mine: list[int]) -> None:
        while gate.wait("r"):
            mine.extend(gate.next_ready("r", 7).column("id").to_pylist())

    def feed() -> None:
        for part in np.array_split(times, 50):
            gate.append("a", table(part, part))
        gate.end("a")

    with eager_switching():
        run_all([feed, *(lambda m=m: work(m) for m in shares)])
    assert all(share == sorted(share) for share in shares)
    assert sorted(i for share in shares for i in share) == times.tolist()


def test_of_many_threads_that_announce_one_name_one_succeeds():
    gate, won, lost = gate_of(["a"]), [], []

    def work(number: int) -> None:
        try:
            won.append((number, gate.announce("b").positions["b"]))
        except GateError as failure:
            lost.append(str(failure))

    with eager_switching():
        run_all([lambda n=n: work(n) for n in range(8)])
    assert [position for _, position in won] == [1]
    assert sum("must not be here yet" in text for text in lost) == 7


def test_threads_that_append_to_one_source_each_keep_their_order():
    gate = gate_of(["a"])

    def work(number: int) -> None:
        for seq in range(100):
            gate.append("a", table(np.full(3, 5), payload(number, np.arange(3 * seq, 3 * seq + 3))))

    with eager_switching():
        run_all([lambda n=n: work(n) for n in range(4)])
    gate.end("a")
    found = gate.next_ready("r").column("id").to_numpy()
    assert len(found) == 1200
    for number in range(4):
        assert np.array_equal(found[found >> 32 == number] & 0xFFFFFFFF, np.arange(300))
