"""A disk that fills or fails at any change to a file: a clear error, the rest after a restart."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LONG
from tests.crash.folder import contents, difference
from tests.crash.process import DRIVER, ENVIRONMENT
from tests.crash.scene import LOCAL, SCENES
from tests.crash.site import Golden, Site
from tests.seed import SEED
from tidegate.state.store import Store

MakeSite = Callable[..., Site]

FULL = "No space left on device"
NAMES = [s.name for s in LOCAL]


def fail(site: Site, **fault: Any) -> tuple[int, str]:
    """Run with a change that fails; the exit code and what the user is told."""
    status = site.nursery.run({**site.request, "fault": fault})
    return status, site.log.read_text().strip()


def told(site: Site, status: int, message: str, error: int, early: bool) -> None:
    """One line with what to do, that names a file and says what the system said."""
    assert status in (1, 2), message
    assert status == 1 or early, f"nothing was started, says {message}"
    assert len(message.splitlines()) == 1
    assert message.startswith((str(site.checkpoint), str(site.out)))
    assert f"got {os.strerror(error)}" in message


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO] if LONG else [errno.ENOSPC])
@pytest.mark.parametrize("name", NAMES)
def test_any_change_that_fails(name: str, error: int, make_site: MakeSite) -> None:
    """Files made, written, synced, renamed and removed; folders too."""
    chance = random.Random(f"failures of {name} {error} {SEED}")
    for number in sorted(chance.sample(range(1, 300), 50 if LONG else 1)):
        site = make_site(name)
        status, message = fail(site, kind="failure", change=number, error=error)
        if status != 0:  # a folder that need not be made again may well not be made
            told(site, status, message, error, early=number < 25)
        site.check_now()
        site.finish()


@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_is_full_after_any_number_of_bytes(
    name: str, make_site: MakeSite, golden: Callable[..., Golden]
) -> None:
    """Whoever writes them, Arrow or Python; the last file has only a part of its bytes."""
    whole_bytes = golden(name).bytes
    assert whole_bytes > 100_000
    chance = random.Random(f"bytes of {name} {SEED}")
    for number in sorted(chance.sample(range(int(whole_bytes * 0.8)), 10 if LONG else 1)):
        site = make_site(name)
        status, message = fail(site, kind="full", change=number)
        told(site, status, message, errno.ENOSPC, early=number < 3_000)
        site.check_now()
        site.finish()


@pytest.mark.long
def test_what_is_said_of_each_kind_of_file(make_site: MakeSite) -> None:
    """The changes of one batch: segments, staged results, the manifest, the move into place."""
    before = make_site("aggregate")
    assert before.run(kind="step", step="before gate", batch=10)
    kinds = {"/checkpoint/segment/", "/checkpoint/manifest/", "/out/batch="}
    said = set()
    for number in range(1, 60):
        site = before.copy()
        kept = Store.open(str(site.checkpoint)).kept()
        listed = {name for manifest in kept for name in manifest.names()}
        held = {k: v for k, v in contents(site.checkpoint).items() if k in listed}
        status, message = fail(site, kind="failure", change=number, step="before gate", batch=10)
        assert status in (0, 1)
        where = message.partition(":")[0].replace(str(site.out.parent), "")
        said |= {kind for kind in kinds if where.startswith(kind)}
        before_commit = where.startswith("/checkpoint/segment/00000010-")
        before_commit |= "before it is committed" in message
        if before_commit and "compact" not in where and "must be deletable" not in message:
            still = {k: v for k, v in contents(site.checkpoint).items() if k in held}
            assert difference(still, held) == []  # nothing of what counts was touched
            assert "Make room" in message or "make room" in message
        site.finish()
    assert said == kinds


def _may_mount() -> bool:
    try:
        return (
            subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode
            == 0
        )
    except OSError:
        return False


@pytest.mark.skipif(not _may_mount(), reason="needs a mount namespace of its own")
@pytest.mark.parametrize("what", ["out", "checkpoint"] if LONG else ["checkpoint"])
@pytest.mark.parametrize("format_", ["parquet", "csv", "json"] if LONG else ["parquet"])
def test_a_file_system_that_is_really_full(
    what: str, format_: str, tmp_path: Path, inputs: Path, golden: Callable[..., Golden]
) -> None:
    """Run into a small file system, see the message, make it larger, run again."""
    scene = SCENES["aggregate"]
    request = {
        "scene": scene.name,
        "inputs": str(inputs),
        "format": format_,
        **{k: str(tmp_path / ("disk" if k == what else "free") / k) for k in ("out", "checkpoint")},
    }
    for name in ("disk", "free", "copy"):
        (tmp_path / name).mkdir()
    run = f"{sys.executable} {DRIVER} '{json.dumps(request)}'"
    script = f"""
        cd {tmp_path}
        mount -t tmpfs -o size=40k,nr_inodes=1000 tmpfs disk || exit 77
        {run} 2> first.txt; echo $? > first.code
        mount -o remount,size=64m disk || exit 78
        {run} 2> second.txt; echo $? > second.code
        cp -r disk/. copy
    """
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        check=False,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    if done.returncode == 77:
        pytest.skip(f"tmpfs cannot be mounted here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    message = (tmp_path / "first.txt").read_text().strip()
    assert (tmp_path / "first.code").read_text() == "1\n", message
    assert len(message.splitlines()) == 1
    assert message.startswith(str(tmp_path / "disk" / what))
    assert FULL in message
    assert "ake room" in message
    assert (tmp_path / "second.code").read_text() == "0\n", (tmp_path / "second.txt").read_text()
    out = tmp_path / ("copy" if what == "out" else "free") / "out"
    assert difference(contents(out), golden(scene.name, format_).files) == []
