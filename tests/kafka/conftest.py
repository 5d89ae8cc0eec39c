"""One broker for all tests of a process, and a topic of its own for each."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from tools.kafka import Broker
from tools.schema_registry import RegistryServer

from tidegate.kafka.schema_registry import PREFIX as OF_REGISTRY
from tidegate.kafka.setting import PREFIX

_topics = itertools.count()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("kafka"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServer]:
    made = RegistryServer(tmp_path_factory.mktemp("registry"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see no settings of who runs them."""
    for name in [n for n in os.environ if n.startswith((PREFIX, OF_REGISTRY))]:
        monkeypatch.delenv(name)


@pytest.fixture
def topic() -> str:
    """A name that no other test has; the topic is not made yet."""
    return f"topic-{next(_topics)}"
