"""One small standalone cluster for all tests below this folder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.cluster.standalone import Standalone, namespaces_work


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers, whose temporary folders are their own."""
    found = Standalone(tmp_path_factory.mktemp("cluster"))
    try:
        found.start_master()
        found.start_workers({"one": namespaces_work(), "two": False})
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="session")
def rides(cluster: Standalone) -> Path:
    """A file that all hosts have."""
    path = cluster.shared / "rides.csv"
    start = datetime(2024, 1, 31, 12, 0, 30)
    times = (start + timedelta(milliseconds=500 * i) for i in range(1_000))
    rows = (f"{t.isoformat()}Z,{'abc'[i % 3]},{i % 7}" for i, t in enumerate(times))
    path.write_text("\n".join(["ts,route,fare", *rows]) + "\n")
    return path
