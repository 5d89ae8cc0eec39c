"""Reads the arguments of `join_asof`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidegate.calendar.duration import Duration, duration_us
from tidegate.errors import QueryError
from tidegate.query.expression import Expression
from tidegate.query.name import SideName, column, conjuncts, resolve
from tidegate.query.node.asof import AsOf
from tidegate.query.node.node import Node
from tidegate.query.node.stream_pair import SIDES

COMPARISONS = {("backward", True): ">=", ("backward", False): ">"}
COMPARISONS |= {("forward", True): "<=", ("forward", False): "<"}

EXAMPLE = '.join_asof(quotes, on="instrument", tolerance="5 seconds")'

On = str | Sequence[str] | Expression | None


def read_asof(
    left: Node,
    right: Node,
    on: On,
    *,
    tolerance: Duration | None,
    direction: str,
    allow_equal: bool,
    how: str,
) -> AsOf:
    """The node for the arguments of `join_asof`; raises QueryError for wrong values."""
    directions = ("backward", "forward")
    for name, value, known in (
        ("direction", direction, directions),
        ("how", how, ("inner", "left")),
        ("allow_equal", allow_equal, (True, False)),
    ):
        if value not in known:
            listed = " or ".join(map(repr, known))
            raise QueryError(f"join_asof {name}", f"must be {listed}", repr(value))
    equalities, shared = _equalities(left, right, on)
    return AsOf(
        left,
        right,
        COMPARISONS[direction, bool(allow_equal)],
        equalities,
        None if tolerance is None else duration_us(tolerance, "join_asof tolerance"),
        keep=how == "left",
        shared=shared,
    )


def _equalities(
    left: Node, right: Node, on: On
) -> tuple[tuple[exp.Expression, ...], tuple[str, ...]]:
    """The conditions, and the right side's columns if `on` names columns."""
    if on is None:
        return (), ()
    if isinstance(on, Expression):
        return conjuncts(on.node), ()
    names = [on] if isinstance(on, str) else list(on)
    if not names or not all(isinstance(name, str) for name in names):
        raise QueryError(
            "join_asof on",
            "must be columns that both streams have, or equalities of left and right",
            repr(on),
            f"Write for example {EXAMPLE}, or on=left.instrument == right.symbol.",
        )
    both = [[resolve(n, node.names, "join_asof on") for n in names] for node in (left, right)]
    sides = [[column(SideName(s, n)) for n in held] for s, held in zip(SIDES, both, strict=True)]
    return tuple(exp.EQ(this=a, expression=b) for a, b in zip(*sides, strict=True)), tuple(both[1])
