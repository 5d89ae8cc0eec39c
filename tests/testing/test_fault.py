"""The faults themselves: they strike where they are told to, and nobody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.testing import VICTIMS
from tidegate.testing.fault import Trap

CHANGES = """
import os, sys
from pathlib import Path
from tidegate.testing import FailAtChange, KillAtChange
fault = {fault}
fault("before gate", 2)
folder = Path(sys.argv[1])
(folder / "uncounted").mkdir()
fault("before gate", 3)
(folder / "a").mkdir()                            # 1
(folder / "a" / "b").write_text("x")              # 2
(folder / "a" / "b").read_text()
os.replace(folder / "a" / "b", folder / "a" / "c")  # 3
(folder / "a" / "c").unlink()                     # 4
(folder / "a").rmdir()                            # 5
"""


def run(folder: Path, fault: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", "-c", CHANGES.format(fault=fault), str(folder)],
        check=False,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("change", "left"), [(1, []), (2, ["a"]), (3, ["a", "a/b"]), (4, ["a", "a/c"]), (5, ["a"])]
)
def test_a_process_is_killed_before_the_change(
    change: int, left: list[str], tmp_path: Path
) -> None:
    done = run(tmp_path, f'KillAtChange({change}, "before gate", 3)')
    assert done.returncode == -signal.SIGKILL
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert found == [*left, "uncounted"]


def test_a_change_fails_as_on_a_full_disk(tmp_path: Path) -> None:
    done = run(tmp_path, 'FailAtChange(3, "before gate", 3)')
    assert done.returncode == 1
    assert done.stderr.strip().endswith("OSError: [Errno 28] No space left on device")
    assert (tmp_path / "a" / "b").read_text() == "x"


@pytest.mark.parametrize("victim", VICTIMS[1:])
@pytest.mark.parametrize("driver", [0, None])
def test_a_trap_outside_of_spark_kills_nobody(
    victim: str, driver: int | None, tmp_path: Path
) -> None:
    """Neither in the driver's own process nor under a parent that is not Spark's."""
    trap = Trap(victim, os.getpid() if driver is None else driver, 1, str(tmp_path / "tally"))
    trap.spring()
    assert not (tmp_path / "tally").exists()
