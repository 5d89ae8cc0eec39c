"""Binds FROM a ASOF JOIN b MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k to an as-of join.

DuckDB's syntax is accepted too: the comparison of times as a part of ON, or the time as the last
column of USING.
"""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.name import EVENT_TIME, WINDOW, SideName, conjuncts, expression_text
from tidegate.query.node.asof import AsOf
from tidegate.query.node.instant import event_offset
from tidegate.query.node.node import Node
from tidegate.sql.relation.relation import JoinedSides, Relation, without_aggregate_in_on

_COMPARISONS: dict[type[exp.Expr], str] = {exp.GTE: ">=", exp.GT: ">", exp.LTE: "<=", exp.LT: "<"}
_TURNED = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}
_SHIFTED = {
    **{(comparison, 0): comparison for comparison in _TURNED},
    (">=", -1): ">",
    (">", 1): ">=",
    ("<=", 1): "<",
    ("<", -1): "<=",
}
"""Turns a comparison of columns into one of event times. A key is the written comparison, and how
much further the left column is from its event time than the right one, in microseconds. A window's
event time is its last instant, one microsecond before window_end.
"""

_MATCH = "MATCH_CONDITION"


def asof_relations(join: exp.Join, left: Relation, right: Relation) -> Relation:
    """The as-of join of two relations; mistakes are QueryErrors.

    A row has the time of its left tuple, so in a later join it has the left side's reach.
    """
    sides = JoinedSides.of(left, right)
    scope, parts = sides.scope, list[exp.Expression]()
    if using := join.args.get("using"):
        scope, parts = sides.using(using)
        if join.args.get("match_condition") is None:
            parts[-1] = exp.GTE(this=parts[-1].this, expression=parts[-1].expression)
    elif condition := join.args.get("on"):
        parts = list(conjuncts(scope.plain(without_aggregate_in_on(condition), "ON")))
    times = [part for part in parts if type(part) in _COMPARISONS]
    where = "USING" if using else "ON"
    if (written := join.args.get("match_condition")) is not None:
        times, where = [scope.plain(written, _MATCH)], _MATCH
    if len(times) != 1:
        raise _refused(sides, f"{len(times)} comparisons" if times else "none", where)
    comparison = _Times(sides, left.node, right.node).comparison(times[0], where)
    node = AsOf(
        left.node,
        right.node,
        comparison,
        tuple(part for part in parts if part is not times[0]),
        _tolerance(right),
        keep=join.side.upper() == "LEFT",
        labels=sides.labels,
    )
    return Relation(node, None, None, left.text, left.reach, scope)


class _Times:
    """The columns of a join that hold the event times of its sides."""

    def __init__(self, sides: JoinedSides, *nodes: Node) -> None:
        self._sides = sides
        self._offsets: dict[str, tuple[int, int]] = {EVENT_TIME: (0, 0)}
        for side, (label, node) in enumerate(zip(sides.labels, nodes, strict=True)):
            if node.windowed:
                self._offsets[SideName(label, WINDOW[1])] = (side, -event_offset(node))
            else:
                for name in node.event_names:
                    self._offsets[SideName(label, name)] = (side, 0)

    def comparison(self, condition: exp.Expression, where: str) -> str:
        """How a condition compares the left event time with the right one."""
        written = _COMPARISONS.get(type(condition))
        hands = [condition.this, condition.expression] if written else []
        found = [
            self._offsets.get(hand.name) if isinstance(hand, exp.Column) else None for hand in hands
        ]
        if written is None or None in found:
            raise _refused(self._sides, expression_text(condition), where)
        (first, ahead), (second, behind) = (f for f in found if f is not None)
        if first == second:
            raise _refused(self._sides, expression_text(condition), where)
        if first == 1:
            written, ahead, behind = _TURNED[written], behind, ahead
        if (written, ahead - behind) not in _SHIFTED:
            raise QueryError(
                where,
                "a window ends just before window_end, so this would take in later tuples",
                expression_text(condition),
                "Write > for >=, or >= for >, and the same of < and <=.",
            )
        return _SHIFTED[written, ahead - behind]


def _tolerance(right: Relation) -> int | None:
    if right.reach is None:
        return None
    range_us = right.reach.extent[0]
    if range_us is None:
        raise QueryError(
            "ASOF JOIN",
            "the tolerance must be a time",
            f"{right.text} [{right.reach}]",
            f"Write {right.text} [RANGE 5 SECONDS].",
        )
    return range_us


def refuse_window(left: Relation) -> QueryError:
    """The error for a window on the left side when no other join follows."""
    return QueryError(
        "ASOF JOIN",
        "only the right side has a window, its tolerance",
        f"{left.text} [{left.reach}]",
        f"Write FROM {left.text} ASOF JOIN ...",
    )


def _refused(sides: JoinedSides, got: str, where: str) -> QueryError:
    left, right = sides.labels
    count = sides.scope.left_count
    time = f"{left}.{EVENT_TIME}" if count == 1 else EVENT_TIME
    remedy = f"Write MATCH_CONDITION ({time} >= {right}.{EVENT_TIME})."
    if len(sides.scope.sides) - count > 1:
        remedy = "The right side needs a name: ASOF JOIN (SELECT ... FROM ...) AS r "
        remedy += f"MATCH_CONDITION ({time} >= r.{EVENT_TIME})."
    return QueryError(
        where if got != "none" else "ASOF JOIN",
        "needs one comparison of the event times of both sides, by >=, >, <= or <",
        got,
        remedy,
    )
