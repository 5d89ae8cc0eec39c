"""The page for contributors: its worked examples are loaded and run as they stand."""

from __future__ import annotations

import datetime as dt
import importlib.util
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import tidegate as tg
from tests.docs.block import ROOT
from tidegate.cli.main import invoke
from tidegate.operate.aggregate import registry
from tidegate.operate.aggregate.definition import AggregateFunction
from tidegate.route import registry as partitioners

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FARES = [("a", 2.0), ("b", 5.0), ("a", 8.0), ("a", None), ("b", -1.0), ("a", 32.0), ("c", 99.0)]


def section(title: str) -> str:
    """The text from one heading of the second level to the next."""
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return text


def block(text: str, language: str) -> str:
    """The only fenced block of a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return found


AGGREGATE = section("A new aggregate function")


def load(name: str, text: str, folder: Path) -> ModuleType:
    """A module from its text, as if it stood in the package."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AggregateFunction]:
    """The row of the example, in the registry for one test."""
    module, name = block(AGGREGATE, "text").strip().removesuffix(",").split(".")
    made = getattr(load(module, block(AGGREGATE, "python"), tmp_path), name)
    monkeypatch.setitem(registry.FUNCTIONS, made.name, made)
    yield made
    del sys.modules[module]


def rides(session: tg.Session) -> tg.Stream:
    start = dt.datetime(2024, 1, 1)
    source = tg.MemorySource(
        [
            {"ts": start + dt.timedelta(minutes=i), "route": route, "fare": fare}
            for i, (route, fare) in enumerate(FARES)
        ],
        time="ts",
    )
    source.end()
    return session.stream(source, time="ts", name="rides")


def run(stream: tg.Stream) -> list[dict[str, object]]:
    sink = tg.sink.memory()
    stream.start(sink=sink, batch_rows=2, instances=2).wait()
    return [dict(r) for r in sink.table().to_pylist()]


def test_the_row_is_what_the_page_says(row: AggregateFunction) -> None:
    assert isinstance(row, AggregateFunction)
    assert f"{row.python}.py" in AGGREGATE
    assert row.name not in {f.name for f in registry.TABLE}


def test_the_example_runs_in_sql(row: AggregateFunction) -> None:
    session = tg.Session(master="none")
    query = session.sql(block(AGGREGATE, "sql"), rides=rides(session))
    found = {(r["route"], r["n"]): r["fare"] for r in run(query)}
    assert set(found) == {("a", 3), ("b", 1)}
    assert math.isclose(found["a", 3], 8.0)
    assert math.isclose(found["b", 1], 5.0)


def test_the_example_runs_in_python_and_over_tuples(row: AggregateFunction) -> None:
    assert row.python is not None
    call = getattr(tg, row.python)
    assert call.__doc__ == row.doc
    session = tg.Session(master="none")
    windows = rides(session).window(rows=3).agg(mean=call("fare"))
    assert [round(r["mean"], 9) for r in run(windows)][:1] == [round(math.cbrt(80.0), 9)]


def test_mistakes_with_it_are_told_like_others(row: AggregateFunction) -> None:
    session = tg.Session(master="none")
    stream = rides(session)
    for call, message in {
        "GEOMETRIC_MEAN(fare, fare)": "GEOMETRIC_MEAN: takes one argument; got 2.",
        "GEOMETRIC_MEEN(fare)": "no aggregate has this name; got GEOMETRIC_MEEN. "
        "Did you mean GEOMETRIC_MEAN",
        "GEOMEAN(fare > 1)": "geometric_mean(fare > 1): the argument must be a number; got boolean",
    }.items():
        with pytest.raises(tg.QueryError, match=re.escape(message)):
            session.sql(f"SELECT {call} FROM rides [RANGE 1 HOUR]", rides=stream)


PARTITIONER = section("A new partitioner")


@pytest.fixture
def partitioner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the partitioner of the example, in the registry for one test."""
    line = block(PARTITIONER, "text").strip().removesuffix(",")
    module = load("stripes", block(PARTITIONER, "python"), tmp_path)
    ((name, made),) = eval(f"{{{line}}}", vars(module)).items()
    monkeypatch.setitem(partitioners.PARTITIONERS, name, made)
    yield name
    del sys.modules["stripes"]


GROUPED = (
    "CREATE STREAM r FROM 'generator:taxi?rows=3000&rate=50' TIME dropoff_time; "
    "SELECT route, COUNT(*) AS n, MAX(fare) AS most FROM r [RANGE 20 SECONDS SLIDE 10 SECONDS] "
    "GROUP BY route HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 3"
)


def test_the_partitioner_of_the_page_gives_the_same_rows(
    partitioner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = tmp_path / "q.sql"
    query.write_text(GROUPED)
    found = {}
    for name, batch_rows in (("hash", "100000"), (partitioner, "100000"), (partitioner, "170")):
        out = tmp_path / f"{name}-{batch_rows}"
        options = ["--partitioner", name, "--batch-rows", batch_rows, "--instances", "3"]
        options += ["--switch", "2=2", "--format", "csv", "--out", str(out)]
        assert invoke(["run", str(query), "--master", "none", *options]) == 0
        parts = sorted(out.glob("batch=*/part-*.csv"))
        found[name, batch_rows] = [
            line for part in parts for line in part.read_text().splitlines()[1:]
        ]
    first, *others = found.values()
    assert len(first) > 15
    assert others == [first, first]
    capsys.readouterr()
    assert invoke(["explain", str(query), "--master", "none", "--partitioner", partitioner]) == 0
    said = capsys.readouterr().out
    assert "1 aggregate: aggregate in part over" in said
    assert "2 merge: merge windows by route" in said


def test_a_partitioner_of_no_such_name_is_refused() -> None:
    with pytest.raises(tg.OptionError, match=r"must be a known word; got hahs\. Did you mean hash"):
        partitioners.partitioner_of("hahs")
