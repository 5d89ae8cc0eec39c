"""One scene in folders of its own, between a test that kills it and a run never killed."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.folder import begins, contents, difference, facts, published
from tests.crash.process import KILLED, Nursery
from tests.crash.scene import SCENES


@dataclass(frozen=True)
class Golden:
    """What an undisturbed run leaves: the files of its results, and what its checkpoint says.

    And how many changes to files it made, and bytes it wrote: more or less, as compaction happens.
    """

    files: dict[str, bytes]
    facts: dict[str, Any]
    batches: int
    changes: int
    bytes: int


class Site:
    """One scene in folders of its own, run again and again until it is done."""

    def __init__(self, nursery: Nursery, request: dict[str, Any], golden: Golden | None) -> None:
        self.nursery = nursery
        self.request = request
        self.golden = golden
        self.out = Path(request["out"])
        self.checkpoint = Path(request["checkpoint"])
        self.log = Path(request["log"])

    def run(self, **fault: Any) -> bool:
        """Run with a fault, or without; whether it was killed. Every other failure fails."""
        request = {**self.request, "fault": fault or None}
        if fault.get("kind") == "operate":
            trap = {k: v for k, v in fault.items() if k != "kind"}
            request |= {"fault": None, "traps": [trap]}
        status = self.nursery.run(request)
        assert status in (0, KILLED), f"exit {status} with {fault}: {self.log.read_text()}"
        return status == KILLED

    def check_now(self) -> None:
        """After a kill: what can be seen is a part of the whole, and no batch is half there."""
        assert self.golden is not None
        assert begins(published(self.out), self.golden.files)

    def copy(self) -> Site:
        """The same folders once more, beside the first ones."""
        folder = Path(tempfile.mkdtemp(prefix="copy-", dir=self.out.parent.parent))
        shutil.copytree(self.out.parent, folder, dirs_exist_ok=True)
        places = {k: str(folder / Path(self.request[k]).name) for k in ("out", "checkpoint", "log")}
        return Site(self.nursery, {**self.request, **places}, self.golden)

    def finish(self) -> None:
        """Run to the end undisturbed, and compare everything with a run that was never killed."""
        assert self.golden is not None
        assert not self.run()
        assert difference(contents(self.out), self.golden.files) == []
        after = facts(self.checkpoint)
        assert after["unreferenced"] == []
        assert after["verified"]["problems"] == []
        assert after["state"] == self.golden.facts["state"]


def undisturbed(nursery: Nursery, request: dict[str, Any]) -> Golden:
    """Run to the end without a fault, and keep what there is then."""
    site = Site(nursery, request, None)
    assert not site.run(kind="change", change=10**9)
    counted = json.loads(site.log.read_text(encoding="utf-8").splitlines()[-1])
    found = facts(site.checkpoint)
    return Golden(contents(site.out), found, found["state"]["batch"] + 1, **counted)


def request_for(
    scene: str, folder: Path, inputs: Path, format_: str | None = None
) -> dict[str, Any]:
    """What to ask of the driver for a run in a folder of its own."""
    folder.mkdir()
    return {
        "scene": scene,
        "inputs": str(inputs),
        "out": str(folder / "out"),
        "checkpoint": str(folder / "checkpoint"),
        "log": str(folder / "log"),
        "format": format_ or SCENES[scene].format,
    }
