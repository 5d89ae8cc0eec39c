"""NaN and infinities in results: JSON refuses them or writes texts, CSV and Parquet keep them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.sink.output import commit, opened, rows, stage, started
from tidegate.cli.main import invoke
from tidegate.errors import OptionError, SinkError
from tidegate.json_text import json_text
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.form import NONFINITE, Form
from tidegate.sink.json import first_nonfinite

NAN, INF = math.nan, math.inf
TEXTS = {NAN: "NaN", INF: "Infinity", -INF: "-Infinity"}

PLACES: dict[str, tuple[pa.DataType, Any, Any, Any]] = {
    "double": (pa.float64(), 1.5, lambda v: v, lambda t: t),
    "float": (pa.float32(), 1.5, lambda v: v, lambda t: t),
    "list": (pa.list_(pa.float64()), [1.5, None], lambda v: [1.5, v], lambda t: [1.5, t]),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.float64())]))]),
        {"a": 1, "b": {"c": 1.5}},
        lambda v: {"a": 1, "b": {"c": v}},
        lambda t: {"a": 1, "b": {"c": t}},
    ),
    "list of structs": (
        pa.list_(pa.struct([("x", pa.float64())])),
        [],
        lambda v: [{"x": 1.5}, {"x": v}],
        lambda t: [{"x": 1.5}, {"x": t}],
    ),
    "map": (
        pa.map_(pa.string(), pa.float64()),
        [("k", 1.5)],
        lambda v: [("k", v)],
        lambda t: {"k": t},
    ),
}


def strict(text: str) -> Any:
    """JSON as other parsers read it: Python's own takes NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def lines(path: Path) -> list[Any]:
    return [strict(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("value", TEXTS, ids=TEXTS.values())
@pytest.mark.parametrize("place", PLACES)
def test_json_refuses_a_value_wherever_it_is_and_writes_it_as_text_when_asked(
    place: str, value: float, tmp_path: Path
) -> None:
    type_, finite, holding, written = PLACES[place]
    cells = [finite, None, finite, holding(value), finite, holding(value)]
    table = pa.table({"n": list(range(6)), "in it": pa.array(cells, type_)})
    with pytest.raises(SinkError) as refused:
        Form("json").check(table, "out/batch=00000000")
    shown = json.dumps({"n": 3, "in it": written(TEXTS[value])})
    assert str(refused.value) == (
        "out/batch=00000000: column in it must have finite numbers, because JSON has no others; "
        f"got {shown}. Nothing of the batch was committed. To go on, write such values as texts "
        "with --out 'DIR?format=json&nonfinite=text', in Python nonfinite=\"text\"."
    )
    sink, store = FileSink(tmp_path / "out", "json", nonfinite="text"), started(tmp_path / "c")
    opened(sink, store, table.schema)
    commit(sink, store, 0, table)
    found = lines(tmp_path / "out/batch=00000000/part-00000.json")
    assert found[3] == {"n": 3, "in it": written(TEXTS[value])}
    assert found[1] == {"n": 1, "in it": None}


def test_the_first_row_is_found_in_any_chunk() -> None:
    finite, nested = pa.array([1.0, None]), pa.list_(pa.float64())
    for place in range(7):
        values = [1.0] * place + [NAN, NAN]
        assert first_nonfinite(pa.chunked_array([finite, values])) == 2 + place
    assert first_nonfinite(pa.chunked_array([finite, finite])) is None
    assert first_nonfinite(pa.chunked_array([], pa.float64())) is None
    chunked = pa.chunked_array([pa.array([None, [INF]], nested).slice(1), pa.array([[]], nested)])
    assert first_nonfinite(chunked) == 0


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_other_formats_keep_them(format_: str, tmp_path: Path) -> None:
    values = [1.5, NAN, INF, -INF, None]
    table = pa.table({"v": values, "list": [[v] for v in values]})
    sink, store = FileSink(tmp_path / "out", format_), started(tmp_path / "c")
    opened(sink, store, table.schema)
    commit(sink, store, 0, table)
    path = tmp_path / f"out/batch=00000000/part-00000.{format_}"
    if format_ == "parquet":
        found = pq.ParquetFile(path).read()
        assert repr(found.to_pylist()) == repr(table.to_pylist())
    else:
        as_written = pyarrow.csv.ConvertOptions(null_values=[""])
        found = pyarrow.csv.read_csv(path, convert_options=as_written)
        assert found.column("v").type == pa.float64()
        assert repr(found.column("v").to_pylist()) == repr(values)
        texts = [strict(text) for text in found.column("list").to_pylist()]
        assert texts == [[1.5], ["NaN"], ["Infinity"], ["-Infinity"], [None]]


def test_a_refused_batch_leaves_nothing_and_side_outputs_stop_no_run(tmp_path: Path) -> None:
    out, store = tmp_path / "out", started(tmp_path / "c")
    sink = FileSink(out, "json")
    opened(sink, store)
    with pytest.raises(SinkError, match="column v must have finite numbers"):
        stage(sink, 0, rows((10, "a", NAN)))
    sink.close()
    assert not list(out.rglob("*.json"))
    late = BatchOutput(rows((10, "a", 1.0)), {"s": rows((1, "late", -INF))})
    again = FileSink(out, "json")
    opened(again, store, owner=1)
    commit(again, store, 0, late)
    (row,) = lines(out / "_late/batch=00000000/s.json")
    assert row["v"] == "-Infinity"


def test_a_run_is_refused_and_goes_on_with_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    values = ["1.5", "2.5", "NaN", "-Infinity", "3.5"]
    times = [f"2024-01-01T00:00:0{i}Z,{v}" for i, v in enumerate(values)]
    Path("s.csv").write_text("ts,v\n" + "\n".join(times) + "\n")
    Path("q.sql").write_text(
        "CREATE STREAM s (ts TIMESTAMP, v DOUBLE) FROM 's.csv' TIME ts; SELECT v FROM s"
    )
    command = ["run", "q.sql", "--master", "none", "--checkpoint", "c", "--batch-rows", "2"]
    assert invoke([*command, "--out", "o", "--format", "json"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert 'column v must have finite numbers, because JSON has no others; got {"ts": ' in said
    assert '"v": "NaN"}. Nothing of the batch was committed.' in said
    before = sorted(Path("o").glob("batch=*/*"))
    summary = ["--summary", "summary.json"]
    assert invoke([*command, "--out", "o?format=json&nonfinite=text", *summary]) == 0
    parts = [p for p in sorted(Path("o").glob("batch=*/*.json")) if p.name.startswith("part-")]
    found = [line["v"] for path in parts for line in lines(path)]
    assert found == [1.5, 2.5, "NaN", "-Infinity", 3.5]
    assert set(before) <= set(Path("o").glob("batch=*/*"))
    assert strict(Path("summary.json").read_text())["rows_out"] > 0


def test_the_option_is_that_of_json_alone(tmp_path: Path) -> None:
    for format_ in ("csv", "parquet"):
        with pytest.raises(OptionError, match="is for JSON, which has no NaN"):
            tg.sink.files(tmp_path, format_, nonfinite="text")
    with pytest.raises(OptionError, match="must be refuse or text; got null"):
        tg.sink.files(tmp_path, "json", nonfinite="null")
    with pytest.raises(OptionError, match=r"sink: is for JSON.*got nonfinite=text"):
        tg.sink.of(f"{tmp_path}?nonfinite=text")
    for given in NONFINITE:
        sink = tg.sink.of(f"{tmp_path}?format=json&nonfinite={given}")
        assert isinstance(sink, FileSink)
        assert sink.form == Form("json", given)
        assert tg.sink.files(tmp_path, "json", given).form == sink.form


def test_facts_are_json_for_every_parser() -> None:
    facts = {"a": [NAN, (INF, 1.5)], "b": {"c": -INF}, "d": Path("x")}
    assert strict(json_text(facts)) == {"a": [None, [None, 1.5]], "b": {"c": None}, "d": "x"}
