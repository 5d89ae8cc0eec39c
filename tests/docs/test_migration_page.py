"""The page for people who come from elsewhere: its queries run, and each gives rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.docs.block import blocks
from tidegate.cli.main import invoke

PAGE = "docs/migration.md"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows(folder: str) -> int:
    return pq.read_table(sorted(Path(folder).glob("batch=*/*.parquet"))).num_rows


@pytest.mark.parametrize("query", blocks(PAGE, "sql"))
def test_a_query_runs_as_it_stands(query: str) -> None:
    Path("query.sql").write_text(query, encoding="utf-8")
    assert invoke(["run", "query.sql", "--master", "none", "--out", "out"]) == 0
    assert rows("out") > 10


def test_there_is_a_query_for_each_construct_of_sql() -> None:
    assert len(blocks(PAGE, "sql")) == 6


def test_the_state_of_your_own_runs() -> None:
    (program,) = blocks(PAGE, "python")
    exec(compile(program, PAGE, "exec"), {"__name__": "page"})
    assert rows("first") > 10
