"""A copy of the package with an example of CONTRIBUTING.md put into it, as a contributor would."""

from __future__ import annotations

import filecmp
import re
import shutil
from pathlib import Path

from tests.docs.block import ROOT

PACKAGE = ROOT / "src" / "tidegate"


def blocks(title: str, language: str) -> list[str]:
    """The fenced blocks of a language in a section of the page."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


class PackageCopy:
    """The package in a folder of its own; `source` goes first in PYTHONPATH to use it."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        self._copied = self.source / "tidegate"
        shutil.copytree(PACKAGE, self._copied, ignore=shutil.ignore_patterns("__pycache__"))

    def add_file(self, name: str, text: str) -> None:
        """Add a file that is not there yet."""
        path = self._copied / name
        assert not path.exists()
        path.write_text(text, encoding="utf-8")

    def add_line(self, name: str, after: str, line: str) -> None:
        """Add a line to a file, after another that it has once."""
        path = self._copied / name
        text = path.read_text(encoding="utf-8")
        assert text.count(after) == 1
        assert line.count("\n") == 1
        path.write_text(text.replace(after, after + line), encoding="utf-8")

    def touched(self) -> list[str]:
        """The files that are not as they are in the package."""
        theirs = {p.relative_to(self._copied) for p in self._copied.rglob("*.py")}
        ours = {p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py")}
        same = {p for p in ours & theirs if filecmp.cmp(PACKAGE / p, self._copied / p, False)}
        return sorted(str(p) for p in (ours | theirs) - same)
