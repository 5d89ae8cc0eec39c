"""Binds FROM a [...] JOIN b [...] ON ... to a join node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from tidegate.errors import QueryError, near
from tidegate.operate.join.kind import LEFT
from tidegate.query.join import SIDES
from tidegate.query.name import NamedExpr, find_name, result_name
from tidegate.query.node import Join, Node, data_names
from tidegate.query.window import JoinWindow, Window
from tidegate.sql.advice.subquery import aggregate_of_pairs, join_of_pairs
from tidegate.sql.function import aggregate_name, is_aggregate
from tidegate.sql.join_kind import SQL_KINDS, join_words
from tidegate.sql.scope import PairScope, Scope


@dataclass(frozen=True)
class Relation:
    """What FROM gives a SELECT: a node, how it is called, and the window over it.

    The sides of a join have a `reach` in place of a window. The join of two has neither a name nor
    a window of its own; `pair` then says how its columns are named.
    """

    node: Node
    alias: str | None
    window: Window | None
    text: str
    reach: JoinWindow | None = None
    pair: PairScope | None = None

    @property
    def scope(self) -> Scope | PairScope:
        return self.pair or self.single

    @property
    def single(self) -> Scope:
        kept = set(data_names(self.node))
        implicit = tuple(n for n in self.node.names if n not in kept)
        return Scope(self.alias, self.node.names, implicit)


def join_relations(join: exp.Join, left: Relation, right: Relation) -> Relation:
    """The join of two relations; mistakes in its windows and its condition are QueryErrors."""
    for relation in (left, right):
        if relation.reach is None:
            raise QueryError(
                "JOIN",
                "both sides need a window",
                relation.text,
                f"Write {relation.text} [RANGE 5 MINUTES]: how much earlier it may be than its "
                "partner.",
            )
    first, second = (
        replace(r.single, alias=r.alias or side) for r, side in zip((left, right), SIDES)
    )
    kind = SQL_KINDS[join_words(join)]
    scope = PairScope(first, second, whole=kind.tracked if kind.pairs and kind.tracked else (LEFT,))
    condition = join.args.get("on")
    predicate: exp.Expression | None = None
    if using := join.args.get("using") or _natural(join, scope):
        scope = replace(scope, shared=tuple(u.name.lower() for u in using))
        predicate = _using(using, scope)
    elif condition is not None:
        predicate = scope.plain(_without_aggregate(condition), "ON")
    elif join.kind != "CROSS":
        raise QueryError(
            "JOIN",
            "needs ON and a condition",
            f"{left.text} {kind.summary.upper()} {right.text}",
            "Write ON ..., or CROSS JOIN for all pairs.",
        )
    assert left.reach is not None
    assert right.reach is not None
    labels = (first.alias or "", second.alias or "")
    node = Join(left.node, right.node, left.reach, right.reach, predicate, labels, kind)
    if not kind.pairs:
        scope = replace(scope, right=replace(second, names=(), implicit=()))
    text = f"{left.text} {kind.summary.upper()} {right.text}"
    return Relation(node, None, None, text, pair=scope)


def refuse_more(first: exp.Expression, joins: Sequence[exp.Join]) -> None:
    """A join of a join needs a window for the pairs, which is written after a subquery."""
    if len(joins) > 1:
        raise QueryError(
            "JOIN",
            "the pairs of a join need a window of their own to be joined again",
            f"{len(joins) + 1} streams",
            f"Write {join_of_pairs(first, joins)}",
        )


def refuse_aggregate(tree: exp.Select, scope: PairScope) -> QueryError:
    """What to say of an aggregate over pairs, whose window is written after a subquery."""
    return QueryError(
        "JOIN",
        "an aggregate over the pairs of a join needs a window over them",
        None,
        f"Write {aggregate_of_pairs(tree, scope)}",
    )


def star_items(written: exp.Expression, scope: PairScope, left_out: set[str]) -> list[NamedExpr]:
    """The columns that * or r.* stands for: those of the left side, then those of the right."""
    sides = [scope.left, scope.right]
    if isinstance(written, exp.Column):
        sides = [scope.owner(written.table, "SELECT")]
    items: dict[str, NamedExpr] = {}
    for side in sides:
        for name in scope.data_names(side):
            key = name.lower()
            if key in left_out or (key in items and key in scope.shared):
                continue
            if key in items:
                raise QueryError(
                    "SELECT",
                    "* needs columns with names of their own",
                    f"{name} in {scope.left.alias} and in {scope.right.alias}",
                    "List the columns, and rename one of the two with AS.",
                )
            both = key in scope.shared and len(sides) > 1
            value = scope.shared_column(name) if both else side.column(name)
            items[key] = (result_name(name, side.names), value)
    return list(items.values())


def _using(columns: Sequence[exp.Identifier], scope: PairScope) -> exp.Expression:
    parts: list[exp.Expression] = []
    for identifier in columns:
        sides = []
        for side in (scope.left, scope.right):
            found = find_name(identifier.name, side.names)
            if found is None:
                raise QueryError(
                    "USING",
                    f"{side.alias} has no column of this name",
                    identifier.name,
                    near(identifier.name, side.names),
                )
            sides.append(side.column(found))
        parts.append(exp.EQ(this=sides[0], expression=sides[1]))
    return reduce(lambda a, b: exp.And(this=a, expression=b), parts)


def _natural(join: exp.Join, scope: PairScope) -> list[exp.Identifier]:
    """The columns that both sides of a NATURAL JOIN have; none for another join."""
    if join.method != "NATURAL":
        return []
    sides = (scope.data_names(scope.left), scope.data_names(scope.right))
    both = [name for name in sides[0] if find_name(name, sides[1])]
    if not both:
        raise QueryError(
            "NATURAL JOIN", "needs a column that both sides have", "none", "Write JOIN ... ON ..."
        )
    return [exp.to_identifier(name, quoted=True) for name in both]


def _without_aggregate(condition: exp.Expression) -> exp.Expression:
    for node in condition.walk():
        if is_aggregate(node):
            raise QueryError(
                "ON",
                "an aggregate cannot stand here",
                aggregate_name(node),
                "Compare tuples with tuples; aggregates are over windows.",
            )
    return condition
