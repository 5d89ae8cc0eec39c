"""Keeps the package readable: names, functions, files and folders; part of `make lint`.

    python tools/check_shape.py

A public class name stands for one idea in the whole package, a function fits on a screen or two,
a file holds one idea, and a folder can be taken in at a glance. Each limit has its list of
exceptions here, and an exception that is no longer needed is an error too, so that the lists only
shrink.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tidegate"

MOST_FUNCTION_LINES = 80
MOST_FILE_LINES = 450
MOST_FOLDER_MODULES = 25

DOUBLED: frozenset[str] = frozenset()
"""Public class names that several modules have: the same idea on two sides of a boundary."""


def main() -> int:
    found = list(problems(sorted(SOURCE.rglob("*.py"))))
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


def problems(paths: list[Path]) -> Iterator[str]:
    """One line for each thing that is wrong."""
    places: dict[str, list[str]] = defaultdict(list)
    modules = Counter(path.parent for path in paths if path.stem != "__init__")
    for folder, count in modules.items():
        if count > MOST_FOLDER_MODULES:
            yield (
                f"{folder.relative_to(ROOT)}: a folder has at most {MOST_FOLDER_MODULES} modules; "
                f"got {count}. Put some on a shelf of their own."
            )
    for path in paths:
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(ROOT)
        lines = text.count("\n")
        if lines > MOST_FILE_LINES:
            yield f"{where}: a file has at most {MOST_FILE_LINES} lines; got {lines}. Split it."
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MOST_FUNCTION_LINES:
                    yield (
                        f"{where}:{node.lineno}: a function has at most {MOST_FUNCTION_LINES} "
                        f"lines; got {length} in {node.name}. Name its steps."
                    )
        for top in tree.body:
            if isinstance(top, ast.ClassDef) and not top.name.startswith("_"):
                places[top.name].append(str(where))
    doubled = {name: at for name, at in sorted(places.items()) if len(at) > 1}
    for name, at in doubled.items():
        if name not in DOUBLED:
            yield f"{name}: a public class name is used once; got {', '.join(at)}. Rename one."
    for name in sorted(DOUBLED - doubled.keys()):
        yield f"{name}: is used once now; take it from the list in {Path(__file__).name}."


if __name__ == "__main__":
    sys.exit(main())
