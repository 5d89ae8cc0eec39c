"""What a process may hold: where the limit comes from, and what happens at it."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from tidegate.errors import OptionError
from tidegate.memory import MEMORY, Allowance
from tidegate.memory_limit import (
    LIMIT,
    SHARE,
    MemoryLimit,
    _container_limits,
    available_bytes,
    default_limit,
    used_bytes,
)

GB = 2**30
T = TypeVar("T")


def limits(folder: Path, groups: str, files: dict[str, str]) -> list[int]:
    """Those of a process in these groups, of a system with these files."""
    (folder / "cgroup").write_text(groups)
    for name, text in files.items():
        (folder / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "fs" / name).write_text(text)
    return list(_container_limits(folder / "cgroup", folder / "fs"))


def test_a_container_of_the_second_version(tmp_path: Path) -> None:
    files = {
        "memory.max": f"{9 * GB}\n",
        "a/memory.max": "max\n",
        "a/b/memory.max": f"{3 * GB}\n",
        "other/memory.max": f"{1 * GB}\n",
    }
    assert limits(tmp_path, "0::/a/b\n", files) == [9 * GB, 3 * GB]


def test_a_container_of_the_first_version(tmp_path: Path) -> None:
    groups = "5:cpu:/a\n4:memory:/a/b\n0::/\n"
    files = {
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/a/b/memory.limit_in_bytes": f"{2 * GB}\n",
        "cpu/a/memory.limit_in_bytes": f"{1 * GB}\n",
    }
    assert limits(tmp_path, groups, files) == [2 * GB]


def test_no_container(tmp_path: Path) -> None:
    assert limits(tmp_path, "0::/../..\n", {}) == []
    assert list(_container_limits(tmp_path / "none", tmp_path)) == []


def test_processes_share_three_quarters_of_what_there_is() -> None:
    assert default_limit(1) == int(SHARE * available_bytes())
    assert default_limit(4) == default_limit(1) // 4
    assert Allowance().among(4).limit_bytes == default_limit(4)
    assert Allowance().among(None) == Allowance()
    assert Allowance.of(GB).among(4) == Allowance(GB, GB // 3)


def test_a_limit_below_what_a_process_needs_is_refused() -> None:
    with pytest.raises(OptionError, match=r"^--memory-limit: must be at least 256MB.*; got 10 MB"):
        Allowance.of(10 * 2**20)


def alone(work: Callable[[], T]) -> T:
    """Run it in a new process: in that of the tests, allocators give memory of earlier tests back
    at any moment."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        return processes.submit(work).result()


def test_a_limit_counts_what_the_process_holds_itself() -> None:
    grown, held_bytes, said = alone(_hold)
    assert grown > 0.8 * held_bytes
    assert re.search(r"in one process and needs 1.0 GB more, where .* allowed", said)


def _hold() -> tuple[int, int, str]:
    """By how much memory grows with an array, its size, and what is said of too much more."""
    before = used_bytes()
    held = np.ones(2**24)
    grown = used_bytes() - before
    limit = MemoryLimit(used_bytes() + 2**28)
    limit.check()
    with pytest.raises(MemoryError) as raised:
        limit.check(more_bytes=GB)
    return grown, held.nbytes, str(raised.value)


def test_what_can_be_had_again_is_given_up_before_work_fails() -> None:
    assert alone(_give_up) == []
    assert MEMORY.clear in LIMIT.release


def _give_up() -> list[np.ndarray]:
    """What is left of what may be released, after a check beyond the limit."""
    held = [np.ones(2**24)]
    limit = MemoryLimit(used_bytes() - 2**26)
    limit.release.append(held.clear)
    limit.check()
    return held


def test_an_allowance_is_that_of_the_process_until_the_next() -> None:
    before = LIMIT.bytes, MEMORY.limit_bytes
    try:
        Allowance.of(GB).take()
        assert (LIMIT.bytes, MEMORY.limit_bytes) == (GB, GB // 3)
    finally:
        Allowance(*before).take()
