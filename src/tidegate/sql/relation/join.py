"""Binds FROM a [...] JOIN b [...] ON ... to a join node."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.join.kind import INNER, LEFT, JoinKind
from tidegate.query.name import NamedExpr, find_name, result_name
from tidegate.query.node.node import Join
from tidegate.query.window import Distance, JoinWindow
from tidegate.sql.advice.subquery import aggregate_of_pairs, join_of_pairs
from tidegate.sql.relation.join_kind import SQL_KINDS, join_words
from tidegate.sql.relation.relation import (
    JoinedSides,
    Relation,
    joined_by_and,
    without_aggregate_in_on,
)
from tidegate.sql.scope import PairScope


def join_relations(join: exp.Join, left: Relation, right: Relation) -> Relation:
    """The join of two relations; mistakes in windows and condition are QueryErrors.

    The pairs may be joined again; they then have the longest reach of their windows.
    """
    if join.args.get("match_condition") is not None:
        raise QueryError(
            "MATCH_CONDITION", "is for an as-of join", "JOIN", "Write ASOF JOIN, or use ON alone."
        )
    reaches = [_reach(relation, left, join) for relation in (left, right)]
    kind = SQL_KINDS[join_words(join)]
    sides = JoinedSides.of(left, right)
    said = f"{left.text} {kind.summary.upper()} {right.text}"
    scope, predicate = join_condition(join, sides, said, kind)
    node = Join(left.node, right.node, reaches[0], reaches[1], predicate, sides.labels, kind)
    if not kind.pairs:
        scope = scope.left_alone
    text = f"{left.text} [{left.reach}]" if left.pair is None else left.text
    text += f" {join.sql(dialect='tidegate', comments=False).strip()}"
    return Relation(node, None, None, text, _longest(*reaches), scope)


def join_condition(
    join: exp.Join, sides: JoinedSides, text: str, kind: JoinKind = INNER
) -> tuple[PairScope, exp.Expression | None]:
    """The condition of ON, USING or NATURAL (None for all pairs), and the scope after the join."""
    scope, condition = sides.scope, join.args.get("on")
    if using := join.args.get("using") or _natural(join, scope):
        whole = kind.tracked if kind.pairs and kind.tracked else (LEFT,)
        scope, equalities = sides.using(using, whole)
        return scope, joined_by_and(equalities)
    if condition is not None:
        return scope, scope.plain(without_aggregate_in_on(condition), "ON")
    if join.kind != "CROSS":
        raise QueryError(
            "JOIN", "needs ON and a condition", text, "Write ON ..., or CROSS JOIN for all pairs."
        )
    return scope, None


def _reach(relation: Relation, left: Relation, join: exp.Join) -> JoinWindow:
    """How much earlier than its partner a tuple of this side may be; raises if nothing says it."""
    if relation.reach is not None:
        return relation.reach
    if relation.pair is not None and isinstance(relation.node, Join):
        longest = _longest(relation.node.left_window, relation.node.right_window)
        if longest is not None:
            return longest
        raise QueryError(
            "JOIN",
            "pairs of windows of tuples need a window of their own to be joined again",
            relation.text,
            f"Write {join_of_pairs(left.text, join)}",
        )
    raise QueryError(
        "JOIN",
        "both sides need a window",
        relation.text,
        f"Write {relation.text} [RANGE 5 MINUTES]: how much earlier it may be than its partner.",
    )


def _longest(left: JoinWindow, right: JoinWindow) -> JoinWindow | None:
    """The window of the pairs in a following join; None if either window counts tuples."""
    mine, others = left.extent[0], right.extent[0]
    return None if mine is None or others is None else Distance(max(mine, others))


def refuse_aggregate(tree: exp.Select) -> QueryError:
    """The error for an aggregate over pairs without a window."""
    return QueryError(
        "JOIN",
        "an aggregate over the pairs of a join needs a window over them",
        None,
        f"Write {aggregate_of_pairs(tree)}",
    )


def star_items(written: exp.Expression, scope: PairScope, left_out: set[str]) -> list[NamedExpr]:
    """The columns of * or r.*, side by side."""
    sides, whole = scope.sides, isinstance(written, exp.Column)
    if isinstance(written, exp.Column):
        sides = (scope.owner(written.table, "SELECT"),)
    items: dict[str, NamedExpr] = {}
    owners: dict[str, str] = {}
    for side in sides:
        for name in scope.data_names(side):
            key = name.lower()
            if key in left_out or (key in items and key in side.hidden and not whole):
                continue
            if key in items:
                raise QueryError(
                    "SELECT",
                    "* needs columns with names of their own",
                    f"{name} in {owners[key]} and in {side.alias}",
                    "List the columns, and rename one of the two with AS.",
                )
            owners[key] = side.alias or ""
            merged = key in side.hidden and not whole
            value = scope.shared_column(name) if merged else side.column(name)
            items[key] = (result_name(name, side.names), value)
    return list(items.values())


def _natural(join: exp.Join, scope: PairScope) -> list[exp.Identifier]:
    """The common columns of a NATURAL JOIN; none for other joins."""
    if join.method != "NATURAL":
        return []
    left, right = (
        [n for side in sides for n in scope.data_names(side) if n.lower() not in side.hidden]
        for sides in (scope.sides[: scope.left_count], scope.sides[scope.left_count :])
    )
    both = [name for name in left if find_name(name, right)]
    if not both:
        raise QueryError(
            "NATURAL JOIN", "needs a column that both sides have", "none", "Write JOIN ... ON ..."
        )
    return [exp.to_identifier(name, quoted=True) for name in both]
