"""How many cores this process may use: its affinity, and a container's share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate import cores as module


def test_a_process_that_is_held_to_one_core_has_one() -> None:
    one = min(os.sched_getaffinity(0))
    code = (
        f"import os; os.sched_setaffinity(0, {{{one}}})\n"
        "from tidegate.cores import cores; print(cores())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("max 100000\n", None), ("200000 100000\n", 2), ("150000 100000\n", 2), ("5000 100000\n", 1)],
)
def test_the_share_of_a_container(tmp_path: Path, text: str, wanted: int | None) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(text)
    assert module._of_quota(file) == wanted


def test_without_a_container_nothing_limits(tmp_path: Path) -> None:
    assert module._of_quota(tmp_path / "none") is None
