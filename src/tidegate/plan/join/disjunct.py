"""Lists the ways in which a condition can be true; each way may have an index of its own.

A **way** is a set of conditions. If the whole condition is TRUE, all conditions of at least one way
are TRUE. This is weaker than a normal form, and so it holds for SQL's three values: FALSE and NULL
need not be distinguished, and a way may leave a condition out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pyarrow as pa

from tidegate.expression.tree import Call, Expr, Literal, is_total

MOST = 32
"""The most ways of a condition: their number grows exponentially. Beyond it the condition is one
way, unsplit."""

FLIPPED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "ne": "eq", "eq": "ne"}
"""The comparison that is TRUE if this one is FALSE. That holds for NaN too, which has its place in
the order."""

Way = tuple[Expr, ...]


def parts_of(expr: Expr) -> list[Expr]:
    """The conditions that AND joins, with NOT pushed down to the comparisons."""
    return _parts(expr, True)


def ways_of(expr: Expr) -> list[Way]:
    """The ways in which a condition can be true, without supersets of another way."""
    found: list[Way] = []
    for way in _null_safe(_ways(expr, True)):
        if not any(set(known) <= set(way) for known in found):
            found = [known for known in found if not set(way) <= set(known)] + [way]
    return found


def certain(expr: Expr) -> list[Expr]:
    """The parts that are true whenever a condition is, and may be computed for tuples alone.

    A part of all ways of a disjunction may stand behind a guard there, so it must be unable to
    fail.
    """
    found: list[Expr] = []
    for part in parts_of(expr):
        ways = ways_of(part)
        if ways == [(part,)]:
            found.append(part)
        elif ways:
            found += [c for c in ways[0] if is_total(c) and all(c in other for other in ways[1:])]
    return found


def _parts(expr: Expr, truth: bool) -> list[Expr]:
    found: list[Expr] = []
    stack = [(expr, truth)]
    while stack:
        item, wanted = _without_not(*stack.pop())
        if isinstance(item, Call) and item.op == ("and" if wanted else "or"):
            stack += [(arg, wanted) for arg in reversed(item.args)]
        else:
            found.append(_leaf(item, wanted))
    return found


def _ways(expr: Expr, truth: bool) -> list[Way]:
    """The ways in which a condition can be TRUE, or FALSE."""
    expr, truth = _without_not(expr, truth)
    if isinstance(expr, Literal):
        return [()] if expr.value is truth else []
    found: list[Way] | None = None
    if isinstance(expr, Call):
        if expr.op in ("and", "or"):
            each = [_ways(part, truth) for part in _chain(expr)]
            if (expr.op == "or") == truth:
                found = [way for ways in each for way in ways]
            else:
                return _together(each, _chain(expr), truth)
        elif expr.op == "case":
            found = _case(expr, truth)
        elif expr.op == "coalesce":
            found = [way for arg in expr.args for way in _ways(arg, truth)]
    if found is None or len(found) > MOST:
        return [(_leaf(expr, truth),)]
    return found


def _case(expr: Call, truth: bool) -> list[Way]:
    """The ways of a CASE: a condition and its value, or the default.

    For the default, a way leaves out that no condition was true: ways may be weaker.
    """
    always: list[Way] = [()]
    conditions = [*(_ways(c, True) for c in expr.args[:-1:2]), always]
    values = [_ways(value, truth) for value in (*expr.args[1:-1:2], expr.args[-1])]
    return [
        tuple(dict.fromkeys((*one, *other)))
        for condition, value in zip(conditions, values, strict=True)
        for one in condition
        for other in value
    ]


def _together(each: Sequence[list[Way]], parts: Sequence[Expr], truth: bool) -> list[Way]:
    """One way of each part at once; parts that would make too many ways are taken as they are."""
    result: list[Way] = [()]
    for ways, part in zip(each, parts, strict=True):
        if len(result) * len(ways) > MOST:
            ways = [(_leaf(part, truth),)]
        result = [tuple(dict.fromkeys((*a, *b))) for a, b in product(result, ways)]
    return result


def _chain(expr: Call) -> list[Expr]:
    """The operands of a chain of ANDs or of ORs; not recursive: chains can be thousands deep."""
    found: list[Expr] = []
    stack: list[Expr] = [expr]
    while stack:
        item = stack.pop()
        if isinstance(item, Call) and item.op == expr.op:
            stack += reversed(item.args)
        else:
            found.append(item)
    return found


def _without_not(expr: Expr, truth: bool) -> tuple[Expr, bool]:
    while isinstance(expr, Call):
        if expr.op == "not":
            truth = not truth
        elif not (truth and expr.op in ("is_true", "is_false")):
            break
        else:
            truth = expr.op == "is_true"
        expr = expr.args[0]
    return expr, truth


def _leaf(expr: Expr, truth: bool) -> Expr:
    if truth:
        return expr
    if isinstance(expr, Call) and expr.op in FLIPPED:
        return Call(FLIPPED[expr.op], expr.args, expr.type)
    return Call("not", (expr,), pa.bool_())


def _null_safe(ways: Sequence[Way]) -> Iterator[Way]:
    """The ways, with `a = b OR (a IS NULL AND b IS NULL)` joined into the one way `a <=> b`."""
    left = list(ways)
    while left:
        way = left.pop(0)
        for condition in way:
            if not isinstance(condition, Call) or condition.op != "eq":
                continue
            rest = set(way) - {condition}
            nulls = {Call("is_null", (arg,), pa.bool_()) for arg in condition.args}
            twin = next((w for w in left if set(w) == rest | nulls and not rest & nulls), None)
            if twin is not None:
                left.remove(twin)
                safe = Call("null_safe_eq", condition.args, condition.type)
                way = tuple(safe if c == condition else c for c in way)
                break
        yield way
