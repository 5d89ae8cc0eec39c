"""The new policy that CONTRIBUTING.md shows: one file and one line, and queries run with it."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.block import ROOT
from tests.docs.test_contributing import block, section

POLICY = section("A new policy")
PROGRAM = """
import datetime, json, sys
from dataclasses import replace
import tidegate as tg
from tidegate.testing import drive
from tidegate.elastic import registry

policy = registry.of("backlog?maximum=3&rows=10&patience=2")
waits = [0, 50, 0, 50, 50, 50, 50, 50, 50]
seen = [one.observed for one in drive(tg.policy.fixed(), [[0.1] * 8] * len(waits))]
memory, asked = {}, []
for one, backlog in zip(seen, waits):
    decision = policy.decide([replace(one, backlog=backlog)], memory)
    memory = json.loads(json.dumps(decision.memory))
    asked.append([request.why for request in decision.requests])

source = tg.MemorySource([{"ts": datetime.datetime(2024, 1, 1), "k": "a"}], time="ts")
query = tg.Session(master="none").stream(source, time="ts").start(
    sink=tg.sink.memory(), policy="backlog?maximum=3"
)
used = query.status()["policy"]["name"]
source.end()
query.wait()
try:
    registry.of("backlog?maximum=0")
except tg.OptionError as error:
    refused = str(error)
print(json.dumps([asked, used, refused]))
"""


def copied_package(folder: Path) -> Path:
    """A copy of the package with the policy of the page put into it, as a contributor would."""
    copied = folder / "src" / "tidegate"
    shutil.copytree(ROOT / "src/tidegate", copied, ignore=shutil.ignore_patterns("__pycache__"))
    line = block(POLICY, "text")
    ((name, place),) = json.loads(f"{{{line.strip().removesuffix(',')}}}").items()
    module = place.partition(":")[0].removeprefix("tidegate.").replace(".", "/")
    assert f"`{name}.py`" in POLICY
    (copied / f"{module}.py").write_text(block(POLICY, "python"), encoding="utf-8")
    registry, table = copied / "elastic/registry.py", "POLICIES: dict[str, str] = {\n"
    text = registry.read_text(encoding="utf-8")
    assert text.count(table) == 1
    registry.write_text(text.replace(table, table + line), encoding="utf-8")
    return copied


def touched(copied: Path) -> dict[str, int]:
    """The files of a copy that differ from the package, and how many lines longer they are."""
    here, found = ROOT / "src/tidegate", {}
    for path in sorted(copied.rglob("*.py")):
        known = here / path.relative_to(copied)
        if not known.exists() or not filecmp.cmp(path, known, shallow=False):
            before = known.read_text().count("\n") if known.exists() else 0
            found[str(path.relative_to(copied))] = path.read_text().count("\n") - before
    return found


def test_it_decides_by_its_name_and_touches_one_file_and_one_line(tmp_path: Path) -> None:
    package = copied_package(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    asked, used, refused = json.loads(done.stdout)
    why = "50 tuples wait: 1 -> 2 instances"
    assert asked == [[], [], [], [], [why], [], [why], [], [why]], "patience, and its memory"
    assert used == "backlog"
    assert refused == "policy backlog: maximum must be at least 1; got 0."
    files = touched(package)
    assert files.pop("elastic/registry.py") == 1
    assert list(files) == ["elastic/backlog.py"]
