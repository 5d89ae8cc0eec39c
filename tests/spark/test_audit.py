"""`tidegate audit` on Spark: rows that move with the cut, rows that do not, and refusals."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.docs.console import File, agrees, run, steps
from tidegate.cli.main import invoke

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STABLE = """
def query(spark):
    read = spark.readStream.schema("ts timestamp, v bigint").option("maxFilesPerTrigger", 2)
    return read.parquet({folder!r}).where("v > 1")
"""
"""What a program says of files at once does not count."""

BOUNDED = """
def query(spark):
    return spark.range(3)
"""

RATE = """
def query(spark):
    return spark.readStream.format("rate").load()
"""

OTHERS_SESSION = """
def query(spark):
    mine = type(spark).__mro__[1].builder.getOrCreate()
    return mine.readStream.schema("ts timestamp, v bigint").parquet({folder!r})
"""

OTHERS_CUT = """
def query(spark):
    mine = type(spark).__mro__[1].builder.getOrCreate().readStream.option("maxFilesPerTrigger", 1)
    return mine.schema("ts timestamp, v bigint").parquet({folder!r})
"""

TWICE = """
def query(spark):
    read = spark.readStream.schema("ts timestamp, v bigint").parquet({folder!r})
    return read.select("v", "v")
"""


def write(folder: Path, *files: list[int]) -> None:
    """Files of seconds after a time, each newer than the one before."""
    folder.mkdir()
    start = datetime(2024, 1, 1, tzinfo=UTC)
    for number, seconds in enumerate(files):
        times = [start + timedelta(seconds=s) for s in seconds]
        file = folder / f"{number}.parquet"
        pq.write_table(
            pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "v": seconds}), file
        )
        os.utime(file, (1_700_000_000 + number,) * 2)


def job(tmp_path: Path, text: str) -> str:
    file = tmp_path / "job.py"
    text = text.format(folder=str(tmp_path / "in"))
    file.write_text(f"from pyspark.sql import functions as F\n{text}")
    return str(file)


def test_the_commands_of_the_page(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late row is counted or not; the session of the tests has other partitions than the page."""
    monkeypatch.chdir(tmp_path)
    commands = 0
    for step in steps("docs/determinism.md"):
        if isinstance(step, File):
            Path(step.name).write_text(step.text, encoding="utf-8")
        else:
            printed = run(step).replace("3 shuffle", "201 shuffle")
            assert agrees(step, printed), f"$ {step.text}\n{printed}"
            commands += 1
    assert commands == 2


def test_rows_that_follow_from_the_input_do_not_move(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in", [1, 2], [3, 4], [5])
    assert invoke(["audit", job(tmp_path, STABLE), "--order", "--files", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["stable"], found["rows"]) == (True, 4)
    assert [run["run"] for run in found["runs"]] == [
        "the same again",
        "3 shuffle partitions",
        "1 file at once",
        "1 file at once, with a restart",
    ]
    assert not any(sum(run["counts"].values()) for run in found["runs"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOUNDED, "query(spark) must return a streaming DataFrame; got a bounded one."),
        (RATE, "all streams must be files, read with the session that query(spark) is given;"),
        (OTHERS_SESSION, "all streams must be files, read with the session that"),
        ("other = print", "must define query(spark), which returns a streaming DataFrame; got no"),
        (OTHERS_CUT, "all streams must be files, read with the session that"),
        (TWICE, "columns of the result must have different names; got v, v."),
        (
            "import sys; sys.exit(0)",
            "that can be imported; got SystemExit(0)",
        ),
        ("1 / 0", "must be a Python file that can be imported; got ZeroDivisionError"),
    ],
)
def test_what_cannot_be_audited_is_refused(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    write(tmp_path / "in", [1])
    assert invoke(["audit", job(tmp_path, text)]) == 2
    assert said in capsys.readouterr().err


def test_a_query_that_gives_no_rows_shows_nothing(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files are counted all the same: a filter leaves none of their rows."""
    write(tmp_path / "in", [1], [2])
    text = STABLE.replace("v > 1", "v > 1000")
    assert invoke(["audit", job(tmp_path, text), "--files", "1"]) == 2
    assert "must give rows, so that they can be compared; got none" in capsys.readouterr().err


def test_one_file_cannot_be_cut(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in", [1, 2])
    assert invoke(["audit", job(tmp_path, STABLE)]) == 2
    assert "its input must be more than 1 file, so that it can be cut" in capsys.readouterr().err


def test_an_empty_folder_shows_nothing(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in")
    assert invoke(["audit", job(tmp_path, STABLE)]) == 2
    said = capsys.readouterr().err
    assert "its input must have files; got none. Put its input where it reads it." in said
