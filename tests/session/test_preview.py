"""The first rows of streams, and the plans of joins that are estimated from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate import left, right
from tidegate.errors import OptionError
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.options import PlanOptions
from tidegate.query.node.node import Input, StreamDef
from tidegate.query.output import Output
from tidegate.schema import TIME
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.preview import PREVIEW_ROWS, first_rows
from tidegate.session.session import Session

SCHEMA = pa.schema([("ts", TIME), ("x", pa.int64())])


def written(folder: Path, name: str, rows: int) -> str:
    numbers = pa.array(np.arange(rows))
    table = pa.table([numbers.cast(TIME), numbers], schema=SCHEMA)
    pq.write_table(table, folder / name)
    return str(folder / name)


def test_the_first_rows_of_all_sources(tmp_path: Path) -> None:
    uris = tuple(written(tmp_path, f"{i}.parquet", 5000) for i in range(2))
    stream = StreamDef("s", uris, "ts", 0, None, SCHEMA)
    table = first_rows({})(stream, ["x"])
    assert table is not None
    assert table.column_names == ["x"]
    assert table.num_rows == PREVIEW_ROWS
    assert table["x"].to_pylist() == [*range(2048), *range(2048)]


def test_a_stream_that_cannot_be_read_gives_none(tmp_path: Path) -> None:
    gone = StreamDef("s", (str(tmp_path / "gone.parquet"),), "ts", 0, None, SCHEMA)
    assert first_rows({})(gone, ["x"]) is None
    elsewhere = StreamDef("s", ("memory:s/0",), "ts", 0, None, SCHEMA)
    assert first_rows({})(elsewhere, ["x"]) is None


def test_a_session_estimates_from_files(tmp_path: Path) -> None:
    session = Session(master="none")
    one = session.stream(written(tmp_path, "a.parquet", 3000), time="ts", name="a")
    joined = one.join(one, within=60, on=left.x == right.x).select(left.x)
    assert "hash: left.x = right.x passes 0.03% of the pairs" in joined.explain()
    assert "routing: key: the most frequent key has 0.00%" in joined.explain()
    assert "routing: round-robin: asked for" in joined.explain(routing="deal")
    assert "method: scan: asked for" in joined.explain(method="scan")


def test_options_of_joins_are_for_joins(tmp_path: Path) -> None:
    stream = StreamDef("s", (written(tmp_path, "a.parquet", 3),), "ts", 0, None, SCHEMA)
    with pytest.raises(OptionError) as caught:
        plan_for([Output(None, Input(stream))], Place("none"), PlanOptions(JoinOptions("scan")))
    assert str(caught.value) == (
        "--method: is for joins; got scan for a query without one. Leave it out."
    )
    with pytest.raises(OptionError, match="--exchange: must be one of auto, shared, shuffle"):
        Place("none", exchange="files")


def test_tasks_that_stay_are_not_for_a_shuffle() -> None:
    with pytest.raises(OptionError, match="--execution: resident has tasks that exchange tuples"):
        Place("local[2]", execution="resident", exchange="shuffle")
    with pytest.raises(OptionError, match="--execution: must be one of auto, resident, jobs"):
        Place("local[2]", execution="job")
    for execution in ("resident", "jobs"):
        assert Place("spark://there:7077", execution=execution).execution == execution
