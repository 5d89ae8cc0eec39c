"""One S3 server for all tests of a process, and a place on it for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.s3.server import KEYS, Server
from tidegate.state.store import Store

_places = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("s3"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def path() -> str:
    """A folder of the bucket that no other test has."""
    return f"checkpoints/{next(_places)}"


@pytest.fixture
def location(server: Server, path: str) -> str:
    return server.uri(path)


@pytest.fixture
def store(location: str) -> Store:
    made = Store.open(location)
    made.create({"fingerprint": "f00d", "buckets": 8})
    return made
