"""The files in examples/, and how a test runs one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "examples"
NEEDS_SPARK = ("from_a_dataframe.py",)


def files() -> list[str]:
    """The names of all examples."""
    return sorted(p.name for p in FOLDER.iterdir() if p.suffix in (".sql", ".py"))


def header(name: str) -> str:
    """What an example says of itself before its first statement."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    pattern = r"(?:--.*\n)+" if name.endswith(".sql") else r'"""(?:.|\n)*?"""'
    found = re.match(pattern, text)
    assert found, f"{name} has no header"
    return found[0]


def load(name: str) -> ModuleType:
    """A Python example as a module; `main` runs it."""
    spec = importlib.util.spec_from_file_location(f"example_{Path(name).stem}", FOLDER / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
