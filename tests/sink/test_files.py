"""Results as files: whole batches, side outputs beside them, and clear refusals."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.sink.output import SCHEMA, commit, opened, read, rows, stage, started
from tests.state.mapping import mappings
from tidegate.batch import BatchId
from tidegate.errors import LostOutputError, OptionError, SinkError
from tidegate.schema import TIME
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.folder import verify
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.verify import VerifiedParts
from tidegate.sink.receipt import Part, Receipt
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.storage import disk

FORMATS = ("parquet", "csv", "json")


def aside(out: Path, batch: int) -> Path:
    """Where the parts of a batch are that is about to be committed."""
    (found,) = (out / "_staging").glob(f"batch={batch:08d}.*")
    return found


def committed(store: Store, batch: int, receipts: list[Receipt]) -> Store:
    """A checkpoint whose newest batch has these parts."""
    written = {"": tuple(r.to_dict() for r in receipts)}
    store.publish(Manifest(batch, mappings(0), 0, outputs=written))
    return store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return started(tmp_path / "c")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "out"


def names(folder: Path) -> list[str]:
    return sorted(
        str(p.relative_to(folder))
        for p in folder.rglob("*")
        if p.is_file() and "_ledger" not in p.parts
    )


@pytest.mark.parametrize("format_", FORMATS)
def test_batches_in_the_order_of_their_names_are_the_output(
    out: Path, store: Store, format_: str
) -> None:
    sink = FileSink(out, format_)
    opened(sink, store)
    commit(sink, store, 0, rows((10, "a", 1.5), (10, None, None)))
    commit(sink, store, 1, rows())
    commit(sink, store, 2, rows((20, 'quo"te,\n', 2.0)))
    sink.close()
    assert names(out) == [f"batch={b:08d}/part-00000.{format_}" for b in range(3)]
    found = [r for n in names(out) for r in read(out / n)] if format_ != "csv" else []
    expected = [("a", 1.5), (None, None), ('quo"te,\n', 2.0)]
    if format_ != "csv":
        assert [(r["k"], r["v"]) for r in found] == expected
    else:
        options = pyarrow.csv.ParseOptions(newlines_in_values=True)
        table = pyarrow.csv.read_csv(out / names(out)[2], parse_options=options)
        assert table.column("k").to_pylist() == ['quo"te,\n']
        assert (out / names(out)[1]).read_text() == '"window_end","k","v"\n'


def test_an_empty_batch_has_its_schema_in_parquet(out: Path, store: Store) -> None:
    sink = FileSink(out)
    opened(sink, store)
    commit(sink, store, 0, rows())
    assert pq.ParquetFile(out / "batch=00000000/part-00000.parquet").schema_arrow == SCHEMA


@pytest.mark.parametrize("format_", FORMATS)
def test_side_outputs_have_folders_of_their_own_where_there_is_something(
    out: Path, store: Store, format_: str
) -> None:
    sink = FileSink(out, format_)
    opened(sink, store)
    late = {"rides": rows((1, "late", 0.0)), "a/b": rows((2, "late", 0.0))}
    commit(sink, store, 0, BatchOutput(rows(), late, pa.table({"_reason": ["no time"]})))
    commit(sink, store, 1, rows())
    assert names(out / "_late") == [f"batch=00000000/{n}.{format_}" for n in ("a%2Fb", "rides")]
    assert names(out / "_rejected") == [f"batch=00000000/rejected.{format_}"]
    (row,) = read(out / "_late" / f"batch=00000000/rides.{format_}")
    assert row["k"] == "late"
    assert read(out / "_rejected" / f"batch=00000000/rejected.{format_}") == [
        {"_reason": "no time"}
    ]
    sink.close()
    assert not (out / "_staging").exists()


def test_nothing_is_seen_before_the_commit_and_a_replay_replaces_it_whole(
    out: Path, store: Store
) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    stage(sink, 0, BatchOutput(rows((10, "first try", 1.0)), {"s": rows((1, "x", 0.0))}))
    assert not (out / "batch=00000000").exists()
    again = FileSink(out, "json")
    opened(again, store)
    receipts = commit(again, store, 0, rows((10, "second try", 1.0)))
    assert names(out) == ["batch=00000000/part-00000.json"]
    assert read(out / "batch=00000000/part-00000.json")[0]["k"] == "second try"
    again.publish(BatchId(0), receipts)
    assert names(out) == ["batch=00000000/part-00000.json"]


def test_a_batch_that_was_committed_but_not_moved_is_moved_at_the_next_start(
    out: Path, store: Store
) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    commit(sink, store, 0, rows((10, "a", 1.0)))
    receipts = stage(sink, 1, BatchOutput(rows((20, "b", 1.0)), {"s": rows((1, "x", 0.0))}))
    FileSink(out, "json").publish(BatchId(1), receipts)
    assert names(out) == [
        "_late/batch=00000001/s.json",
        "batch=00000000/part-00000.json",
        "batch=00000001/part-00000.json",
    ]


MOMENT = datetime(2024, 1, 1, 1, 2, 3, 4, UTC)
NESTED = pa.table(
    {
        "list": pa.array([[1.5, float("nan"), None], [], None], pa.list_(pa.float64())),
        "struct": pa.array(
            [
                {
                    "at": datetime(2024, 1, 1, 1, 2, 3, 4, UTC),
                    "price": Decimal("1.50"),
                    "b": b"\xff",
                },
                {"at": None, "price": None, "b": None},
                None,
            ],
            pa.struct([("at", TIME), ("price", pa.decimal128(9, 2)), ("b", pa.binary())]),
        ),
        "map": pa.array([[("x", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "days": pa.array([[date(2024, 1, 2)], None, None], pa.list_(pa.date32())),
        "bytes": pa.array([b"\xff,\n", b"", None], pa.binary()),
        "none": pa.array([None, None, None], pa.list_(pa.string())),
    }
)
TEXTS = [
    {
        "list": [1.5, "NaN", None],
        "struct": {"at": "2024-01-01T01:02:03.000004Z", "price": 1.5, "b": "/w=="},
        "map": {"x": 1},
        "days": ["2024-01-02"],
        "bytes": "/ywK",
        "none": None,
    },
    {
        "list": [],
        "struct": {"at": None, "price": None, "b": None},
        "map": {},
        "days": None,
        "bytes": "",
        "none": None,
    },
    dict.fromkeys(NESTED.column_names),
]


def test_nested_values_in_json(out: Path, store: Store) -> None:
    sink = FileSink(out, "json", nonfinite="text")
    opened(sink, store, NESTED.schema)
    commit(sink, store, 0, NESTED)
    lines = (out / "batch=00000000/part-00000.json").read_text().splitlines()
    assert [json.loads(line) for line in lines] == TEXTS


def test_nested_values_in_csv_are_json_in_their_cells(out: Path, store: Store) -> None:
    sink = FileSink(out, "csv")
    opened(sink, store, NESTED.schema)
    commit(sink, store, 0, NESTED)
    options = pyarrow.csv.ConvertOptions(
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types=dict.fromkeys(NESTED.column_names, pa.string()),
    )
    table = pyarrow.csv.read_csv(
        out / "batch=00000000/part-00000.csv", convert_options=options
    ).to_pylist()
    for found, expected in zip(table, TEXTS, strict=True):
        text = {n: v if n == "bytes" or v is None else json.loads(v) for n, v in found.items()}
        assert text == expected


def test_nested_values_in_parquet_are_as_they_are(out: Path, store: Store) -> None:
    sink = FileSink(out)
    opened(sink, store, NESTED.schema)
    commit(sink, store, 0, NESTED)
    found = read(out / "batch=00000000/part-00000.parquet")
    assert found[1:] == NESTED.to_pylist()[1:]
    assert found[0]["struct"] == NESTED.to_pylist()[0]["struct"]


def test_a_folder_that_may_not_be_written_is_refused(
    out: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OptionError, match="the output folder must be writable; got no permission"):
        opened(FileSink(out), store)


def test_a_folder_that_cannot_be_made_is_refused_at_the_start(tmp_path: Path, store: Store) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="the output must be a folder; got a file"):
        opened(FileSink(tmp_path / "file"), store)
    with pytest.raises(OptionError, match="the output folder must be writable"):
        opened(FileSink(tmp_path / "file" / "out"), store)


def test_a_batch_that_cannot_be_written_is_not_committed(
    out: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FileSink(out)
    opened(sink, store)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(SinkError, match=r"before it is committed; got No space left on device\."):
        stage(sink, 0, rows())


def test_a_value_that_the_format_cannot_hold_is_a_failure_of_the_sink(
    out: Path, store: Store
) -> None:
    odd = pa.table({"x": pa.array([None], pa.month_day_nano_interval())})
    sink = FileSink(out)
    opened(sink, store, odd.schema)
    with pytest.raises(SinkError, match="the batch must be written before it is committed"):
        stage(sink, 0, BatchOutput(odd))


def test_a_folder_with_results_is_refused_by_a_new_run(out: Path, store: Store) -> None:
    sink = FileSink(out)
    opened(sink, store)
    commit(sink, store, 0, rows())
    with pytest.raises(OptionError, match=r"without results; got batches of an earlier run"):
        opened(FileSink(out), started(out.parent / "new"))
    opened(FileSink(out), store)


def test_a_run_goes_on_where_its_results_are(out: Path, store: Store, tmp_path: Path) -> None:
    sink = FileSink(out)
    opened(sink, store)
    commit(sink, store, 0, rows())
    with pytest.raises(OptionError, match="got no batch=00000000"):
        opened(FileSink(tmp_path / "elsewhere"), store)
    (out / "batch=00000001").mkdir()
    with pytest.raises(OptionError, match="got batch=00000001 of another run"):
        opened(FileSink(out), store)


def test_an_unknown_format_is_refused(out: Path) -> None:
    with pytest.raises(OptionError, match=r"--format: must be a known format; got xml\. There are"):
        FileSink(out, "xml")


# --- receipts ----------------------------------------------------------------------------------

SIDES = BatchOutput(
    rows((20, "b", 1.0)), {"s": rows((1, "x", 0.0))}, pa.table({"_reason": ["no time"]})
)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_receipt_says_what_is_on_disk(out: Path, store: Store, format_: str) -> None:
    sink = FileSink(out, format_)
    opened(sink, store)
    receipts = stage(sink, 0, SIDES)
    assert [(r.name, r.rows) for r in receipts] == [
        (f"part-00000.{format_}", 1),
        (f"_late/s.{format_}", 1),
        (f"_rejected/rejected.{format_}", 1),
    ]
    for receipt in receipts:
        data = (aside(out, 0) / receipt.name).read_bytes()
        assert (receipt.bytes, receipt.checksum) == (len(data), zlib.crc32(data))
        assert Receipt.from_dict(json.loads(json.dumps(receipt.to_dict()))) == receipt


def test_parts_that_tasks_write_are_read_in_the_order_of_their_numbers(
    out: Path, store: Store
) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    writer = pickle.loads(pickle.dumps(sink.begin(BatchId(0))))
    later = writer.write(Part(1), rows((20, "b", 1.0)))
    first = writer.write(Part(0), rows((10, "a", 1.0)))
    sink.publish(BatchId(0), sink.prepare(BatchId(0), [first, later]))
    assert names(out) == ["batch=00000000/part-00000.json", "batch=00000000/part-00001.json"]
    assert [r["k"] for n in names(out) for r in read(out / n)] == ["a", "b"]


def test_only_what_receipts_name_is_published(out: Path, store: Store) -> None:
    """Not the half of a task that died, nor a part of a try that was cut into more parts."""
    sink = FileSink(out, "json")
    opened(sink, store)
    writer = sink.begin(BatchId(0))
    twice = [writer.write(Part(), rows((10, k, 1.0))) for k in ("first try", "second try")]
    writer.write(Part(1), rows((20, "of another division", 1.0)))
    (out / "_staging/tasks-00000000/half").write_text("half")
    receipts = sink.prepare(BatchId(0), twice[1:])
    writer.write(Part(), rows((10, "late try", 1.0)))
    sink.publish(BatchId(0), receipts)
    assert [n for n in names(out) if not n.startswith("_staging")] == [
        "batch=00000000/part-00000.json"
    ]
    assert read(out / "batch=00000000/part-00000.json")[0]["k"] == "second try"
    sink.close()
    assert names(out) == ["batch=00000000/part-00000.json"]


def test_at_a_restart_nothing_is_published_that_no_receipt_names(out: Path, store: Store) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = stage(sink, 0, SIDES)
    for stray in ("part-00001.json", "_late/t.json"):
        (aside(out, 0) / stray).write_text("{}")
    FileSink(out, "json").publish(BatchId(0), receipts)
    assert names(out) == [
        "_late/batch=00000000/s.json",
        "_rejected/batch=00000000/rejected.json",
        "batch=00000000/part-00000.json",
    ]


class Failing(disk.SystemDisk):
    """Does not say what is at one path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def status(self, path: disk.Path) -> disk.Status:
        if Path(path) == self._path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().status(path)

    def names(self, folder: disk.Path) -> list[str]:
        if Path(folder) == self._path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().names(folder)


@pytest.mark.parametrize("part", ["_late", "_rejected", "", "part-00000.json"])
def test_what_a_disk_does_not_say_is_not_taken_for_missing(
    out: Path, store: Store, part: str
) -> None:
    """A side output was left inside the batch, where nobody looks for it."""
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = stage(sink, 0, SIDES)
    unsaid = aside(out, 0) / part if part else out / "batch=00000000"
    with disk.using(Failing(unsaid)), pytest.raises(SinkError, match="Input/output error"):
        sink.publish(BatchId(0), receipts)
    assert not (out / "batch=00000000").exists()
    FileSink(out, "json").publish(BatchId(0), receipts)
    assert names(out) == [
        "_late/batch=00000000/s.json",
        "_rejected/batch=00000000/rejected.json",
        "batch=00000000/part-00000.json",
    ]


def test_a_folder_that_cannot_be_listed_is_refused(out: Path, store: Store) -> None:
    out.mkdir(parents=True)
    with (
        disk.using(Failing(out)),
        pytest.raises(OptionError, match="must be readable; got Input/output error"),
    ):
        opened(FileSink(out), store)


def remove(path: Path) -> None:
    path.unlink()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


WRONG = {
    remove: "no such file",
    cut_short: " bytes, where ",
    lengthen: " bytes, where ",
    flip: "other bytes than were written",
}


@pytest.mark.parametrize("damage", WRONG)
@pytest.mark.parametrize("lost", range(3))
def test_a_part_that_is_damaged_before_it_is_published_is_missed(
    out: Path, store: Store, lost: int, damage: Callable[[Path], None]
) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = stage(sink, 0, SIDES)
    path = aside(out, 0) / receipts[lost].name
    damage(path)
    before = names(out)
    # The run that has written it looks at the size only: it has read what it wrote as it went by.
    for again in (sink, FileSink(out, "json")) if damage is not flip else (FileSink(out, "json"),):
        with pytest.raises(LostOutputError, match="must be whole until it is published") as caught:
            again.publish(BatchId(0), receipts)
        assert caught.value.where == str(path)
        assert WRONG[damage] in str(caught.value.got)
        assert f"make an empty folder {out / 'batch=00000000'}" in str(caught.value)
        assert names(out) == before
    (out / "batch=00000000").mkdir()
    FileSink(out, "json").publish(BatchId(0), receipts)
    assert names(out) == []


def test_a_batch_that_is_lost_as_a_whole_is_missed(out: Path, store: Store) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = stage(sink, 0, rows())
    shutil.rmtree(out / "_staging")
    with pytest.raises(LostOutputError, match="got no such file"):
        sink.publish(BatchId(0), receipts)


def test_side_outputs_that_were_moved_before_a_crash_are_not_missed(
    out: Path, store: Store
) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = stage(sink, 0, SIDES)
    (out / "_late").mkdir()
    os.replace(aside(out, 0) / "_late", out / "_late/batch=00000000")
    FileSink(out, "json").publish(BatchId(0), receipts)
    assert names(out) == [
        "_late/batch=00000000/s.json",
        "_rejected/batch=00000000/rejected.json",
        "batch=00000000/part-00000.json",
    ]


@pytest.mark.parametrize("damage", WRONG)
def test_a_side_output_that_was_damaged_after_its_move_is_replaced_when_the_batch_runs_again(
    out: Path, store: Store, damage: Callable[[Path], None]
) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = stage(sink, 0, SIDES)
    (out / "_late").mkdir()
    os.replace(aside(out, 0) / "_late", out / "_late/batch=00000000")
    damage(out / "_late/batch=00000000/s.json")
    again = FileSink(out, "json")
    opened(again, committed(store, 0, receipts), owner=1)
    with pytest.raises(LostOutputError, match="must be whole"):
        again.publish(BatchId(0), receipts)
    commit(again, started(out.parent / "other"), 0, SIDES)
    again.close()
    assert names(out) == [
        "_late/batch=00000000/s.json",
        "_rejected/batch=00000000/rejected.json",
        "batch=00000000/part-00000.json",
    ]
    assert read(out / "_late/batch=00000000/s.json")[0]["k"] == "x"


def test_a_batch_is_verified_by_what_its_manifest_says(tmp_path: Path) -> None:
    """Staged or published, with side outputs beside it or in another folder."""
    for name in ("a b", "c?d"):
        sink = FileSink(tmp_path / name / "out", "json", sides=tmp_path / name)
        opened(sink, started(tmp_path / f"{name}-c"))
        receipts = stage(sink, 0, SIDES)
        told = [r.to_dict() for r in receipts]
        size = sum(r.bytes or 0 for r in receipts)
        assert verify.found(sink.uri, 0, told) == VerifiedParts(False, 3, size, ())
        sink.publish(BatchId(0), receipts)
        assert verify.found(sink.uri, 0, told) == VerifiedParts(True, 3, size, ())
        late = tmp_path / name / "_late/batch=00000000/s.json"
        flip(late)
        assert verify.found(sink.uri, 0, told).problems == (
            f"{late}: other bytes than were written",
        )


def test_what_is_published_is_never_touched_again(
    out: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """It belongs to its readers, who may have moved or changed it; that is told."""
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = commit(sink, store, 0, SIDES)
    sink.close()
    part = out / "batch=00000000/part-00000.json"
    FileSink(out, "json").publish(BatchId(0), receipts)
    assert caplog.messages == []
    part.write_text("{}\n")
    FileSink(out, "json").publish(BatchId(0), receipts)
    assert part.read_text() == "{}\n"
    (told,) = caplog.messages
    assert told.startswith(f"{part}: is published, and is not what was committed: 3 bytes, where")


def test_a_batch_does_not_take_the_place_of_other_results(out: Path, store: Store) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    receipts = stage(sink, 0, rows((10, "a", 1.0)))
    (out / "batch=00000000").mkdir()
    (out / "batch=00000000/part-00000.json").write_text("of another")
    with pytest.raises(SinkError, match=r"must not be there .* Move it away, and run again"):
        sink.publish(BatchId(0), receipts)
    assert (out / "batch=00000000/part-00000.json").read_text() == "of another"
    shutil.rmtree(out / "batch=00000000")
    FileSink(out, "json").publish(BatchId(0), receipts)
    assert read(out / "batch=00000000/part-00000.json")[0]["k"] == "a"


def test_a_task_that_outlives_its_driver_does_not_change_what_is_published(
    out: Path, store: Store
) -> None:
    sink = FileSink(out, "json")
    opened(sink, store)
    late_one = sink.begin(BatchId(0))
    receipts = commit(sink, store, 0, rows((10, "a", 1.0)))
    late_one.write(Part(), rows((10, "cut elsewhere", 1.0)))
    again = FileSink(out, "json")
    opened(again, store, owner=1)
    again.publish(BatchId(0), receipts)
    assert names(out) == ["batch=00000000/part-00000.json"]
    assert read(out / names(out)[0])[0]["k"] == "a"


def test_a_task_that_writes_after_the_end_finds_no_folder(out: Path, store: Store) -> None:
    """Before, it made the folder again, and what it left was there for good."""
    sink = FileSink(out, "json")
    opened(sink, store)
    late_one = sink.begin(BatchId(0))
    commit(sink, store, 0, rows((10, "a", 1.0)))
    sink.close()
    before = names(out)
    with pytest.raises(SinkError, match="No such file or directory"):
        late_one.write(Part(), rows((10, "late", 1.0)))
    assert names(out) == before
    assert not (out / "_staging").exists()


def test_runs_of_different_owners_do_not_reach_what_the_others_write(
    out: Path, store: Store
) -> None:
    """A driver that was paused goes on beside the one that took over."""
    paused, newer = FileSink(out, "json"), FileSink(out, "json")
    opened(paused, store, owner=3)
    writer = paused.begin(BatchId(0))
    opened(newer, store, owner=4)
    mine = stage(newer, 0, rows((10, "of the newer", 1.0)))
    with pytest.raises(SinkError, match="No such file or directory"):
        writer.write(Part(), rows((10, "of the paused", 1.0)))
    theirs = stage(paused, 0, rows((10, "of the paused", 1.0)))
    paused.close()
    newer.publish(BatchId(0), mine)
    assert read(out / "batch=00000000/part-00000.json")[0]["k"] == "of the newer"
    with pytest.raises(SinkError, match="must not be there before its batch is published"):
        paused.publish(BatchId(0), theirs)
    newer.close()
    assert names(out) == ["batch=00000000/part-00000.json"]
    assert not (out / "_staging").exists()


def test_a_part_costs_one_sync_of_its_file(
    out: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FileSink(out)
    opened(sink, store)
    writer = sink.begin(BatchId(0))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    for number in range(5):
        writer.write(Part(number), rows((10, "a", 1.0)))
    assert len(synced) == 5
