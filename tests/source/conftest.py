"""What the tests of sources share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the files of many examples."""
    return tmp_path_factory.mktemp("source")
