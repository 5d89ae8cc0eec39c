"""kill -9 of a driver that writes to a lakehouse table: each row is in the table, and once."""

from __future__ import annotations

import io
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import LONG
from tests.crash.process import KILLED, Nursery
from tests.crash.site import Golden, request_for
from tests.seed import SEED
from tests.sink.lake.place import KINDS, Lake
from tidegate.testing import STEPS

IMPORTS = {
    "delta": ["deltalake", "tidegate.sink.lake.delta"],
    "iceberg": ["pyiceberg.catalog.sql", "pyiceberg.io.pyarrow", "tidegate.sink.lake.iceberg"],
}


class LakeSite:
    """A scene whose results go to a table, run again and again until it is done."""

    def __init__(self, nursery: Nursery, kind: str, folder: Path, inputs: Path) -> None:
        self.nursery = nursery
        self.lake: Lake = KINDS[kind](folder)
        self.request: dict[str, Any] = {
            **request_for("aggregate", folder / "run", inputs),
            "out": self.lake.uri,
            "format": "",
            "imports": IMPORTS[kind],
        }

    def run(self, **fault: Any) -> bool:
        """Run with a fault, or without; whether it was killed. Every other failure fails."""
        status = self.nursery.run({**self.request, "fault": fault or None})
        log = Path(self.request["log"])
        assert status in (0, KILLED), f"exit {status} with {fault}: {log.read_text()}"
        return status == KILLED

    def check(self, golden: Golden) -> None:
        """All rows in their order, all side outputs, and no file that is none of the table's."""
        rows = part_rows(golden, "batch=")
        assert self.lake.rows() == rows
        assert self.lake.table().num_rows == len(rows)
        late, rejected = part_rows(golden, "_late/"), part_rows(golden, "_rejected/")
        assert in_order(self.lake.table("_late/rides").to_pylist()) == in_order(late)
        assert in_order(self.lake.table("_rejected").to_pylist()) == in_order(rejected)
        committed = set(self.lake.files())
        assert [path for path in self.lake.staged() if path not in committed] == self.sides()

    def sides(self) -> list[str]:
        found = [self.lake.table(name) for name in ("_late/rides", "_rejected")]
        assert all(table.num_rows for table in found)
        staged = self.lake.staged()
        return [path for path in staged if path not in set(self.lake.files()) and is_side(path)]


def is_side(path: str) -> bool:
    """Whether a file holds late or rejected rows, by their columns."""
    return "_reason" in pq.read_schema(path).names


def part_rows(golden: Golden, prefix: str) -> list[dict[str, Any]]:
    """The rows of the files of an undisturbed run."""
    files = [data for name, data in sorted(golden.files.items()) if name.startswith(prefix)]
    return [row for data in files for row in pq.read_table(io.BytesIO(data)).to_pylist()]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("kind", list(KINDS))
def test_killed_at_every_step_and_around_the_commit_of_the_table(
    kind: str,
    nursery: Nursery,
    inputs: Path,
    tmp_path: Path,
    golden: Callable[..., Golden],
) -> None:
    """One run that dies again and again; then it ends, and the next one finds nothing to do."""
    whole = golden("aggregate")
    site = LakeSite(nursery, kind, tmp_path, inputs)
    for batch in range(whole.batches - 1) if LONG else (1, 7):
        for step in STEPS[:5] if LONG else STEPS[2:5]:
            assert site.run(kind="step", step=step, batch=batch), (step, batch)
        # The first change to a file after the commit of a batch is to sync that of the table.
        for change in range(1, 6 if LONG else 2):
            after = batch + change
            if after < whole.batches - 1:
                site.run(kind="change", change=change, step="after commit", batch=after)
    assert not site.run()
    site.check(whole)
    commits = site.lake.commits()
    assert not site.run()
    assert site.lake.commits() == commits


@pytest.mark.long
@pytest.mark.parametrize("kind", list(KINDS))
def test_killed_at_any_moment(
    kind: str, nursery: Nursery, inputs: Path, tmp_path: Path, golden: Callable[..., Golden]
) -> None:
    chance = random.Random(f"moments {kind} {SEED}")
    for course in range(10):
        folder = tmp_path / str(course)
        folder.mkdir()
        site = LakeSite(nursery, kind, folder, inputs)
        for _ in range(12):
            pid = nursery.start({**site.request, "fault": None})
            timer = threading.Timer(chance.uniform(0.02, 0.6), os.kill, (pid, signal.SIGKILL))
            timer.start()
            status = nursery.wait()
            timer.cancel()
            assert status in (0, KILLED), Path(site.request["log"]).read_text()
        assert not site.run()
        site.check(golden("aggregate"))
