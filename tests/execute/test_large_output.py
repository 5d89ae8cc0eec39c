"""An output of many rows without Spark: written in parts, with the rows of one that is not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.driver.scene import loop_of, memory, plan_of
from tidegate.execute import local
from tidegate.operate import spill
from tidegate.operate.aggregate.pane import closing
from tidegate.operate.join import pieces
from tidegate.sink.folder.files import FileSink

ROWS = [(second / 7, "abcd"[second % 4], second) for second in range(300)]
QUERIES = {
    "windows": "SELECT k, SUM(v) AS t FROM s [RANGE 20 SECONDS SLIDE 500 MILLISECONDS] GROUP BY k",
    "ordered": "SELECT k, COUNT(*) AS n FROM s [RANGE 9 SECONDS SLIDE 300 MILLISECONDS] "
    "GROUP BY k ORDER BY n DESC, k DESC LIMIT 2",
    "pairs": "SELECT l.v AS a, r.v AS b "
    "FROM s [RANGE 3 SECONDS] AS l JOIN s [RANGE 2 SECONDS] AS r ON l.k = r.k",
    "tuples": "SELECT SUM(v) AS t FROM s [ROWS 40 SLIDE 1]",
}


def written(sql: str, folder: Path, instances: int) -> tuple[pa.Table, list[str]]:
    """The rows in the order of the files, and the files of the last batch."""
    sink = FileSink(folder / "out", "parquet")
    loop = loop_of(
        plan_of(sql), [memory(*ROWS, end=True)], folder / "ckpt", sink, instances=instances
    )
    summary = loop.run()
    files = sorted((folder / "out").glob("batch=*/part-*.parquet"))
    rows = pa.concat_tables([pq.read_table(f, partitioning=None) for f in files])
    assert summary.counters["rows_out"] == rows.num_rows
    assert list((folder / "ckpt" / "staged").glob("*")) == []
    return rows, [f.name for f in files if f.parent == files[-1].parent]


@pytest.mark.parametrize("instances", [1, 3])
@pytest.mark.parametrize("name", QUERIES)
def test_parts_have_the_rows_of_the_whole(
    name: str, instances: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, one = written(QUERIES[name], tmp_path / "whole", 2)
    assert one == ["part-00000.parquet"]
    monkeypatch.setattr(local, "PART_ROWS", 50)
    monkeypatch.setattr(spill, "SPILL_BYTES", 1000)
    monkeypatch.setattr(closing, "_STEP_WINDOWS", 20)
    monkeypatch.setattr(pieces, "PIECE_PAIRS", 10)
    parts, several = written(QUERIES[name], tmp_path / "parts", instances)
    assert len(several) > 2
    assert parts.equals(whole)
