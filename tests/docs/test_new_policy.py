"""The new policy that CONTRIBUTING.md shows: one file and one line, and queries run with it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.docs.package_copy import PackageCopy, blocks

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


def copied_package(folder: Path) -> PackageCopy:
    (file,), (line,) = (blocks("A new policy", language) for language in ("python", "text"))
    ((_, place),) = json.loads(f"{{{line.strip().removesuffix(',')}}}").items()
    module = place.partition(":")[0].removeprefix("tidegate.").replace(".", "/")
    copy = PackageCopy(folder)
    copy.add_file(f"{module}.py", file)
    copy.add_line("elastic/registry.py", "POLICIES: dict[str, str] = {\n", line)
    return copy


def test_it_decides_by_its_name_and_touches_one_file_and_one_line(tmp_path: Path) -> None:
    package = copied_package(tmp_path)
    asked, used, refused = package.printed(PROGRAM, tmp_path)
    why = "50 tuples wait: 1 -> 2 instances"
    assert asked == [[], [], [], [], [why], [], [why], [], [why]], "patience, and its memory"
    assert used == "backlog"
    assert refused == "policy backlog: maximum must be at least 1; got 0."
    files = package.touched()
    assert files.pop("elastic/registry.py") == 1
    assert list(files) == ["elastic/backlog.py"]
