"""Results as files: whole batches, side outputs beside them, and clear refusals."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.sink.output import SCHEMA, commit, read, rows, started
from tests.state.mapping import mappings
from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError
from tidegate.schema import TIME
from tidegate.sink.files import FileSink
from tidegate.sink.protocol import Output
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

FORMATS = ("parquet", "csv", "json")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return started(tmp_path / "c")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "out"


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("format_", FORMATS)
def test_batches_in_the_order_of_their_names_are_the_output(
    out: Path, store: Store, format_: str
) -> None:
    sink = FileSink(out, format_)
    sink.open(SCHEMA, store, fresh=True)
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
    sink.open(SCHEMA, store, fresh=True)
    commit(sink, store, 0, rows())
    assert pq.ParquetFile(out / "batch=00000000/part-00000.parquet").schema_arrow == SCHEMA


@pytest.mark.parametrize("format_", FORMATS)
def test_side_outputs_have_folders_of_their_own_where_there_is_something(
    out: Path, store: Store, format_: str
) -> None:
    sink = FileSink(out, format_)
    sink.open(SCHEMA, store, fresh=True)
    late = {"rides": rows((1, "late", 0.0)), "a/b": rows((2, "late", 0.0))}
    commit(sink, store, 0, Output(rows(), late, pa.table({"_reason": ["no time"]})))
    commit(sink, store, 1, rows())
    assert names(out / "_late") == [f"batch=00000000/{n}.{format_}" for n in ("a%2Fb", "rides")]
    assert names(out / "_rejected") == [f"batch=00000000/rejected.{format_}"]
    (row,) = read(out / "_late" / f"batch=00000000/rides.{format_}")
    assert row["k"] == "late"
    assert read(out / "_rejected" / f"batch=00000000/rejected.{format_}") == [
        {"_reason": "no time"}
    ]
    assert not (out / "_staging").exists()


def test_nothing_is_seen_before_the_commit_and_a_replay_replaces_it_whole(
    out: Path, store: Store
) -> None:
    sink = FileSink(out, "json")
    sink.open(SCHEMA, store, fresh=True)
    sink.stage(BatchId(0), Output(rows((10, "first try", 1.0)), {"s": rows((1, "x", 0.0))}))
    assert not (out / "batch=00000000").exists()
    again = FileSink(out, "json")
    again.open(SCHEMA, store, fresh=True)
    commit(again, store, 0, rows((10, "second try", 1.0)))
    assert names(out) == ["batch=00000000/part-00000.json"]
    assert read(out / "batch=00000000/part-00000.json")[0]["k"] == "second try"
    again.publish(BatchId(0))
    assert names(out) == ["batch=00000000/part-00000.json"]


def test_a_batch_that_was_committed_but_not_moved_is_moved_at_the_next_start(
    out: Path, store: Store
) -> None:
    sink = FileSink(out, "json")
    sink.open(SCHEMA, store, fresh=True)
    commit(sink, store, 0, rows((10, "a", 1.0)))
    sink.stage(BatchId(1), Output(rows((20, "b", 1.0)), {"s": rows((1, "x", 0.0))}))
    store.publish(Manifest(1, mappings(0), 0))
    again = FileSink(out, "json")
    again.open(SCHEMA, store, fresh=False)
    again.publish(BatchId(1))
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
        "list": [1.5, None, None],
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
    sink = FileSink(out, "json")
    sink.open(NESTED.schema, store, fresh=True)
    commit(sink, store, 0, NESTED)
    lines = (out / "batch=00000000/part-00000.json").read_text().splitlines()
    assert [json.loads(line) for line in lines] == TEXTS


def test_nested_values_in_csv_are_json_in_their_cells(out: Path, store: Store) -> None:
    sink = FileSink(out, "csv")
    sink.open(NESTED.schema, store, fresh=True)
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
    sink.open(NESTED.schema, store, fresh=True)
    commit(sink, store, 0, NESTED)
    found = read(out / "batch=00000000/part-00000.parquet")
    assert found[1:] == NESTED.to_pylist()[1:]
    assert found[0]["struct"] == NESTED.to_pylist()[0]["struct"]


def test_a_folder_that_may_not_be_written_is_refused(
    out: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OptionError, match="the output folder must be writable; got no permission"):
        FileSink(out).open(SCHEMA, store, fresh=True)


def test_a_folder_that_cannot_be_made_is_refused_at_the_start(tmp_path: Path, store: Store) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="the output must be a folder; got a file"):
        FileSink(tmp_path / "file").open(SCHEMA, store, fresh=True)
    with pytest.raises(OptionError, match="the output folder must be writable"):
        FileSink(tmp_path / "file" / "out").open(SCHEMA, store, fresh=True)


def test_a_batch_that_cannot_be_written_is_not_committed(
    out: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FileSink(out)
    sink.open(SCHEMA, store, fresh=True)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(SinkError, match=r"before it is committed; got No space left on device\."):
        sink.stage(BatchId(0), Output(rows()))


def test_a_value_that_the_format_cannot_hold_is_a_failure_of_the_sink(
    out: Path, store: Store
) -> None:
    odd = pa.table({"x": pa.array([None], pa.month_day_nano_interval())})
    sink = FileSink(out)
    sink.open(odd.schema, store, fresh=True)
    with pytest.raises(SinkError, match="the batch must be written before it is committed"):
        sink.stage(BatchId(0), Output(odd))


def test_a_folder_with_results_is_refused_by_a_new_run(out: Path, store: Store) -> None:
    sink = FileSink(out)
    sink.open(SCHEMA, store, fresh=True)
    commit(sink, store, 0, rows())
    with pytest.raises(OptionError, match=r"without results; got batches of an earlier run"):
        FileSink(out).open(SCHEMA, store, fresh=True)
    FileSink(out).open(SCHEMA, store, fresh=False)


def test_a_run_goes_on_where_its_results_are(out: Path, store: Store, tmp_path: Path) -> None:
    sink = FileSink(out)
    sink.open(SCHEMA, store, fresh=True)
    commit(sink, store, 0, rows())
    with pytest.raises(OptionError, match="got no batch=00000000"):
        FileSink(tmp_path / "elsewhere").open(SCHEMA, store, fresh=False)
    (out / "batch=00000001").mkdir()
    with pytest.raises(OptionError, match="got batch=00000001 of another run"):
        FileSink(out).open(SCHEMA, store, fresh=False)


def test_an_unknown_format_is_refused(out: Path) -> None:
    with pytest.raises(OptionError, match=r"--format: must be a known format; got xml\. There are"):
        FileSink(out, "xml")
