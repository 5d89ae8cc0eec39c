"""Pages of queries that the tests lead step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg
from tidegate.dashboard.guard import TOKEN

SECRET = "a-token-of-the-tests"


@pytest.fixture
def session() -> tg.Session:
    return tg.Session(master="none")


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Tests have a token and a home of their own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv(TOKEN, SECRET)
    return SECRET
