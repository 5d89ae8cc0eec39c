"""Starts campaigns, each inside of namespaces of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.nemesis.campaign import Report
from tests.nemesis.machine import MEMORY, NEEDED, entered

ROOT = Path(__file__).parents[2]


def campaign(setting: str, seed: int, seconds: float) -> Report:
    """Run one to its end; whatever it has started is gone then."""
    asked = json.dumps({"setting": setting, "seed": seed, "seconds": seconds})
    return Report.of_json(inside("tests.nemesis.inside", asked))


def inside(module: str, *words: str) -> str:
    """The last line that a module prints which runs in namespaces of its own."""
    done = subprocess.run(
        entered([sys.executable, "-m", module, *words]),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(MEMORY), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"exit {done.returncode}, {done.stderr[-6000:]}"
    assert done.returncode == 0, f"{module} {NEEDED}, and must end well; got {said}"
    return done.stdout.splitlines()[-1]
