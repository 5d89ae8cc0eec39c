"""The faults themselves: they strike where they are told to, and nobody else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.testing import VICTIMS
from tidegate.testing.fault import Trap

CHANGES = """
import json, os, sys
from pathlib import Path
import pyarrow as pa
from tidegate.storage import disk
from tidegate.testing import FailAtChange, FullAtByte, KillAtChange

def change(folder, fault):
    fault("before gate", 2)
    disk.current().make_folder(folder / "uncounted")
    fault("before gate", 3)
    disk.current().make_folder(folder / "a")                        # 1
    with disk.current().create(folder / "a" / "b") as file:         # 2
        pa.PythonFile(file, "w").write(b"0123456789")               # 3
        disk.current().sync(file)                                   # 4
    disk.read(folder / "a" / "b")
    disk.current().replace(folder / "a" / "b", folder / "a" / "c")  # 5
    disk.current().sync_folder(folder / "a")                        # 6
    disk.current().unlink(folder / "a" / "c")                       # 7
    disk.current().remove_folder(folder / "a")                      # 8

def child(folder, fault):
    folder.mkdir()
    try:
        change(folder, fault)
    except OSError as error:
        (folder / "error").write_text(str(error))
        return 1
    (folder / "count").write_text(f"{fault.count} changes, {fault.bytes} bytes")
    return 0

statuses = []
for number, text in enumerate(sys.argv[2:]):
    pid = os.fork()
    if pid == 0:
        os._exit(child(Path(sys.argv[1], str(number)), eval(text)))
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(json.dumps(statuses))
"""
LEFT = ([], ["a"], ["a", "a/b"], ["a", "a/b"], ["a", "a/b"], *[["a", "a/c"]] * 2, ["a"])
"""What is there before each change."""


def run(folder: Path, *faults: str) -> list[tuple[int, Path]]:
    """A process for each fault: the exit status, and the folder that it has changed."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", CHANGES, str(folder), *faults],
        check=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    statuses = json.loads(done.stdout)
    assert len(statuses) == len(faults)
    return [(status, folder / str(number)) for number, status in enumerate(statuses)]


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_a_process_is_killed_before_the_change(tmp_path: Path) -> None:
    kills = [f'KillAtChange({n}, "before gate", 3)' for n in range(1, len(LEFT) + 1)]
    *killed, (status, last) = run(tmp_path, *kills, 'KillAtChange(100, "before gate", 3)')
    for (signalled, folder), left in zip(killed, LEFT, strict=True):
        assert signalled == -signal.SIGKILL
        assert names(folder) == [*left, "uncounted"]
    assert (killed[2][1] / "a" / "b").read_bytes() == b"01234", "half of what Arrow wrote"
    assert status == 0
    assert (last / "count").read_text() == f"{len(LEFT)} changes, 10 bytes"


def test_changes_fail_and_bytes_do_not_fit(tmp_path: Path) -> None:
    faults = ["FailAtChange(5, {})", "FullAtByte(0, {})", "FullAtByte(7, {})", "FullAtByte(10, {})"]
    *failed, (status, last) = run(tmp_path, *(f.format('"before gate", 3') for f in faults))
    for (code, folder), written in zip(failed, (10, 0, 7), strict=True):
        assert code == 1
        assert (folder / "error").read_text() == "[Errno 28] No space left on device"
        assert (folder / "a" / "b").read_bytes() == b"0123456789"[:written]
    assert status == 0
    assert (last / "count").read_text() == "0 changes, 10 bytes"


@pytest.mark.parametrize(
    ("victim", "driver"),
    [*((victim, None) for victim in VICTIMS[1:]), ("daemon", 0), ("jvm", 0)],
)
def test_a_trap_outside_of_spark_kills_nobody(
    victim: str, driver: int | None, tmp_path: Path
) -> None:
    """Neither in the driver's own process, nor parents that are not Spark's."""
    trap = Trap(victim, os.getpid() if driver is None else driver, 1, str(tmp_path / "tally"))
    trap.spring()
    assert not (tmp_path / "tally").exists()
