"""Checks that a tag, the version and the changelog name the same release.

python tools/check_tag.py v0.2.0
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADING = re.compile(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$", re.MULTILINE)


def problems(tag: str, version: str, changelog: str) -> Iterator[str]:
    """One line for each thing that keeps this tag from being a release."""
    if tag != f"v{version}":
        yield f"tag: must be v{version}, as in src/tidegate/version.py; got {tag}."
    newest = HEADING.search(changelog)
    if newest is None or newest[1] != version:
        found = "none" if newest is None else newest[1]
        yield f"CHANGELOG.md: must begin with `## {version} (DATE)`; got {found}."


def main(arguments: list[str]) -> int:
    (tag,) = arguments
    text = (ROOT / "src" / "tidegate" / "version.py").read_text(encoding="utf-8")
    version = re.findall(r'__version__ = "(.+)"', text)[0]
    found = [*problems(tag, version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
