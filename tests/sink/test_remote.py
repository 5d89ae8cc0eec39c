"""Results elsewhere, on a file system that can rename; tests/s3 has the same on an object store."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from tests.crash.folder import contents
from tidegate.batch import BatchId
from tidegate.errors import LostOutputError, OptionError, SinkError
from tidegate.remote.folder import TreeFolder
from tidegate.sink.folder.batch_ledger import ledger_columns, ledger_name
from tidegate.sink.folder.past import Committed, past_of
from tidegate.sink.folder.remote import RemoteSink
from tidegate.sink.folder.text_rows import read_text
from tidegate.sink.protocol import Keep, Opening
from tidegate.sink.receipt import Part, Receipt

ROWS = pa.table({"i": [1, 2, 3]})
LATE = Part(0, "late", "rides")
Sinks = Callable[..., RemoteSink]


class _NoKeep(Keep):
    """Nothing is kept in the checkpoint."""


KEEP = _NoKeep()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def sinks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Sinks:
    place = TreeFolder(LocalFileSystem(), str(folder), "tree://out")
    monkeypatch.setattr("tidegate.sink.folder.remote.folder_of", lambda uri: place)
    return lambda *more: RemoteSink("tree://out", *more)


def opened(sinks: Sinks, newest: int | None = None, owner: int = 0) -> RemoteSink:
    sink = sinks()
    at = None if newest is None else BatchId(newest)
    sink.open(Opening(ROWS.schema, None, at, KEEP, owner))
    return sink


def written(sink: RemoteSink, batch: int, *parts: Part) -> Sequence[Receipt]:
    """What a batch leaves before it is committed; tasks have pickled writers."""
    writer = pickle.loads(pickle.dumps(sink.begin(BatchId(batch))))
    return sink.prepare(BatchId(batch), [writer.write(part, ROWS) for part in parts])


def names(folder: Path) -> list[str]:
    return [name for name in shown(folder) if "_staging" not in name]


def shown(folder: Path) -> list[str]:
    """All files but the ledgers."""
    return [name for name in contents(folder) if not name.startswith("_ledger/")]


class TestRemoteSink:
    def test_a_batch_is_seen_when_it_is_published(self, sinks: Sinks, folder: Path) -> None:
        sink = opened(sinks)
        receipts = written(sink, 0, Part(0), Part(1), LATE)
        assert names(folder) == []
        sink.publish(BatchId(0), receipts)
        assert shown(folder) == [
            "_late/batch=00000000/rides.parquet",
            "batch=00000000/part-00000.parquet",
            "batch=00000000/part-00001.parquet",
        ]
        assert pq.read_table(folder / "batch=00000000" / "part-00001.parquet") == ROWS

    @pytest.mark.parametrize("format", ["csv", "json"])
    def test_ledgers_of_texts_have_their_types(self, sinks: Sinks, format: str) -> None:
        assert sinks().format == "parquet"  # and where nothing else is said, the files have them
        sink = opened(lambda: sinks(format, "o"))
        sink.publish(BatchId(0), written(sink, 0, Part(0), LATE))
        columns = ledger_columns(sink.ledger(BatchId(0)))
        assert columns == ROWS.schema
        data = sink.part(f"batch=00000000/part-00000.{format}").read()
        assert pa.Table.from_batches(read_text(data, format, columns)) == ROWS
        assert sink.beside().batch_names("_late") == ["batch=00000000"]

    @pytest.mark.parametrize("moved", range(4))
    def test_killed_while_it_was_published(
        self, sinks: Sinks, folder: Path, moved: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first part comes last, and after it there is only to delete."""
        sink = opened(sinks)
        receipts = written(sink, 0, Part(0), Part(1), LATE)
        place = type(sink.connect())
        move = place.move

        def some(self: TreeFolder, pairs: Sequence[tuple[str, str]]) -> None:
            assert [target.rpartition("/")[2] for _, target in pairs] == [
                *("rides.parquet", "part-00001.parquet", "part-00000.parquet")
            ]
            move(self, pairs[:moved])
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(place, "move", some)
            with pytest.raises(KeyboardInterrupt):
                sink.publish(BatchId(0), receipts)
        assert ("batch=00000000/part-00000.parquet" in names(folder)) == (moved == 3)
        again = opened(sinks, newest=0, owner=1)
        again.publish(BatchId(0), receipts)
        assert len(shown(folder)) == 3
        again.publish(BatchId(0), receipts)
        assert len(shown(folder)) == 3

    def test_a_part_that_was_lost_before_it_was_seen(self, sinks: Sinks, folder: Path) -> None:
        first = opened(sinks)
        receipts = written(first, 0, Part(0), Part(1))
        lost = folder / str(receipts[1].more["file"])
        lost.write_bytes(lost.read_bytes()[:-1] + b"?")
        again = opened(sinks, newest=0, owner=1)
        with pytest.raises(LostOutputError, match=r"-part-00001\.parquet: .* got other bytes than"):
            again.publish(BatchId(0), receipts)
        lost.unlink()
        with pytest.raises(LostOutputError, match="got no such file"):
            opened(sinks, newest=0, owner=1).publish(BatchId(0), receipts)
        anew = written(again, 0, Part(0))
        again.publish(BatchId(0), anew)
        again.close()
        assert shown(folder) == ["batch=00000000/part-00000.parquet"]

    def test_a_batch_cut_otherwise_when_it_runs_again(self, sinks: Sinks, folder: Path) -> None:
        first = opened(sinks)
        receipts = written(first, 0, Part(0), Part(1), Part(2))
        first.connect().move([(str(receipts[2].more["file"]), "batch=00000000/part-00002.parquet")])
        (folder / str(receipts[1].more["file"])).unlink()
        again = opened(sinks, newest=0, owner=1)
        with pytest.raises(LostOutputError):
            again.publish(BatchId(0), receipts)
        again.publish(BatchId(0), written(again, 0, Part(0)))
        assert names(folder) == ["batch=00000000/part-00000.parquet"]

    def test_what_is_published_stays(
        self, sinks: Sinks, folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        sink = opened(sinks)
        receipts = written(sink, 0, Part(0))
        sink.publish(BatchId(0), receipts)
        there = folder / "batch=00000000" / "part-00000.parquet"
        there.write_bytes(b"mine")
        again = opened(sinks, newest=0, owner=1)
        again.publish(BatchId(0), receipts)
        assert there.read_bytes() == b"mine"
        assert "is published, and is not what was committed: 4 bytes, where" in caplog.text
        found = again.verify(BatchId(0), receipts)
        assert found.published
        assert "4 bytes, where" in found.problems[0]

    def test_results_of_others_in_its_place(self, sinks: Sinks, folder: Path) -> None:
        sink = opened(sinks)
        receipts = written(sink, 0, Part(0))
        (folder / "batch=00000000").mkdir()
        (folder / "batch=00000000" / "part-00000.parquet").write_bytes(b"theirs")
        with pytest.raises(SinkError, match="must not be there before its batch is published"):
            sink.publish(BatchId(0), receipts)

    def test_only_what_is_older_is_removed(self, sinks: Sinks, folder: Path) -> None:
        one, three = opened(sinks, owner=1), opened(sinks, owner=3)
        written(one, 0, Part(0))
        theirs = written(three, 0, Part(0))
        opened(sinks, owner=2).begin(BatchId(0))
        assert shown(folder) == [theirs[0].more["file"]]
        three.close()  # it may have committed
        assert shown(folder) == [theirs[0].more["file"]]
        opened(sinks, owner=4).begin(BatchId(0))
        assert contents(folder) == {}

    def test_where_a_run_may_begin_and_go_on(self, sinks: Sinks, folder: Path) -> None:
        sink = opened(sinks)
        sink.publish(BatchId(0), written(sink, 0, Part(0)))
        sink.publish(BatchId(1), written(sink, 1, Part(0)))
        opened(sinks, newest=1, owner=1)
        with pytest.raises(OptionError, match=r"without results; got .* \(batch=00000000\)"):
            opened(sinks)
        with pytest.raises(OptionError, match="got batch=00000001 of another run"):
            opened(sinks, newest=0, owner=1)
        with pytest.raises(OptionError, match="up to batch=00000005; got no batch=00000005"):
            opened(sinks, newest=5, owner=1)
        other = sinks()
        other.format = "csv"
        with pytest.raises(OptionError, match=r"--format: must be that of the .* parquet; got csv"):
            other.open(Opening(ROWS.schema, None, BatchId(1), KEEP, 1))

    def test_earlier_batches_are_checked_by_their_ledgers(self, sinks: Sinks, folder: Path) -> None:
        sink = opened(sinks)
        for batch in range(5):
            sink.publish(BatchId(batch), written(sink, batch, Part(0), Part(1), LATE))
        sink.close()
        known = Committed(3, newest_now=lambda: 4)
        found = past_of(sink, known)
        assert (found.batches, found.parts, found.problems) == (4, 12, ())
        harmed = folder / "batch=00000001" / "part-00001.parquet"
        harmed.write_bytes(harmed.read_bytes()[:-1] + b"?")
        shutil.rmtree(folder / "batch=00000002")
        (folder / ledger_name(3)).unlink()
        (folder / "batch=00000004" / "more.parquet").write_bytes(b"?")
        (folder / "batch=00000009").mkdir()
        (folder / "batch=00000009" / "more.parquet").write_bytes(b"?")
        found = past_of(sink, known)
        names = ["_ledger/batch=00000003", "batch=00000001/part-00001.parquet"]
        names += ["batch=00000002/part-00000.parquet", "batch=00000009"]
        assert len(found.problems) == len(names)
        for problem, name in zip(found.problems, names, strict=True):
            assert problem.partition(": ")[0].endswith(f"/{name}")
