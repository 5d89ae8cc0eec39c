"""A checkpoint of an earlier format while it is taken over: killed, and given back to that version.

The first batches of a run write the state in the present format. A process that dies at any of its
changes to the disk leaves a checkpoint that goes on to the same rows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints.keep import KEPT, ROWS_FILE
from tests.checkpoints.query import run, write_half, write_tables
from tests.checkpoints.test_kept import REFUSED
from tidegate.errors import CheckpointError, StateError
from tidegate.sink.memory import MemorySink
from tidegate.state.seal import seal, unseal
from tidegate.storage.disk import using
from tidegate.testing.tap import DiskChange, TappedDisk

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
DEATHS = 30 if LONG else 4
"""So many changes of a run at which it is killed, evenly spread."""

CHOSEN = {
    "0.1.0-a": ("equality_join", "graph", "sliding"),
    "0.1.0-c": ("sessions", "table_join"),
}
"""By format, the queries that are tried in short mode."""


class Dead(BaseException):
    """The end of a process."""


class DyingDisk(TappedDisk):
    """Counts the changes to a folder, and refuses the n-th and all after it."""

    def __init__(self, folder: str, last: int | None = None) -> None:
        super().__init__()
        self.changes = 0
        self._folder, self._last = folder, last

    def before(self, change: DiskChange) -> None:
        if change.path.startswith(self._folder):
            self.changes += 1
            if self._last is not None and self.changes >= self._last:
                raise Dead


ARCHIVES = [
    archive
    for archive in sorted(KEPT.glob("*/*.zip"))
    if (archive.parent.name, archive.stem) not in REFUSED
    and (LONG or archive.stem in CHOSEN.get(archive.parent.name, ()))
]


def unpacked(archive: Path, folder: Path) -> list[dict[str, Any]]:
    """Put the checkpoint and all input into a folder; gives the rows that follow."""
    for stream in "lr":
        for half in (0, 1):
            write_half(folder, stream, half)
    write_tables(folder, "changed since")
    with zipfile.ZipFile(archive) as kept:
        kept.extractall(folder)
    wanted: list[dict[str, Any]] = json.loads((folder / ROWS_FILE).read_text(encoding="utf-8"))
    return wanted


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda a: f"{a.parent.name}-{a.stem}")
def test_a_kill_while_a_format_is_taken_over_changes_no_row(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = unpacked(archive, tmp_path)
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint, "before")

    def dying(last: int | None) -> tuple[DyingDisk, MemorySink]:
        """A run of two batches from the state of the earlier version, or a part of it."""
        shutil.rmtree(checkpoint)
        shutil.copytree("before", checkpoint)
        disk, sink = DyingDisk(str(checkpoint), last), MemorySink()
        with suppress(Dead), using(disk):
            run(archive.stem, tmp_path, sink, instances=2)
        return disk, sink

    whole, _ = dying(None)
    assert whole.changes > DEATHS
    died = 0
    for death in range(DEATHS):
        last = 1 + death * whole.changes // DEATHS
        disk, sink = dying(last)
        died += disk.changes >= last
        rows = run(archive.stem, tmp_path, sink, instances=1 + death % 3)
        assert json.loads(json.dumps(rows, default=str)) == wanted, f"killed at change {last}"
    assert died == DEATHS


@pytest.mark.parametrize("file", ["meta.json", "manifest"])
def test_a_checkpoint_of_a_later_version_is_refused_and_left_as_it_is(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a later version is rolled back: killed after its first manifest, or long after."""
    monkeypatch.chdir(tmp_path)
    unpacked(ARCHIVES[0], tmp_path)
    run(ARCHIVES[0].stem, tmp_path, available_now=True)
    checkpoint = tmp_path / "checkpoint"
    newest = max((checkpoint / "manifest").glob("*.json"))
    path, member = (newest, "version") if file == "manifest" else (checkpoint / file, "layout")
    body = {k: v for k, v in unseal(path.read_bytes(), file).items() if k != "checksum"}
    path.write_text(seal({**body, member: body[member] + 1}))
    before = {p: p.read_bytes() for p in checkpoint.rglob("*") if p.is_file()}
    said = rf"{re.escape(path.name)}: must be of version {body[member]}; got version "
    with pytest.raises((CheckpointError, StateError), match=said) as raised:
        run(ARCHIVES[0].stem, tmp_path)
    assert "Run it with the Tidegate that wrote it" in str(raised.value)
    assert {p: p.read_bytes() for p in checkpoint.rglob("*") if p.is_file()} == before
