"""The stores that one suite runs over."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem, _MockFileSystem

from tests.state.faulty import Steps, faulty
from tidegate.memory import Memory
from tidegate.state.segment import segment as segment_module
from tidegate.state.store import Store

PLACES = ("path", "uri", "local", "subtree", "memory", "memory-subtree", "python")


def place(kind: str, folder: Path) -> str | tuple[FileSystem, str]:
    """A location of each kind that a store can be opened at."""
    if kind == "path":
        return str(folder / "a checkpoint")
    if kind == "uri":
        return (folder / "ckpt").as_uri()
    if kind == "local":
        return LocalFileSystem(), str(folder / "ckpt")
    if kind == "subtree":
        return SubTreeFileSystem(str(folder), LocalFileSystem()), "deep/ckpt"
    if kind == "memory":
        return _MockFileSystem(), "some/ckpt"
    if kind == "memory-subtree":
        return SubTreeFileSystem("base", _MockFileSystem()), "ckpt"
    return faulty(_MockFileSystem(), Steps()), "some/ckpt"


@pytest.fixture(params=PLACES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str | tuple[FileSystem, str]:
    return place(request.param, tmp_path)


@pytest.fixture
def store(location: str | tuple[FileSystem, str]) -> Store:
    made = Store.open(location)
    made.create({"fingerprint": "f00d", "buckets": 8})
    return made


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a process that has not read any segment yet."""
    segment_module._verified.clear()
    remember(monkeypatch, 2**28)


def remember(monkeypatch: pytest.MonkeyPatch, limit_bytes: int) -> Memory:
    """Let this process have so much memory for remote segments."""
    memory = Memory(limit_bytes)
    monkeypatch.setattr(segment_module, "_remote", memory.cache(1, segment_module._size))
    return memory
