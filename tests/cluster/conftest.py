"""One small standalone cluster for all tests below this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.rides import write_rides
from tests.cluster.standalone import Standalone, namespaces_work
from tests.s3.server import Server


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and three workers, whose temporary folders are their own."""
    found = Standalone(tmp_path_factory.mktemp("cluster"))
    try:
        found.start_master()
        found.start_workers({"one": namespaces_work(), "two": False, "three": False})
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="session")
def rides(cluster: Standalone) -> Path:
    """A file that all hosts have."""
    return write_rides(cluster.shared / "rides.csv", 0, rows=1_000)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("s3"))
    yield made
    made.close()
