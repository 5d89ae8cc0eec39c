"""Tables that a process holds: built once for each use, whatever caches have room for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.batch import to_bytes
from tidegate.memory import MEMORY, Memory
from tidegate.operate.table_join import table_versions
from tidegate.operate.table_join.table_versions import TableVersion
from tidegate.state.handle import StoreHandle


@pytest.fixture
def store(tmp_path: Path) -> StoreHandle:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(to_bytes(pa.table({"name": [name]})))
    return StoreHandle(str(tmp_path))


@pytest.fixture(autouse=True)
def _no_room_in_caches() -> Iterator[None]:
    before = MEMORY.limit_bytes
    MEMORY.resize(1)
    yield
    MEMORY.resize(before)


class Counted:
    """Builds the name that a table has, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, rows: pa.Table) -> str:
        self.times += 1
        return str(rows.column("name")[0].as_py())


def test_a_use_of_a_table_is_built_once(store: StoreHandle) -> None:
    build, version = Counted(), TableVersion("1", "one")
    assert [version.held(store, "use", build) for _ in range(3)] == ["one"] * 3
    assert build.times == 1
    assert version.held(store, "other use", build) == "one"
    assert build.times == 2


def test_of_a_table_that_was_read_again_the_newest_is_held(store: StoreHandle) -> None:
    build, old, new = Counted(), TableVersion("1", "one"), TableVersion("2", "two")
    order = (old, new, new, old, new)
    assert [v.held(store, "use", build) for v in order] == ["one", "two", "two", "one", "two"]
    assert build.times == 4


def test_no_more_uses_are_held_than_a_number(
    store: StoreHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_versions, "_HELD", Memory(1).cache(1, lambda _: 0, most_entries=2))
    build, version = Counted(), TableVersion("1", "one")
    for use in "abcbca":
        version.held(store, use, build)
    assert build.times == 4
