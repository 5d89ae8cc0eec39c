"""One Postgres server for all tests of a process, and a table on it for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.postgres.server import Server

_tables = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def table() -> str:
    """The name of a table that no other test has, and that needs quotes."""
    return f"Results {next(_tables)}"


@pytest.fixture
def uri(server: Server, table: str) -> str:
    return server.uri(table)
