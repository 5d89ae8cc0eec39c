"""`make cluster` as a user meets it: what it prints, and that Ctrl-C leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.standalone import REPOSITORY, environment

pytestmark = pytest.mark.long


@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM"])
def test_make_cluster_tells_how_to_use_it_and_leaves_no_process(stop: str) -> None:
    command = [
        sys.executable,
        str(REPOSITORY / "tools" / "cluster.py"),
        "--workers",
        "1",
        "--port",
        "0",
    ]
    tool = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert tool.stdout is not None
    said = ""
    for line in tool.stdout:
        said += line
        if "Ctrl-C" in line:
            break
    assert "--master spark://127.0.0.1:" in said
    children = Path(f"/proc/{tool.pid}/task/{tool.pid}/children").read_text().split()
    assert len(children) == 2
    tool.send_signal(signal.Signals[stop])
    assert tool.wait(60) == 0
    assert [pid for pid in children if os.path.exists(f"/proc/{pid}")] == []
