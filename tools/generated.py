"""Writes pages and pictures that programs make, or names those that have changed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

Made = Callable[[], Mapping[Path, str]]
"""Makes the texts of files."""


def stale(made: Made) -> list[str]:
    """The names of the files that have another text."""
    return [
        path.name
        for path, text in made().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main(made: Made, target: str) -> None:
    """Write the files; with --check fail where one differs. `target` of make writes them."""
    parser = argparse.ArgumentParser(description=f"Write what `make {target}` writes.")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    if parser.parse_args().check:
        if found := stale(made):
            sys.exit(f"docs: {', '.join(found)} not up to date; run `make {target}`")
        return
    for path, text in made().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
