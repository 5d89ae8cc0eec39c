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
    written, tree = tree, tree.copy()
    tree.set("windows", None)
    qualify = tree.args.get("qualify")
    for part in (*tree.expressions, *([qualify] if qualify is not None else [])):
        for window in list(part.find_all(exp.Window)):
            if window.parent_select is tree:
                _written_out(window, named)
    _refuse_unused(written, named)
    return tree


def _refuse_unused(tree: exp.Select, named: dict[str, exp.Window]) -> None:
    """Refuse a window that no function is over: what it says would be read by nobody."""
    aliases = (window.args.get("alias") for window in tree.find_all(exp.Window))
    used = {alias.name.lower() for alias in aliases if alias is not None}
    if unused := [name for name in named if name not in used]:
        must = "a window with a name is for a function OVER it"
        raise QueryError("WINDOW", must, unused[0], f"Write OVER {unused[0]}, or leave it out.")


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
