"""Says what FROM gives a SELECT: a stream, a subquery, or the pairs of a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from tidegate.errors import QueryError, near
from tidegate.operate.join.kind import INNER, LEFT, RIGHT, JoinKind
from tidegate.query.name import find_name
from tidegate.query.node import Node, data_names
from tidegate.query.paired import SIDES
from tidegate.query.window import JoinWindow, Window
from tidegate.sql.function import aggregate_name, is_aggregate
from tidegate.sql.scope import PairScope, Scope


@dataclass(frozen=True)
class Relation:
    """A node, how it is called, and the window over it.

    The sides of a join have a `reach` in place of a window. The pairs of a join have no name of
    their own; `pair` then says how their columns are named.
    """

    node: Node
    alias: str | None
    window: Window | None
    text: str
    reach: JoinWindow | None = None
    pair: PairScope | None = None

    @property
    def scope(self) -> Scope | PairScope:
        if self.pair is None:
            return self.single
        return replace(self.pair, windowed=self.window is not None)

    @property
    def single(self) -> Scope:
        kept = set(data_names(self.node))
        implicit = tuple(n for n in self.node.names if n not in kept)
        return Scope(self.alias, self.node.names, implicit)


@dataclass(frozen=True)
class JoinedSides:
    """The two sides of a join that is being bound: their labels, and the scope of its pairs."""

    labels: tuple[str, str]
    scope: PairScope

    @staticmethod
    def of(left: Relation, right: Relation | Scope) -> JoinedSides:
        parts = [_scopes(r, side) for r, side in zip((left, right), SIDES, strict=True)]
        names = [scope.alias or "" for scopes in parts for scope in scopes]
        for name in names:
            if sum(name.lower() == other.lower() for other in names) > 1:
                raise QueryError(
                    "JOIN",
                    "both sides need a name of their own",
                    f"{name} twice",
                    "Give one of them another name with AS.",
                )
        labels = ["_".join(s.alias or "" for s in scopes) for scopes in parts]
        while labels[0].lower() == labels[1].lower():
            labels[0] += "_"
        named = zip(parts, labels, (left, right), strict=True)
        sides = [
            replace(s, within=(label, *s.within)) if _pair(relation) else s
            for scopes, label, relation in named
            for s in scopes
        ]
        whole = [c for pair in map(_pair, (left, right)) if pair for c in pair.whole]
        scope = PairScope(tuple(sides), len(parts[0]), whole=tuple(whole))
        return JoinedSides((labels[0], labels[1]), scope)

    def using(
        self, columns: Sequence[exp.Identifier], kind: JoinKind = INNER
    ) -> tuple[PairScope, list[exp.Expression]]:
        """The equalities of USING, and the scope in which its columns need no qualifier."""
        equalities: list[exp.Expression] = []
        scope, right = self.scope, self.scope.sides[self.scope.left_count :]
        lefts = replace(scope, sides=scope.sides[: scope.left_count])
        hidden: dict[str, list[str]] = {}
        whole = dict(scope.whole)
        for identifier in columns:
            name = identifier.name
            left = lefts.shared_column(name)
            owner = next((s for s in right if find_name(name, s.names)), None)
            if left is None or owner is None:
                lacking = scope.sides[: scope.left_count] if left is None else right
                held = [n for side in lacking for n in side.names]
                raise QueryError(
                    "USING",
                    f"{' and '.join(s.alias or '' for s in lacking)} has no column of this name",
                    name,
                    near(name, held),
                )
            equal = exp.EQ(this=left, expression=owner.column(find_name(name, owner.names) or ""))
            equalities.append(equal)
            hidden.setdefault(owner.alias or "", []).append(name.lower())
            if kind.can_miss(LEFT):
                held_by = lefts.shared_owners(name) if kind.can_miss(RIGHT) else ()
                whole[name.lower()] = (*held_by, owner.alias or "")
        sides = [
            replace(s, hidden=(*s.hidden, *hidden.get(s.alias or "", ()))) for s in scope.sides
        ]
        return replace(scope, sides=tuple(sides), whole=tuple(whole.items())), equalities


def joined_by_and(parts: Sequence[exp.Expression]) -> exp.Expression:
    """Conditions as one."""
    return reduce(lambda a, b: exp.And(this=a, expression=b), parts)


def without_aggregate_in_on(condition: exp.Expression) -> exp.Expression:
    """The condition of a join, refused where it has an aggregate."""
    for node in condition.walk():
        if is_aggregate(node):
            raise QueryError(
                "ON",
                "an aggregate cannot stand here",
                aggregate_name(node),
                "Compare tuples with tuples; aggregates are over windows.",
            )
    return condition


def _pair(relation: Relation | Scope) -> PairScope | None:
    return relation.pair if isinstance(relation, Relation) else None


def _scopes(relation: Relation | Scope, side: str) -> tuple[Scope, ...]:
    if isinstance(relation, Scope):
        return (relation,)
    if relation.pair is not None:
        return relation.pair.sides
    return (replace(relation.single, alias=relation.alias or side),)
