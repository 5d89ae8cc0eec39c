"""The process as an operator: how it tells what a batch reads of its state."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.operate.process.stream import Dealt, Seen, spec_of
from tidegate.operate.process.advance import Process
from tidegate.operate.process.entry import EntryKeeper
from tidegate.operate.process.operator import BUCKETS, UserProcess


class Mixed(Process):
    """One mapping by key, one that is returned, and a number."""

    output = {"n": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seen: dict[str, int] = {}
        self.n = 0

    def on_tuple(self, tuple: Any, keys: list[str]) -> None:
        self.counts[keys[0]] += 1

    def all_seen(self) -> dict[str, int]:
        return self.seen


class Empty(Process):
    output = {"n": "bigint"}  # noqa: RUF012

    def on_tuple(self, tuple: Any, keys: list[str]) -> None:
        return None


class Pickled(Seen):
    pickle = True


@pytest.mark.parametrize(
    ("kind", "lazy", "told"),
    [
        (Mixed, True, "the keys used of counts; all keys of seen; what is no mapping"),
        (Mixed, False, "all keys of counts, seen; what is no mapping"),
        (Dealt, True, "what is no mapping"),
        (Empty, True, "no attributes"),
    ],
)
def test_what_a_batch_reads_is_told(kind: type[Process], lazy: bool, told: str) -> None:
    details = UserProcess(spec_of(kind, lazy=lazy)).details({})
    assert details == [
        "one object per bucket: one task per instance, shuffle by bucket",
        f"reads of each bucket that a batch touches: {told}",
    ]


def test_what_is_kept_otherwise_is_read_whole() -> None:
    operator = UserProcess(spec_of(Pickled))
    assert operator.details({})[1] == (
        "reads and writes the whole state of each bucket that a batch touches"
    )
    assert operator.state.keepers == {BUCKETS: EntryKeeper()}
