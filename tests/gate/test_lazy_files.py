"""Real files that are opened bit by bit are cut as if all of them were open."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gate.test_lazy_cut import facts
from tests.oracle.intake import PlainInlet, PlainIntake
from tidegate.gate.intake import Intake
from tidegate.source.files import FilesConnector

SECOND_US = 1_000_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lazy")


@st.composite
def times(draw: st.DrawFn) -> list[int | None]:
    """Seconds around a start, mostly in order."""
    value = draw(st.integers(0, 40))
    found: list[int | None] = []
    for _ in range(draw(st.integers(0, 30))):
        found.append(None if draw(st.integers(0, 9)) == 0 else value)
        value += draw(st.integers(-1, 4))
    return found


def write_parquet(data: st.DataObject, path: Path, seconds: list[int | None]) -> None:
    unit = data.draw(st.sampled_from(["ms", "us", "ns"]))
    column = pa.array(seconds, pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
    pq.write_table(
        pa.table({"t": column}),
        path,
        row_group_size=data.draw(st.integers(1, 12)),
        write_statistics=data.draw(st.booleans()),
    )


def write_csv(path: Path, seconds: list[int | None]) -> None:
    column = pa.array(seconds, pa.int64()).cast(pa.timestamp("s"))
    pacsv.write_csv(pa.table({"t": column, "v": [1] * len(seconds)}), path)


@settings(max_examples=max(60, settings().max_examples))
@given(
    st.data(),
    st.sampled_from(["parquet", "csv"]),
    st.lists(times(), min_size=1, max_size=6),
    st.integers(1, 25),
    st.booleans(),
)
def test_files_are_cut_as_if_all_of_them_were_open(
    place: Path,
    data: st.DataObject,
    format_: str,
    columns: list[list[int | None]],
    limit_rows: int,
    hold: bool,
) -> None:
    folder = place / str(sum(1 for _ in place.iterdir()))
    folder.mkdir()
    for number, seconds in enumerate([[5, 50], *columns]):
        path = folder / f"{number}.{format_}"
        if format_ == "csv":
            write_csv(path, seconds)
        else:
            write_parquet(data, path, seconds)
    block_bytes = data.draw(st.sampled_from([None, 64, 300]))
    disorder_us = data.draw(st.sampled_from([0, 2 * SECOND_US]))

    def connector() -> FilesConnector:
        return FilesConnector(str(folder), "s", "t", block_bytes=block_bytes)

    lazy, plain = Intake(hold), PlainIntake(hold)
    lazy.add(0, connector(), disorder_us)
    inlet = PlainInlet(0, disorder_us)
    plain.inlets = [inlet]
    for source in connector().discover():
        plain.add(inlet, source)
    rows = 0
    while (found := lazy.next_cut(limit_rows, 0.0)) is not None:
        assert facts(found) == facts(plain.next_cut(limit_rows))
        rows += found.rows
        if found.exhausted:
            break
    assert rows == sum(len(c) for c in columns) + 2
