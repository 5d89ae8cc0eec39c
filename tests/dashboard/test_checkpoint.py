"""Queries of other processes, from their checkpoints: running, ended, and killed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

import tidegate as tg
from tests.driver.scene import memory, table
from tests.session.test_query import until
from tidegate.clock import SystemClock
from tidegate.control.address import RECORD, ControlAddress, write_record
from tidegate.dashboard.query_view import KILLED, SILENT_S, CheckpointQuery, is_running
from tidegate.driver.journal.files import JournalFiles, line_batch, read_status
from tidegate.driver.journal.reader import JournalReader
from tidegate.errors import CheckpointError, RunError
from tidegate.state.files import LocalFiles
from tidegate.state.store import Store


def started(session: tg.Session, checkpoint: Path, end: bool) -> tg.RunningQuery:
    source = memory((1, "a", 1), (12, "a", 2), end=end)
    counted = session.stream(source, time="ts", name="s").window(10).agg(n=tg.count())
    return counted.start(sink=tg.sink.memory(), checkpoint=str(checkpoint))


def test_a_finished_query_is_there_with_its_batches(session: tg.Session, tmp_path: Path) -> None:
    assert started(session, tmp_path / "c", end=True).wait(60).finished
    found = CheckpointQuery(str(tmp_path / "c"), SystemClock())
    assert found.picture()["state"] == "finished"
    assert found.picture()["newest_rows"]["output "]["rows"]
    assert [line[:11] for line in found.batches(-1, 10)] == [b'{"batch": 0']
    assert found.batches(0, 10) == []


def test_a_running_query_answers_for_itself(session: tg.Session, tmp_path: Path) -> None:
    query = started(session, tmp_path / "c", end=False)
    files = Store.open(str(tmp_path / "c")).files
    until(lambda: read_status(files) is not None, query)
    found = CheckpointQuery(str(tmp_path / "c"), SystemClock())
    assert found.picture()["state"] == "running"
    assert found.ask({"command": "pause"}) == {"state": "paused"}
    assert found.picture()["state"] == "paused"
    found.ask({"command": "stop"})
    query.wait(60)
    assert not is_running(CheckpointQuery(str(tmp_path / "c"), SystemClock()).picture())


def test_a_killed_query_is_known_as_one(session: tg.Session, tmp_path: Path) -> None:
    started(session, tmp_path / "c", end=True).wait(60)
    files = Store.open(str(tmp_path / "c")).files
    left = read_status(files)
    assert left is not None
    JournalFiles(files).put_status({**left, "state": "running"})
    assert CheckpointQuery(str(tmp_path / "c"), SystemClock()).picture()["state"] == KILLED


def test_a_query_on_another_host_is_killed_when_it_is_silent(
    session: tg.Session, tmp_path: Path
) -> None:
    started(session, tmp_path / "c", end=True).wait(60)
    store = Store.open(str(tmp_path / "c"))
    left = read_status(store.files)
    assert left is not None
    address = ControlAddress("/tmp/tidegate-ctl-x/ctl", 1, "another-host", os.geteuid(), "now")
    write_record(str(tmp_path / "c" / RECORD), address.of(store))
    for silent_s, state in ((1, "running"), (SILENT_S + 1, KILLED)):
        told_at = left["told_at"] - silent_s
        JournalFiles(store.files).put_status({**left, "state": "running", "told_at": told_at})
        assert CheckpointQuery(str(tmp_path / "c"), SystemClock()).picture()["state"] == state


def test_a_failed_query_says_why(session: tg.Session, tmp_path: Path) -> None:
    def refuse(rows: object, batch: int) -> None:
        raise OSError("no route")

    stream = session.stream(memory((1, "a", 1), end=True), time="ts")
    query = stream.start(sink=tg.sink.call(refuse), checkpoint=str(tmp_path / "c"))
    with pytest.raises(RunError, match="no route"):
        query.wait(60)
    state = CheckpointQuery(str(tmp_path / "c"), SystemClock()).picture()["state"]
    assert state.startswith("failed: ")
    assert "no route" in state


def test_what_has_no_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="must be a checkpoint with the journal of a run"):
        CheckpointQuery(str(tmp_path / "none"), SystemClock())


def test_memory_has_the_newest_batches_alone(
    session: tg.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.driver.journal.recent.KEPT", 3)
    source = memory(*((i, "a", 1) for i in range(40)), end=True)
    stream = session.stream(source, time="ts").start(
        sink=tg.sink.memory(), checkpoint=str(tmp_path / "c"), batch_rows=4
    )
    assert stream.wait(60).batches >= 10
    found = CheckpointQuery(str(tmp_path / "c"), SystemClock())
    assert found.picture()["kept_batches"] == 3
    assert len(found.batches(-1, 100)) == 3, "more than that did not wait to be written"


def test_batches_of_several_runs_follow_each_other(session: tg.Session, tmp_path: Path) -> None:
    first = memory((1, "a", 1), (12, "a", 2))
    stream = session.stream(first, time="ts", name="s").window(10).agg(n=tg.count())
    query = stream.start(sink=tg.sink.memory(), checkpoint=str(tmp_path / "c"))
    until(lambda: query.status()["batch"] == 0, query)
    first.append(table((25, "a", 3)))
    until(lambda: query.status()["batch"] == 1, query)
    query.stop()
    first.end()
    again = session.stream(first, time="ts", name="s").window(10).agg(n=tg.count())
    again.start(sink=tg.sink.memory(), checkpoint=str(tmp_path / "c")).wait(60)
    found = CheckpointQuery(str(tmp_path / "c"), SystemClock()).batches(-1, 100)
    numbers = [int(line[10 : line.index(b",")]) for line in found]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > 2


class CountedFiles(LocalFiles):
    """Counts the files that are read whole."""

    reads = 0

    def buffer(self, name: str) -> pa.Buffer:
        self.reads += 1
        return super().buffer(name)


def test_a_journal_is_read_where_it_is_new(tmp_path: Path) -> None:
    """Three files of batches: looking again reads nothing, a page of some reads one file."""
    put = {0: range(5), 5: range(5, 12), 10: range(10, 14)}
    (tmp_path / "journal").mkdir()
    for first, numbers in put.items():
        lines = [b'{"batch": %d, "of": %d}\n' % (number, first) for number in numbers]
        (tmp_path / "journal" / f"{first:08d}.jsonl").write_bytes(b"".join(lines))
    files = CountedFiles(str(tmp_path))
    journal = JournalReader(files)

    def numbers(after: int, most: int) -> list[int]:
        return [line_batch(line) for line in journal.after(after, most)]

    assert (journal.newest(), files.reads) == (13, 1)
    assert (numbers(12, 10), numbers(13, 10), files.reads) == ([13], [], 1)
    assert (numbers(-1, 3), files.reads) == ([0, 1, 2], 2)
    assert (numbers(2, 2), files.reads) == ([3, 4], 2)
    assert numbers(-1, 100) == list(range(14))
    assert json.loads(journal.after(9, 1)[0])["of"] == 10, "as it was written last"
    newest = tmp_path / "journal" / "00000010.jsonl"
    newest.write_bytes(newest.read_bytes() + b'{"batch": 14, "of": 10}\n')
    assert (journal.newest(), numbers(13, 10)) == (14, [14])
