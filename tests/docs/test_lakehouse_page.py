"""The page on lakehouse tables: its commands run, and the table has what they say."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.docs.test_commands import follow


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow("docs/lakehouse.md", on_spark=False) == 2
    found = pl.scan_delta("fares").select(pl.col("n").sum(), pl.len()).collect()
    assert found.row(0)[0] == 2000
