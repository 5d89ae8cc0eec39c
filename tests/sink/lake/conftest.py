"""A table of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sink.lake.place import KINDS, Lake


@pytest.fixture(params=list(KINDS))
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return KINDS[request.param](tmp_path)
