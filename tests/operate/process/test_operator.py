"""The process as an operator: how it tells what a batch reads of its state."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operate.process.stream import Dealt, Seen, Window, spec_of
from tidegate.operate.process.definition import Process
from tidegate.operate.process.entry import EntryKeeper
from tidegate.operate.process.operator import BUCKETS, UserProcess


class Declared(Process):
    """A map, a value that expires, and a number."""

    output = {"n": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.counts = self.state.map("counts")
        self.last = self.state.value("last", ttl="1 hour")
        self.n = 0

    def on_tuple(self, tuple: Any, keys: list[str]) -> None:
        return None


class Empty(Process):
    output = {"n": "bigint"}  # noqa: RUF012

    def on_tuple(self, tuple: Any, keys: list[str]) -> None:
        return None


class Pickled(Seen):
    pickle = True


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Declared, "the entries used of map counts, value last for 1 hour; all of n"),
        (Dealt, "all of count, kept"),
        (
            Window,
            "the entries used of columns values (ts timestamp, v int) for 5 microseconds, "
            "columns ever (ts timestamp, v bigint, odd boolean)",
        ),
        (Empty, "its timers"),
        (Pickled, "all that snapshot returns"),
    ],
)
def test_what_a_batch_reads_is_told(kind: type[Process], told: str) -> None:
    operator = UserProcess(spec_of(kind))
    assert operator.details({}) == [
        "one object per bucket: one task per instance, shuffle by bucket",
        f"reads of each bucket that a batch touches: {told}",
    ]
    assert operator.state.keepers == {BUCKETS: EntryKeeper()}
