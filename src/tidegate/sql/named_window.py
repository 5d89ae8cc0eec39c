"""Expands named windows of OVER: WINDOW w AS (...), OVER w, OVER (w ROWS 5 ...)."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError

_PARTS = {"partition_by": "PARTITION BY", "order": "ORDER BY", "spec": "a frame"}


def without_names(tree: exp.Select) -> exp.Select:
    """The SELECT with its own named windows expanded; subqueries have names of their own."""
    named: dict[str, exp.Window] = {}
    for window in tree.args.get("windows") or ():
        if window.name.lower() in named:
            raise QueryError("WINDOW", "a name stands for one window", window.name)
        named[window.name.lower()] = _written_out(window.copy(), named)
    tree = tree.copy()
    tree.set("windows", None)
    qualify = tree.args.get("qualify")
    for part in (*tree.expressions, *([qualify] if qualify is not None else [])):
        for window in list(part.find_all(exp.Window)):
            if window.parent_select is tree:
                _written_out(window, named)
    return tree


def _written_out(window: exp.Window, named: dict[str, exp.Window]) -> exp.Window:
    """The window with the parts of the one that it names; changes it in place."""
    name = window.args.get("alias")
    if name is None:
        return window
    known = named.get(name.name.lower())
    if known is None:
        there = ", ".join(named) or "none"
        raise QueryError("OVER", f"no window has this name (there are: {there})", name.name)
    for part, words in _PARTS.items():
        value = known.args.get(part)
        if not value:
            continue
        if window.args.get(part):
            raise QueryError("OVER", f"the window {name.name} has {words} already", words)
        window.set(part, [v.copy() for v in value] if isinstance(value, list) else value.copy())
    window.set("alias", None)
    return window
