"""A sink that raises: the batch is committed, said to be, and given again at the next start."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tidegate as tg
from tests.crash.scene import SCENES
from tidegate.session.query import RunningQuery


class Fragile:
    """Takes batches as a database would: by number, replacing; fails at some calls."""

    def __init__(self, fails_at: set[int]) -> None:
        self.batches: dict[int, pa.Table] = {}
        self.calls: list[int] = []
        self.fails_at = fails_at

    def __call__(self, rows: pa.Table, batch: int) -> None:
        self.calls.append(batch)
        if len(self.calls) in self.fails_at:
            raise ConnectionError("the database is away")
        self.batches[batch] = rows

    def table(self) -> pa.Table:
        return pa.concat_tables(self.batches[b] for b in sorted(self.batches))


def start(inputs: Path, sink: Fragile, checkpoint: Path) -> RunningQuery:
    scene = SCENES["aggregate"]
    query = tg.Session(master="none").sql(scene.script(inputs))
    return query.start(
        sink=tg.sink.call(sink), checkpoint=str(checkpoint), batch_rows=scene.batch_rows, buckets=16
    )


def test_a_batch_that_was_refused_is_given_again(inputs: Path, tmp_path: Path) -> None:
    steady = Fragile(set())
    start(inputs, steady, tmp_path / "steady").wait()
    assert steady.calls == list(range(max(steady.calls) + 1))
    fragile = Fragile({1, 2, 6, 9})
    for _ in range(4):
        fail(inputs, fragile, tmp_path / "fragile")
    start(inputs, fragile, tmp_path / "fragile").wait()
    assert sorted(fragile.batches) == sorted(steady.batches)
    assert fragile.table().equals(steady.table())


def fail(inputs: Path, sink: Fragile, checkpoint: Path) -> None:
    """Start, and see the error come out wherever it is met: at once, or in a batch."""
    began = len(sink.calls)
    with pytest.raises(tg.SinkError) as caught:
        start(inputs, sink, checkpoint).wait()
    assert len(sink.calls) > began
    message = str(caught.value)
    refused = f"must accept batch {sink.calls[-1]}; got ConnectionError: the database is away."
    assert refused in message
    assert "is committed and is given again at the next start" in message


def test_the_newest_batch_is_given_again_after_a_clean_end(inputs: Path, tmp_path: Path) -> None:
    """As documented: the function treats a batch it has seen as a replacement."""
    sink = Fragile(set())
    start(inputs, sink, tmp_path / "c").wait()
    whole, newest = sink.table(), sink.calls[-1]
    start(inputs, sink, tmp_path / "c").wait()
    assert sink.calls[-2:] == [newest, newest]
    assert sink.table().equals(whole)
