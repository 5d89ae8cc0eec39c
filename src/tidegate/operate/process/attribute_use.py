"""Which mappings of a user's class may be read entry by entry, told from the code of the class.

A mapping that reads entries when they are asked for is no dict, and code that gets hold of it could
tell: `json.dumps`, `type`, any library that takes dicts apart by itself. So it only stands for one
where nothing gets hold of it: all that the class does with `self.seen` is `self.seen[key]`,
`key in self.seen`, `self.seen.get(key)` and the like. Whatever else is done with an attribute, and
whatever cannot be seen, means that its mapping is read as a whole.
"""

from __future__ import annotations

import ast
import inspect
import types
import typing
from abc import ABC
from collections.abc import Iterator
from functools import cached_property

from tidegate.operate.process.definition import Process

_METHODS = frozenset(
    {"clear", "copy", "elements", "get", "items", "keys", "most_common", "pop", "popitem"}
    | {"setdefault", "total", "update", "values"}
)
"""Methods of mappings that do not hand on the mapping itself."""

_FUNCTIONS = frozenset(
    {"all", "any", "bool", "dict", "enumerate", "frozenset", "iter", "len", "list", "max", "min"}
    | {"set", "sorted", "sum", "tuple"}
)
"""Built-in functions that take any mapping, and do not hand it on."""

_BLIND = frozenset({"eval", "exec", "locals", "vars"})
"""Built-in functions by which an attribute is reached without being named."""

_STATE = frozenset({"restore", "snapshot"})
"""Methods of `Process` that see all attributes."""

_HOOKS = frozenset({"__delattr__", "__getattr__", "__getattribute__", "__setattr__"})
_KNOWN = (Process, object, ABC, typing.Generic)


class _CannotTell(Exception):
    """Code that may reach any attribute, or that is not there to be read."""


def read_whole(kind: type[Process]) -> frozenset[str] | None:
    """The attributes whose mappings have to be read as a whole; None for all of them."""
    found: set[str] = set()
    try:
        for method in _methods(kind):
            found |= _Use(method).handed_on()
    except _CannotTell:
        return None
    return frozenset(found)


def _methods(kind: type[Process]) -> Iterator[types.FunctionType]:
    """The functions that are given the object when they are called."""
    for owner in kind.__mro__:
        if owner in _KNOWN:
            continue
        for name, member in vars(owner).items():
            if name in _HOOKS:
                raise _CannotTell
            if isinstance(member, property):
                parts = [member.fget, member.fset, member.fdel]
            else:
                parts = [member.func if isinstance(member, cached_property) else member]
            for part in parts:
                if isinstance(part, types.FunctionType):
                    yield part
                elif not _is_harmless(part):
                    raise _CannotTell


def _is_harmless(member: object) -> bool:
    """Whether a member of a class is not called with the object."""
    if isinstance(member, staticmethod | classmethod | types.GetSetDescriptorType):
        return True
    return not hasattr(type(member), "__get__")


class _Use:
    """What one method does with the attributes of the object."""

    def __init__(self, method: types.FunctionType) -> None:
        code = method.__code__
        if not code.co_argcount:  # the object is among *arguments
            raise _CannotTell
        self._me = code.co_varnames[0]
        self._locals = code.co_varnames
        self._shadowed = {*code.co_varnames, *code.co_freevars, *code.co_cellvars}
        self._shadowed.update(method.__globals__)
        tree = _parsed(code)
        self._names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self._parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }

    def handed_on(self) -> set[str]:
        """The attributes that more is done with than the mapping that stands for a dict can do."""
        found = set()
        for name in self._names:
            if name.id in _BLIND:
                raise _CannotTell
            if name.id == "super":
                self._check_super(name)
            elif name.id == self._me and not self._is_asked_for_class(name):
                attribute = self._parents[name]
                if not isinstance(attribute, ast.Attribute) or _reaches_all(attribute.attr):
                    raise _CannotTell
                if not self._stays(attribute):
                    if attribute.attr.startswith("__"):  # has another name in the object
                        raise _CannotTell
                    found.add(attribute.attr)
        return found

    def _is_asked_for_class(self, name: ast.Name) -> bool:
        match self._parents[name]:
            case ast.Call(func=ast.Name(id="type" | "super" as function)):
                return function not in self._shadowed
        return False

    def _check_super(self, name: ast.Name) -> None:
        asked = self._parents.get(self._parents[name])
        if not isinstance(asked, ast.Attribute):
            raise _CannotTell
        if _reaches_all(asked.attr) and asked.attr != "__init__":
            raise _CannotTell

    def _stays(self, node: ast.Attribute | ast.Name) -> bool:
        """Whether nothing gets hold of what an expression stands for."""
        parent = self._parents[node]
        if not isinstance(node.ctx, ast.Load):
            return not isinstance(parent, ast.AugAssign)
        match parent:
            case ast.Subscript(value=value):
                return value is node
            case ast.Attribute(attr=attr):
                return attr in _METHODS
            case ast.Compare(ops=[*_, ast.In() | ast.NotIn()], comparators=[*_, last]):
                return last is node
            case ast.For(iter=iterated) | ast.comprehension(iter=iterated) if iterated is node:
                return True
            case ast.Starred() | ast.keyword(arg=None) | ast.YieldFrom():
                return True
            case ast.Dict(keys=keys, values=values):
                return any(k is None and v is node for k, v in zip(keys, values))
            case ast.Call(func=ast.Name(id=function), args=arguments):
                known = function in _FUNCTIONS and function not in self._shadowed
                return known and node in arguments
            case ast.Assign(targets=[ast.Name(id=name)]):
                return self._stays_as(name)
        return self._is_tested(node)

    def _stays_as(self, name: str) -> bool:
        """The same of a local variable that stands for one thing only."""
        uses = [other for other in self._names if other.id == name]
        loads = [use for use in uses if isinstance(use.ctx, ast.Load)]
        once = len(uses) == len(loads) + 1 and name in self._locals
        return once and all(self._stays(use) for use in loads)

    def _is_tested(self, node: ast.AST) -> bool:
        """Whether only the truth of an expression counts."""
        parent = self._parents[node]
        match parent:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                return test is node
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.BoolOp():
                return self._is_tested(parent)
            case ast.comprehension(ifs=conditions):
                return node in conditions
        return False


def _reaches_all(attribute: str) -> bool:
    return attribute in _STATE or (attribute.startswith("__") and attribute.endswith("__"))


def _parsed(code: types.CodeType) -> ast.AST:
    """The definition of a function, as it was written."""
    try:
        text = inspect.getsource(code)
        tree = ast.parse(f"if True:\n{text}" if text[:1].isspace() else text)
    except (OSError, TypeError, SyntaxError):
        raise _CannotTell from None
    found = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None)
    if found is None or found.name != code.co_name:
        raise _CannotTell
    return found
