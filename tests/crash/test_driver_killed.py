"""kill -9 of the driver, at every step and between any two changes to files: the same results."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from tests.conftest import LONG
from tests.crash.conftest import Golden, Site
from tests.crash.folder import difference, published
from tests.crash.process import KILLED
from tests.crash.scene import SCENES
from tidegate.testing import PHASES, STEPS

NAMES = list(SCENES)
FORMATS = ("parquet", "csv", "json")


@pytest.mark.parametrize("name", NAMES)
def test_the_scenes_have_what_can_be_lost(
    name: str, golden: Callable[..., Golden], make_site: Callable[..., Site]
) -> None:
    """Side outputs, many batches, windows over several of them: else the rest proves little."""
    state = golden(name).facts["state"]
    assert state["finished"]
    assert state["counters"]["rows_late"] > 10
    assert state["counters"]["rows_rejected"] > 10
    assert state["batch"] >= 10
    site = make_site(name)
    assert site.run(kind="step", step="after publish", batch=6)
    held = _held(site)
    if name == "stateless":
        assert any(s["waiting_from"] < s["position"] for s in held["sources"])
    else:
        assert held["operators"]["aggregate"]["rows"] > 20


def _held(site: Site) -> dict:
    from tests.crash.folder import facts

    return facts(site.checkpoint)["state"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("after", ["after commit", "after publish"])
def test_killed_at_every_step_of_every_batch_in_turn(
    name: str, after: str, make_site: Callable[..., Site], golden: Callable[..., Golden]
) -> None:
    """One run that dies five times in each batch, and each time goes one step further."""
    site = make_site(name)
    batches = golden(name).batches
    step_over = 1 if LONG else 3
    for batch in range(0, batches, step_over):
        for step in (*STEPS[:4], after):
            assert site.run(kind="step", step=step, batch=batch), (step, batch)
            site.check_now()
    site.finish()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("format_", FORMATS)
def test_killed_inside_the_tasks(
    name: str, format_: str, make_site: Callable[..., Site]
) -> None:
    site = make_site(name, format_)
    for batch, place in ((1, 0), (4, 1), (7, 2)):
        for phase in PHASES if name != "stateless" else PHASES[:1]:
            assert site.run(kind="operate", batch=batch, phase=phase, place=place)
            site.check_now()
    site.finish()


@pytest.mark.parametrize("name", NAMES)
def test_killed_before_any_change_to_a_file(name: str, make_site: Callable[..., Site]) -> None:
    """From the first folder made to the last file removed; all of them in the long mode."""
    changes = _changes(make_site(name))
    assert changes > 150
    numbers = range(1, changes + 1)
    if not LONG:
        numbers = sorted(random.Random(f"changes of {name}").sample(numbers, 6))
    for number in numbers:
        site = make_site(name)
        if site.run(kind="change", change=number):  # compaction makes a few more or less
            site.check_now()
        else:
            assert number > changes * 0.8
        site.finish()


@pytest.mark.parametrize("shift", range(9 if LONG else 2))
@pytest.mark.parametrize("name", NAMES)
def test_killed_while_a_batch_is_published(
    name: str, shift: int, make_site: Callable[..., Site], golden: Callable[..., Golden]
) -> None:
    """Between the commit and the last rename that shows the batch, another one in each batch."""
    site = make_site(name)
    for batch in range(1, golden(name).batches, 1 if LONG else 2):
        change = 1 + (batch // 2 + shift * 4) % 9
        site.run(kind="change", change=change, step="after commit", batch=batch)
        site.check_now()
    site.finish()


def test_killed_at_each_change_of_one_batch(make_site: Callable[..., Site]) -> None:
    """All changes of one batch, from the gate to the next one: no window of time is left out."""
    for change in range(1, 40 if LONG else 32, 1 if LONG else 3):
        site = make_site("aggregate")
        assert site.run(kind="change", change=change, step="before gate", batch=6)
        site.check_now()
        site.finish()


@pytest.mark.parametrize("seed", range(50 if LONG else 3))
def test_killed_again_and_again(seed: int, make_site: Callable[..., Site]) -> None:
    """Any number of changes after each start, so that recovery is killed as well."""
    chance = random.Random(f"again {seed}")
    site = make_site(NAMES[seed % len(NAMES)], FORMATS[seed // 3 % 3])
    kills = 0
    while kills < 12 and site.run(kind="change", change=int(chance.expovariate(1 / 25)) + 1):
        kills += 1
        site.check_now()
    assert kills >= 4
    site.finish()


@pytest.mark.parametrize("seed", range(50 if LONG else 5))
def test_killed_from_outside_at_any_moment(seed: int, make_site: Callable[..., Site]) -> None:
    """By the clock, twice, wherever the process is: in a library, in a system call, in a thread."""
    chance = random.Random(f"outside {seed}")
    site = make_site(NAMES[seed % len(NAMES)], FORMATS[seed // 3 % 3])
    for _ in range(2):
        pid = site.nursery.start(site.request)
        _wait_for(lambda: site.checkpoint.exists() or _gone(pid))
        time.sleep(chance.uniform(0, 0.6))  # not a wait for anything: the moment is the test
        if not _gone(pid):
            os.kill(pid, signal.SIGKILL)
        status = site.nursery.wait()
        assert status in (0, KILLED), site.log.read_text()
        site.check_now()
    site.finish()


@pytest.mark.parametrize("name", NAMES)
def test_a_finished_run_that_is_started_again_changes_nothing(
    name: str, make_site: Callable[..., Site], golden: Callable[..., Golden]
) -> None:
    site = make_site(name)
    site.finish()
    site.finish()
    assert difference(published(site.out), golden(name).files) == []


def _changes(site: Site) -> int:
    """How many changes an undisturbed run makes."""
    assert not site.run(kind="change", change=10**9)
    return int(json.loads(site.log.read_text().splitlines()[-1])["changes"])


def _gone(pid: int) -> bool:
    """Whether a process has ended; its parent may not have taken note yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def _wait_for(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.001)
