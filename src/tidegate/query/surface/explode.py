"""Reads the arguments of `.explode(...)` into its node."""

from __future__ import annotations

from tidegate.errors import QueryError
from tidegate.query.name import column, is_plain, resolve
from tidegate.query.node import Node, project
from tidegate.query.surface.arguments import Column, read_expression
from tidegate.query.unnest import Unnest

_HIDDEN = "exploded value"


def explode(child: Node, of: Column, into: str | None, position: str | None, outer: bool) -> Node:
    """One row for each value; without `into` the value replaces the list column."""
    values = read_expression(of, child.names, "explode")
    if into is not None:
        return Unnest(child, values, into, position, outer=outer)
    if not is_plain(values):
        raise QueryError("explode", "what is computed needs a name", repr(of), 'Write into="tag".')
    name = resolve(values.name, child.names, "explode")
    made = Unnest(child, values, _HIDDEN, position, outer=outer)
    kept = [n for n in made.names[1:] if n != _HIDDEN]
    return project(made, [(n, column(_HIDDEN if n == name else n)) for n in kept])
