"""A copy of the package with an example of CONTRIBUTING.md put into it, as a contributor would."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.docs.block import ROOT

PACKAGE = ROOT / "src" / "tidegate"
PAGE = ROOT / "CONTRIBUTING.md"


def blocks(title: str, language: str) -> list[str]:
    """The fenced blocks of a language in a section of the page."""
    text = PAGE.read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


class PackageCopy:
    """The package in a folder of its own; `source` goes first in PYTHONPATH to use it."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        self._copied = self.source / "tidegate"
        # With what is compiled, which Python and Numba know by the times and sizes of the sources;
        # without what another process is just writing, and will rename.
        being_written = shutil.ignore_patterns("*.pyc.*", "*.tmp.*")
        shutil.copytree(PACKAGE, self._copied, ignore=being_written)

    def add_file(self, name: str, text: str) -> None:
        """Add a file that is not there yet, and that the page names."""
        path = self._copied / name
        assert path.name in PAGE.read_text(encoding="utf-8")
        assert not path.exists()
        path.write_text(text, encoding="utf-8")

    def add_line(self, name: str, after: str, line: str) -> None:
        """Add a line to a file, after another that it has once."""
        path = self._copied / name
        text = path.read_text(encoding="utf-8")
        assert text.count(after) == 1
        assert line.count("\n") == 1
        path.write_text(text.replace(after, after + line), encoding="utf-8")

    def touched(self) -> dict[str, int]:
        """The files that are not as in the package, and how many lines longer they are."""
        theirs = {p.relative_to(self._copied) for p in self._copied.rglob("*.py")}
        ours = {p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py")}
        same = {p for p in ours & theirs if filecmp.cmp(PACKAGE / p, self._copied / p, False)}
        return {
            str(p): _lines(self._copied / p) - _lines(PACKAGE / p)
            for p in sorted((ours | theirs) - same)
        }

    def run(self, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python with these words and the copy in place of the package."""
        return subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "PYTHONPATH": str(self.source)},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def printed(self, program: str, folder: Path | None = None) -> Any:
        """What a program prints as JSON; it must succeed."""
        done = self.run("-c", program, folder=folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0
