"""Faults that strike real processes, on hosts with networks, disks and clocks of their own.

They need root, and say so where it is missing. `python -m tests.nemesis` runs longer campaigns.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.crash.process import gone, wait_for
from tests.nemesis.campaign import Report
from tests.nemesis.launch import campaign, inside
from tests.nemesis.machine import entered
from tests.seed import SEED

LONG_S = 20 * 60.0
ONE_ROUND_S = 0.0


def test_each_fault_does_what_it_says_and_is_undone() -> None:
    found = json.loads(inside("tests.nemesis.effect"))
    assert found == {
        "link": [True, False, True],
        "route": [True, False, True],
        "other route": [True, True, True],
        "clock": [0, 3600, 0],
        "disk": [True, False, True],
        "door": [True, False, True],
        "delay": [False, True, False],
    }


def test_nothing_is_left_of_a_campaign_that_is_killed() -> None:
    """Its processes end and its links and mounts go, though nobody has cleaned up."""
    made = "ip link add left-over type bridge && mount -t tmpfs left-over /mnt"
    words = ["sh", "-c", f"{made} && sleep 1000 & sleep 2000 & wait"]
    outer = subprocess.Popen(entered(words), stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: sorted(asleep(outer.pid)) == [1000, 2000], "both processes")
        left = list(asleep(outer.pid).values())
    finally:
        outer.kill()
        outer.wait()
    wait_for(lambda: all(map(gone, left)), "the end of its processes")
    assert not Path("/sys/class/net/left-over").exists()
    assert "left-over" not in Path("/proc/mounts").read_text()


def asleep(pid: int) -> dict[int, int]:
    """The processes below one that sleep, by for how long."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        if command[0] == b"sleep":
            found[int(command[1])] = int(child)
        found |= asleep(int(child))
    return found


def check(report: Report, least_faults: int) -> None:
    """Nothing was wrong, and enough has happened for that to mean something."""
    assert report.wrong == [], "\n".join([*report.story, *report.wrong, str(report.logs)])
    assert report.faults.total() >= least_faults
    assert report.lives >= 2
    assert min(report.rows.values()) > 50


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_three_executors_give_every_row_once_and_in_order() -> None:
    report = campaign("cluster", SEED, ONE_ROUND_S)
    check(report, least_faults=7)


@pytest.mark.timeout(1200)
def test_a_driver_that_is_killed_again_and_again_gives_every_row_once_and_in_order() -> None:
    report = campaign("alone", SEED, ONE_ROUND_S)
    check(report, least_faults=5)
    assert report.kills["driver"] >= 3


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(int(LONG_S) + 900)
@pytest.mark.parametrize("setting", ["cluster", "alone"])
def test_twenty_minutes_of_faults(setting: str) -> None:
    report = campaign(setting, SEED + 1, LONG_S)
    check(report, least_faults=100)
