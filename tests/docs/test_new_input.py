"""The new source and the new file format that CONTRIBUTING.md shows: one file and one line each."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tests.docs.package_copy import PackageCopy, blocks

SQL = """
CREATE STREAM rides FROM '{uri}' TIME ts;
SELECT route, COUNT(*) AS n, SUM(fare) AS fare FROM rides [RANGE 60 SECONDS] GROUP BY route
"""
RIDES = [(f"2024-01-01T00:{i // 60:02}:{i % 60:02}Z", "ab"[i % 2], i) for i in range(300)]


@dataclass(frozen=True)
class Toy:
    """A section of the page, the table of its registry line, and the name of its file."""

    title: str
    table: str
    file: str

    def put_into(self, copy: PackageCopy) -> None:
        """Do what the page says, in a copy of the package."""
        (text,), (line,) = (blocks(self.title, language) for language in ("python", "text"))
        copy.add_file(self.file, text)
        copy.add_line("source/registry.py", f"{self.table}: dict[str, str] = {{\n", line)


SOURCE = Toy("A new source", "SOURCES", "source/sqlite.py")
FORMAT = Toy("A new file format", "FORMATS", "source/arrow.py")

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> PackageCopy:
    copy = PackageCopy(tmp_path_factory.mktemp("toy"))
    for toy in (SOURCE, FORMAT):
        toy.put_into(copy)
    return copy


@pytest.fixture
def run(package: PackageCopy, tmp_path: Path) -> Run:
    """Runs the query over a URI with the command line of the copy; its exit code and its words."""

    def ask(uri: str, *options: str) -> tuple[int, str]:
        (tmp_path / "q.sql").write_text(SQL.format(uri=uri))
        words = ["run", "q.sql", "--master", "none", "--out", "out", "--format", "csv", *options]
        done = package.run("-m", "tidegate", *words, folder=tmp_path)
        return done.returncode, done.stdout + done.stderr

    return ask


def results(folder: Path) -> list[str]:
    parts = sorted(folder.glob("out/batch=*/part-*.csv"))
    return [line for part in parts for line in part.read_text().splitlines()[1:]]


def database(path: Path, rides: list[tuple[str, str, int]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS rides (ts TIMESTAMP, route TEXT, fare INTEGER)"
        )
        connection.executemany("INSERT INTO rides VALUES (?, ?, ?)", rides)


def test_each_touches_its_own_file_and_one_line_of_the_registry(package: PackageCopy) -> None:
    touched = package.touched()
    assert list(touched) == ["source/arrow.py", "source/registry.py", "source/sqlite.py"]
    assert touched["source/registry.py"] == 2
    assert [line for toy in (SOURCE, FORMAT) for line in blocks(toy.title, "text")] == [
        '    "sqlite": "tidegate.source.sqlite:SqliteSource",\n',
        '    ".arrow": "tidegate.source.arrow:ArrowFormat",\n',
    ]


def expected(rides: list[tuple[str, str, int]]) -> list[str]:
    """The rows of whole minutes."""
    found = []
    for minute in range(len(rides) // 60):
        for route in "ab":
            fares = [fare for _, r, fare in rides[minute * 60 : minute * 60 + 60] if r == route]
            found.append((route, len(fares), sum(fares)))
    return [f'"{route}",{n},{fare}' for route, n, fare in found]


def without_times(lines: list[str]) -> list[str]:
    return [",".join(line.split(",")[-3:]) for line in lines]


def test_the_source_is_read_and_read_on(run: Run, tmp_path: Path) -> None:
    database(tmp_path / "rides.db", RIDES[:170])
    options = ("--checkpoint", "state", "--batch-rows", "50", "--instances", "2")
    code, said = run("sqlite:rides.db?table=rides", *options, "--available-now")
    assert code == 0, said
    some = without_times(results(tmp_path))
    assert some == expected(RIDES)[: len(some)]
    assert len(some) == 4
    database(tmp_path / "rides.db", RIDES[170:])
    code, said = run("sqlite:rides.db?table=rides", *options)
    assert code == 0, said
    assert without_times(results(tmp_path)) == expected(RIDES)


def test_mistakes_with_the_source_are_told(run: Run, tmp_path: Path) -> None:
    code, said = run("sqlite:rides.db?table=rides")
    assert code == 2
    assert "needs a file and a table; got rides.db, table rides." in said
    code, said = run("sqlit:rides.db")
    assert code == 2
    assert "Did you mean sqlite?" in said


def test_files_of_the_format_are_read_also_in_a_folder(run: Run, tmp_path: Path) -> None:
    table = pa.table(
        {
            "ts": pa.array([t.removesuffix("Z") for t, _, _ in RIDES]).cast(pa.timestamp("us")),
            "route": [r for _, r, _ in RIDES],
            "fare": [f for _, _, f in RIDES],
        }
    )
    (tmp_path / "in").mkdir()
    for number in range(3):
        with pa.ipc.new_file(str(tmp_path / f"in/{number}.arrow"), table.schema) as writer:
            writer.write_table(table.slice(100 * number, 100), max_chunksize=30)
    code, said = run("in", "--batch-rows", "70")
    assert code == 0, said
    assert without_times(results(tmp_path)) == expected(RIDES)
    (tmp_path / "in/3.arrow").write_bytes(b"ARROW1 and no more")
    code, said = run("in/3.arrow")
    assert code == 2
    assert "the file must be a whole, readable Arrow file; got " in said
