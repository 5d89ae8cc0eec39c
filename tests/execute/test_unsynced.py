"""Files that tasks leave to the driver to sync are on the disk before their batch counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.durable import DurableDisk
from tests.driver.scene import loop_of, memory, plan_of
from tests.execute.test_shared_task import QUERY, ROWS, OneTask, SharedTasks
from tidegate.storage import disk
from tidegate.testing import DiskChange


@pytest.mark.parametrize("executor", [SharedTasks(2), SharedTasks(), OneTask()])
def test_what_tasks_wrote_outlives_the_commit(executor: SharedTasks, tmp_path: Path) -> None:
    checkpoint, commits = tmp_path / "c", list[str]()

    def watch(change: DiskChange, watched: DurableDisk) -> None:
        if change.kind == "link" and Path(change.target).parent.name == "manifest":
            assert watched.lost(checkpoint / "segment") == []
            commits.append(change.target)

    with disk.using(DurableDisk(watch)) as watched:
        assert isinstance(watched, DurableDisk)
        loop = loop_of(plan_of(QUERY), [memory(*ROWS, end=True)], checkpoint, batch_rows=120)
        loop.runner = executor
        loop.run()
        written = [c for c in watched.changes if c.kind == "replace" and "/segment/" in c.target]
    assert len(commits) >= 2
    assert len(written) >= 2
