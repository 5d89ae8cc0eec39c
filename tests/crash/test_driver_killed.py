"""kill -9 of the driver, at every step and between any two changes to files: the same results."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from tests.conftest import LONG
from tests.crash.folder import contents, difference, facts, results
from tests.crash.process import KILLED, gone, wait_for
from tests.crash.scene import LOCAL
from tests.crash.site import Golden, Site
from tests.seed import SEED, seeds
from tidegate.testing import PHASES, STEPS

NAMES = [s.name for s in LOCAL]
FORMATS = ("parquet", "csv", "json")
LAST_STEPS = ("after commit", "after publish")
"""A batch that is committed is not run again, so that a process can die at one of them only."""

MakeSite = Callable[..., Site]
MakeGolden = Callable[..., Golden]


@pytest.mark.parametrize("name", NAMES)
def test_the_scenes_have_what_can_be_lost(
    name: str, golden: MakeGolden, make_site: MakeSite
) -> None:
    """Side outputs, many batches, windows over several of them: else the rest proves little."""
    state = golden(name).facts["state"]
    assert state["finished"]
    assert state["counters"]["rows_late"] > 10
    assert state["counters"]["rows_rejected"] > 10
    assert state["batch"] >= 10
    site = make_site(name)
    assert site.run(kind="step", step="after publish", batch=6)
    held = facts(site.checkpoint)["state"]
    if name == "stateless":
        assert any(s["waiting_from"] < s["position"] for s in held["sources"])
    elif name == "several":
        assert held["operators"]["join/left"]["rows"] > 20
        assert len(held["operators"]["process/buckets"]) > 15
        assert len(held["operators"]["aggregate/tuples"]) > 10
        assert set(results(golden(name).files)) == {"busy/", "pairs/", "rises/"}
    elif name == "waiting":
        rows = {k: v["rows"] for k, v in held["operators"].items() if isinstance(v, dict)}
        assert rows["aggregate/sessions"] >= 2
        assert rows["distinct/kept"] > 10
        assert rows["distinct2/last"] > 5
        assert rows["join/left"] > rows["join/left_matched"] > 5
        assert rows["asof/nearest"] > 10
        assert len(held["operators"]["over/tuples"]) > 5
        assert held["tables"]
        assert set(results(golden(name).files)) == {"visits/", "pairs/", "latest/"}
    else:
        assert held["operators"]["aggregate/panes"]["rows"] > 20


@pytest.mark.parametrize("turn", range(2 if LONG else 1))
@pytest.mark.parametrize("name", NAMES)
def test_killed_at_every_step_of_batches_in_turn(
    name: str, turn: int, make_site: MakeSite, golden: MakeGolden
) -> None:
    """One run that dies five times in a batch, and each time goes one step further."""
    site = make_site(name)
    for batch in range(0, golden(name).batches, 1 if LONG else 4):
        for step in (*STEPS[:4], LAST_STEPS[(batch + turn) % 2]):
            assert site.run(kind="step", step=step, batch=batch), (step, batch)
            site.check_now()
    site.finish()


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", NAMES)
def test_killed_once_at_a_step(
    name: str, step: str, make_site: MakeSite, golden: MakeGolden
) -> None:
    for batch in range(golden(name).batches):
        site = make_site(name)
        assert site.run(kind="step", step=step, batch=batch)
        site.check_now()
        site.finish()


@pytest.mark.parametrize("turn", range(3 if LONG else 1))
@pytest.mark.parametrize("name", NAMES if LONG else NAMES[:1])
def test_killed_inside_the_tasks(name: str, turn: int, make_site: MakeSite) -> None:
    """While a split is read, and when some instances have written their state and others not."""
    site = make_site(name, FORMATS[(NAMES.index(name) + 1 + turn) % 3])
    for batch, place in ((1, 0), (4, 1), (7, 2), (9, 3)):
        for phase in PHASES if name != "stateless" else PHASES[:1]:
            assert site.run(kind="operate", batch=batch, phase=phase, place=place)
            site.check_now()
    site.finish()


@pytest.mark.parametrize("name", NAMES)
def test_killed_before_any_change_to_a_file(
    name: str, make_site: MakeSite, golden: MakeGolden
) -> None:
    """From the first folder made to the last file removed, and inside writes; 300 in long mode."""
    changes = golden(name).changes
    assert changes > 300
    chance = random.Random(f"changes of {name} {SEED}")
    wanted = 60 if LONG else 1
    numbers = chance.sample(
        range(1, int(changes * 0.8)), wanted
    )  # there is more or less compaction
    for number in sorted(numbers):
        site = make_site(name)
        assert site.run(kind="change", change=number), number
        site.check_now()
        site.finish()


@pytest.mark.parametrize("shift", range(9 if LONG else 1))
@pytest.mark.parametrize("name", NAMES if LONG else NAMES[:1])
def test_killed_while_a_batch_is_published(
    name: str, shift: int, make_site: MakeSite, golden: MakeGolden
) -> None:
    """Between the commit and the last rename that shows the batch, elsewhere in each batch."""
    site = make_site(name)
    batches = range(1, golden(name).batches, 1 if LONG else 2)
    kills = 0
    for batch in batches:
        change = 1 + (batch // 2 + shift) % 9
        kills += site.run(kind="change", change=change, step="after commit", batch=batch)
        site.check_now()
    assert kills >= len(batches) - 2
    site.finish()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_killed_at_each_change_of_one_batch(name: str, make_site: MakeSite) -> None:
    """All changes of one batch, from the gate on: no window of time is left out."""
    before = make_site(name)
    assert before.run(kind="step", step="before gate", batch=9)
    kills = 0
    while kills < 150:  # beyond these the next batch has begun
        site = before.copy()
        if not site.run(kind="change", change=kills + 1, step="before gate", batch=9):
            break
        kills += 1
        site.check_now()
        site.finish()
    assert kills > 30


@pytest.mark.parametrize("seed", seeds(50 if LONG else len(NAMES)))
def test_killed_again_and_again(seed: int, make_site: MakeSite) -> None:
    """Any number of changes after each start, so that recovery is killed as well."""
    chance = random.Random(f"again {seed}")
    site = make_site(NAMES[seed % len(NAMES)], FORMATS[(seed + seed // 3) % 3])
    kills = 0
    while kills < (12 if LONG else 4):
        if not site.run(kind="change", change=int(chance.expovariate(1 / 40)) + 1):
            break
        kills += 1
        site.check_now()
    assert kills >= 4
    site.finish()


@pytest.mark.parametrize("seed", seeds(50 if LONG else len(NAMES)))
def test_killed_from_outside_at_any_moment(seed: int, make_site: MakeSite) -> None:
    """By the clock, twice, wherever the process is: in a library, in a system call, in a thread."""
    chance = random.Random(f"outside {seed}")
    site = make_site(NAMES[seed % len(NAMES)])
    for _ in range(2):
        pid = site.nursery.start(site.request)
        wait_for(lambda pid=pid: site.checkpoint.exists() or gone(pid), "the run begins")
        time.sleep(chance.uniform(0, 0.6))  # not a wait for anything: the moment is the test
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)
        status = site.nursery.wait()
        assert status in (0, KILLED), site.log.read_text()
        site.check_now()
    site.finish()


def test_tasks_of_a_killed_driver_that_write_late(make_site: MakeSite) -> None:
    """They outlive it on other hosts; what they write must not take the place of newer state."""
    site = make_site("aggregate")
    assert site.run(kind="step", step="after operate", batch=5)
    segments = site.checkpoint / "segment"
    late = {p: p.read_bytes() for p in segments.glob("00000005.0-*-000?-?.arrow")}
    assert len(late) == 2
    site.request["instances"] = 3
    assert site.run(kind="step", step="after publish", batch=5)
    for path, data in late.items():
        path.write_bytes(data)
    assert not site.run()
    assert difference(contents(site.out), site.golden.files) == []


@pytest.mark.parametrize("name", NAMES if LONG else NAMES[:1])
def test_a_finished_run_that_is_started_again_changes_nothing(
    name: str, make_site: MakeSite, golden: MakeGolden
) -> None:
    site = make_site(name)
    site.finish()
    before = contents(site.checkpoint)
    site.finish()
    assert difference(contents(site.checkpoint), before) == []
