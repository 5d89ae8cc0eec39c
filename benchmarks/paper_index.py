"""Which state of the package a result was measured with, so that pages can mark what is stale.

`papers/written.json` has for each result of the papers' programs its digest, the digest of the
modules that its program says it measures, and the commit. A result is stale when those modules do
not do what they did. The digest is of their syntax trees without import statements and without the
names of files, so comments, docstrings, layout and moves of modules change nothing.
`measure.write_report` notes every result that it writes; without git the commit is left empty.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from measure import HERE, RESULTS, commit
from paper_list import LISTS, programs

INDEX = LISTS / "written.json"


def measured() -> dict[str, tuple[str, ...]]:
    """The modules and folders that each result measures."""
    return {name: program.measures for program in programs().values() for name in program.results}


def modules_digest(paths: Iterable[str], root: Path = HERE.parent) -> str:
    """Of the code of all modules in these files and folders, in no order.

    A module without code is nothing, as is a missing one.
    """
    files = {file for path in paths for file in _modules(root / path)}
    codes = [code_digest(file.read_text(encoding="utf-8")) for file in files]
    told = "".join(sorted(code for code in codes if code != NO_CODE))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _modules(at: Path) -> Iterable[Path]:
    return [at] if at.is_file() else at.rglob("*.py")


@cache
def code_digest(text: str) -> str:
    """Of what a module does, the same for each version of Python."""
    return hashlib.sha256(repr(_shape(ast.parse(text))).encode()).hexdigest()


def _shape(node: Any) -> Any:
    """A syntax tree as tuples: without imports, docstrings, places in the file, and empty fields.

    `ast.dump` prints more empty fields with one version of Python than with another.
    """
    if isinstance(node, list):
        return [_shape(one) for one in node if not (_is_text(one) or _is_import(one))]
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, _shape(value)) for name, value in ast.iter_fields(node))
    return (type(node).__name__, *(of for of in fields if of[1] is not None and of[1] != []))


def _is_text(node: Any) -> bool:
    """Whether a statement is a string and nothing else: a docstring, of a module or a constant."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _is_import(node: Any) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


NO_CODE = code_digest("")


def result_file(name: str) -> Path:
    return RESULTS / f"{name}.json"


def result_digest(name: str) -> str:
    return hashlib.sha256(result_file(name).read_bytes()).hexdigest()[:16]


def written() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(INDEX.read_text(encoding="utf-8"))
    return found


def is_stale(name: str) -> bool:
    """Whether what a result measures has changed since it was written."""
    return written()[name]["modules"] != modules_digest(measured()[name])


def note(name: str) -> None:
    """Remember what a result was measured with; nothing for one that no paper's figure needs."""
    if name not in measured():
        return
    keep(name, modules_digest(measured()[name]), commit())


def keep(name: str, modules: str, of_commit: str) -> None:
    """Put an entry into the index; programs that run at once take turns."""
    with INDEX.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        index: dict[str, Any] = json.loads(file.read() or "{}")
        index[name] = {"result": result_digest(name), "modules": modules, "commit": of_commit}
        file.truncate(0)
        file.write(json.dumps(dict(sorted(index.items())), indent=1) + "\n")
