"""The command line over a scene, between a test and what a user would type and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.driver import BUCKETS
from tests.crash.scene import SCENES
from tidegate.cli.main import invoke

HALF = 9
"""The batch before which runs are killed that the command line is to continue."""


class Command:
    """`tidegate` in this process; keeps the exit code and what was written to standard error."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str]:
        self._capsys.readouterr()
        code = invoke([str(a) for a in arguments])
        return code, self._capsys.readouterr().err.strip()

    def output(self, *arguments: object, code: int = 0) -> str:
        """What a command prints that ends with an exit code."""
        self._capsys.readouterr()
        assert invoke([str(a) for a in arguments]) == code
        return self._capsys.readouterr().out


class Scenery:
    """A scene run by the command line; other arguments override the scene's own."""

    def __init__(self, command: Command, name: str, folder: Path, inputs: Path) -> None:
        self.command = command
        self.scene = SCENES[name]
        self.out, self.checkpoint = folder / "out", folder / "checkpoint"
        self.query = folder / "query.sql"
        self.query.write_text(self.scene.script(inputs), encoding="utf-8")

    def run(self, **changed: object) -> tuple[int, str]:
        options = {
            "master": "none",
            "out": self.out,
            "checkpoint": self.checkpoint,
            "format": self.scene.format,
            "batch_rows": self.scene.batch_rows,
            "instances": self.scene.instances,
            "buckets": BUCKETS,
            **changed,
        }
        words = [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", v)]
        words += [w for b, n in self.scene.switches.items() for w in ("--switch", f"{b}={n}")]
        return self.command("run", self.query, *words)


MakeScenery = Callable[..., Scenery]
