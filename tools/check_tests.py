"""Finds tests that assert nothing, and so pass whatever the code does; part of `make lint`.

    python tools/check_tests.py [FILE...]

A test asserts when it has an `assert`, expects an error or a warning, or calls a function of the
tests, or a check that is shipped or comes with a library, that does so. Names are followed through
the modules of the tests. Types are not known here, so methods count by their name, where the module
that calls them has or imports something of the module that has them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]

CHECKS = {"raises", "warns", "fail", "check_aggregate", "check_process"}
CHECKS |= {"assert_array_equal", "run_state_machine"}
"""Functions from outside of the tests that fail where something is wrong."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """The functions of one file, by name; methods are told apart only from functions."""

    path: Path
    functions: dict[str, list[Function]] = field(default_factory=dict)
    methods: dict[str, list[Function]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The name here: the module it comes from, and its name there."""


def read(path: Path) -> Module:
    module = Module(path)
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    owned = {id(f) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for f in c.body}
    for node in ast.walk(tree):
        if isinstance(node, Function):
            known = module.methods if id(node) in owned else module.functions
            known.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module.imported[alias.asname or alias.name] = (node.module, alias.name)
    return module


class Suite:
    """All modules of the tests, and which of their functions assert."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.modules = {_name(path): read(path) for path in paths}
        self._known: dict[int, bool] = {}

    def silent(self) -> Iterator[tuple[Module, Function]]:
        """The tests that assert nothing."""
        for module in self.modules.values():
            if not module.path.name.startswith("test_"):
                continue
            for functions in (*module.functions.values(), *module.methods.values()):
                for one in functions:
                    if one.name.startswith("test_") and not self.asserts(module, one):
                        yield module, one

    def asserts(self, module: Module, function: Function) -> bool:
        if id(function) not in self._known:
            self._known[id(function)] = False  # one that only calls itself does not
            self._known[id(function)] = any(
                isinstance(node, ast.Assert)
                or (isinstance(node, ast.Call) and self._checks(module, node.func))
                for node in ast.walk(function)
            ) or any(self._named(module, fixture.arg) for fixture in function.args.args)
        return self._known[id(function)]

    def _checks(self, module: Module, called: ast.expr) -> bool:
        if isinstance(called, ast.Attribute):
            return (
                called.attr in CHECKS
                or self._of_module(module, called)
                or any(
                    self.asserts(other, method)
                    for other in self._near(module)
                    for method in other.methods.get(called.attr, ())
                )
            )
        if isinstance(called, ast.Subscript):  # a test that a page of the documentation shows
            return isinstance(key := called.slice, ast.Constant) and "test_" in str(key.value)
        if not isinstance(called, ast.Name):
            return False
        return called.id in CHECKS or self._named(module, called.id)

    def _near(self, module: Module) -> list[Module]:
        """The modules whose objects this one may hold: itself, and what it imports."""
        origins = {origin for origin, _ in module.imported.values()}
        return [module, *(self.modules[o] for o in sorted(origins) if o in self.modules)]

    def _named(self, module: Module, name: str) -> bool:
        if name in module.functions:
            return any(self.asserts(module, f) for f in module.functions[name])
        origin, known_as = module.imported.get(name, ("", ""))
        return origin in self.modules and self._named(self.modules[origin], known_as)

    def _of_module(self, module: Module, called: ast.Attribute) -> bool:
        """A function that is called as `module.function`."""
        if not isinstance(called.value, ast.Name):
            return False
        origin, name = module.imported.get(called.value.id, ("", ""))
        other = self.modules.get(f"{origin}.{name}")
        return other is not None and self._named(other, called.attr)


def _name(path: Path) -> str:
    return ".".join(path.resolve().relative_to(ROOT).with_suffix("").parts)


def main(arguments: list[str]) -> int:
    suite = Suite(sorted((ROOT / "tests").rglob("*.py")))
    wanted = {Path(argument).resolve() for argument in arguments}
    found = [(m, f) for m, f in suite.silent() if not wanted or m.path in wanted]
    for module, function in found:
        place = f"{module.path.relative_to(ROOT)}:{function.lineno}"
        print(f"{place}: {function.name} must assert something; got no assert in what it calls")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
