"""Every Arrow type through every source that can hold it: it works, or is refused by name."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.source.arrow_types import Example, examples
from tidegate.errors import OptionError, QueryError, SourceError, TidegateError
from tidegate.schema import TIME, foreign_part, normal_type
from tidegate.session.session import Session
from tidegate.sink.csv import write_csv
from tidegate.sink.json import write_json
from tidegate.source.memory import MemorySource

EXAMPLES = examples()

UNMADE = {"Type_INTERVAL_MONTHS", "Type_INTERVAL_DAY_TIME"}
"""Kinds of types that PyArrow has no constructor for."""

CANNOT_HOLD = (pa.ArrowNotImplementedError, pa.ArrowInvalid, OSError)


def test_no_type_of_arrow_is_left_out() -> None:
    kinds = {name: getattr(pa.lib, name) for name in dir(pa.lib) if name.startswith("Type_")}
    covered = {example.column.type.id for example in EXAMPLES.values()}
    assert {name for name, id_ in kinds.items() if id_ not in covered} == UNMADE


def as_memory(table: pa.Table, folder: Path) -> Any:
    return table


def as_rows_appended(table: pa.Table, folder: Path) -> Any:
    source = MemorySource(table, time="at", id="rows")
    source.end()
    return source


def as_parquet(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "rows.parquet")
    return str(folder / "rows.parquet")


def as_orc(table: pa.Table, folder: Path) -> Any:
    if any(pa.types.is_decimal(t) and t.scale < 0 for t in table.schema.types):
        raise pa.ArrowInvalid("Arrow ends the process that writes a negative scale")
    orc.write_table(table, str(folder / "rows.orc"))
    return str(folder / "rows.orc")


def query(source: Any, sql: str) -> pa.Table:
    session = Session(master="none")
    return session.sql(sql, s=session.stream(source, time="at", name="s")).preview(100).table


@pytest.mark.parametrize(("give", "least"), [(as_parquet, 60), (as_orc, 35)])
def test_the_formats_hold_most_types(
    give: Callable[[pa.Table, Path], Any], least: int, tmp_path: Path
) -> None:
    held = 0
    for example in EXAMPLES.values():
        with suppress(*CANNOT_HOLD):
            held += give(table_of(example), tmp_path) is not None
    assert held >= least


def table_of(example: Example) -> pa.Table:
    at = pa.array(range(len(example.column))).cast(TIME)
    return pa.table({"at": at, "n": pa.array(range(len(at))), "v": example.column})


@pytest.mark.parametrize("give", [as_memory, as_rows_appended, as_parquet, as_orc])
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_column_of_any_type_works_or_is_refused(
    name: str, give: Callable[[pa.Table, Path], Any], tmp_path: Path
) -> None:
    example = EXAMPLES[name]
    try:
        source = give(table_of(example), tmp_path)
    except CANNOT_HOLD:
        if give not in (as_parquet, as_orc):
            raise
        return
    assert query(source, "SELECT n FROM s")["n"].to_pylist() == [0, 1, 2, 3]
    if example.values is None:
        for sql in ("SELECT * FROM s", "SELECT n FROM s WHERE v IS NULL"):
            with pytest.raises(SourceError, match="stream s: column v must have a type that"):
                query(source, sql)
        return
    found = query(source, "SELECT * FROM s")
    if give is not as_orc or name != "date64":  # ORC has it as a timestamp
        assert found["v"].to_pylist() == example.values
    write_csv(found, io.BytesIO())
    write_json(found, io.BytesIO())
    pq.write_table(found, pa.BufferOutputStream())
    if example.key:
        counted = query(source, "SELECT v, COUNT(*) AS m FROM s [RANGE 1 DAY] GROUP BY v")
        counts = {row["v"]: row["m"] for row in counted.to_pylist()}
        assert counts == {v: found["v"].to_pylist().count(v) for v in found["v"].to_pylist()}


class Frame:
    """Gives Arrow data as a DataFrame of Polars does: all texts are views."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        arrays = {name: pa.array(rows) for name, rows in columns.items()}
        is_text = {name: pa.types.is_string(a.type) for name, a in arrays.items()}
        self._table = pa.table(
            {n: a.cast(pa.string_view()) if is_text[n] else a for n, a in arrays.items()}
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_a_frame_whose_texts_are_views() -> None:
    times = ["2024-01-31T12:00:01Z", "2024-01-31T12:00:00Z", "2024-01-31T12:00:02Z"]
    frame = Frame({"at": times, "word": ["b", "a", "b"]})
    assert query(frame, "SELECT word FROM s")["word"].to_pylist() == ["a", "b", "b"]
    counted = query(frame, "SELECT word, COUNT(*) AS m FROM s [RANGE 1 DAY] GROUP BY word")
    assert counted["m"].to_pylist() == [1, 2]


def test_late_and_rejected_rows_leave_out_what_cannot_be_read(tmp_path: Path) -> None:
    at = pa.array([5, 1, None]).cast(TIME)
    wide = pa.array([1, 2, 3]).cast(pa.decimal256(50, 0))
    pq.write_table(pa.table({"at": at, "n": [1, 2, 3], "v": wide}), tmp_path / "s.parquet")
    session = Session(master="none")
    stream = session.stream(str(tmp_path / "s.parquet"), time="at", name="s")
    out = tmp_path / "out"
    session.sql("SELECT n FROM s", s=stream).start(sink=str(out)).wait()
    late = pq.read_table(next(out.glob("_late/**/*.parquet")), partitioning=None)
    assert late.column("n").to_pylist() == [2]
    assert "v" not in late.column_names
    assert list(out.glob("_rejected/**/*.*"))


def test_what_a_program_declares_may_not_be_foreign() -> None:
    import tidegate as tg

    with pytest.raises(QueryError, match=r"function wide: the type must be one.*decimal256"):
        tg.function(returns=pa.decimal256(50, 0), name="wide")(lambda x: x)

    class Wide(tg.Process):
        output = pa.schema([("w", pa.decimal256(50, 0))])

        def on_tuple(self, tuple: Any, keys: Any) -> None: ...

    session = Session(master="none")
    stream = session.stream(pa.table({"ts": pa.array([1]).cast(TIME), "k": [1]}), time="ts")
    with pytest.raises(TidegateError, match=r"output w: the type must be one.*decimal256"):
        stream.process(Wide, keys="k")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_normal_type_is_its_own(name: str) -> None:
    type_ = normal_type(EXAMPLES[name].column.type)
    assert normal_type(type_) == type_
    assert (foreign_part(type_) is None) == (EXAMPLES[name].values is not None)


def test_what_is_no_source_is_told_as_that() -> None:
    with pytest.raises(OptionError, match=r"a source must be a path, .*; got NoneType"):
        Session(master="none").stream(None)
