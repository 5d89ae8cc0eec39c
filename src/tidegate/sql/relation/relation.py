"""What FROM gives a SELECT: a stream, a subquery, or the pairs of a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from tidegate.errors import QueryError, near
from tidegate.query.name import ambiguous, find_name
from tidegate.query.node.node import Node, data_names
from tidegate.query.node.stream_pair import SIDES
from tidegate.query.window import JoinWindow, Window
from tidegate.sql.function import aggregate_name, is_aggregate
from tidegate.sql.scope import PairScope, Scope


@dataclass(frozen=True)
class Relation:
    """A node, its name, and the window over it.

    A side of a join has a `reach` instead of a window. The pairs of a join have no name; `pair`
    says how their columns are named.
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
    """The two sides of a join during binding: their labels, and the scope of its pairs."""

    labels: tuple[str, str]
    scope: PairScope

    @staticmethod
    def of(left: Relation, right: Relation | Scope) -> JoinedSides:
        """From two relations, or from one relation and a table's columns."""
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
        shared = [s for pair in map(_pair, (left, right)) if pair for s in pair.shared]
        scope = PairScope(tuple(sides), len(parts[0]), tuple(shared))
        return JoinedSides((labels[0], labels[1]), scope)

    def using(
        self, columns: Sequence[exp.Identifier], whole: Sequence[int] = (0,)
    ) -> tuple[PairScope, list[exp.Expression]]:
        """The equalities of USING, and the scope in which its columns need no qualifier.

        `whole` are the sides whose tuples all appear in the result; the columns take their values.
        """
        count, sides = self.scope.left_count, self.scope.sides
        parts = [_part(self.scope, part) for part in (sides[:count], sides[count:])]
        shared, hidden = (
            dict(self.scope.shared),
            [identifier.name.lower() for identifier in columns],
        )
        equalities: list[exp.Expression] = []
        for identifier in columns:
            name = identifier.name
            owners = [_owners(part, name) for part in parts]
            hands = [
                replace(part, shared=((name.lower(), owner),)).shared_column(name)
                for part, owner in zip(parts, owners, strict=True)
            ]
            equalities.append(exp.EQ(this=hands[0], expression=hands[1]))
            shared[name.lower()] = tuple(alias for side in whole for alias in owners[side])
        all_sides = tuple(
            replace(s, hidden=(*s.hidden, *(n for n in hidden if s.holds(n)))) for s in sides
        )
        scope = replace(self.scope, sides=all_sides, shared=tuple(shared.items()))
        return scope, equalities


def _part(scope: PairScope, sides: tuple[Scope, ...]) -> PairScope:
    """The scope of some relations of a join."""
    aliases = {side.alias for side in sides}
    shared = tuple((name, whole) for name, whole in scope.shared if aliases.issuperset(whole))
    return replace(scope, sides=sides, shared=shared)


def _owners(part: PairScope, name: str) -> tuple[str, ...]:
    """The relations on one side of a join whose values a column of USING takes."""
    if whole := part.whole(name):
        return whole
    holders = part.holders(name)
    if len(holders) > 1:
        held = [s.shown(find_name(name, s.names) or "") for s in holders]
        raise ambiguous(name, held, "USING")
    if not holders:
        raise QueryError(
            "USING",
            f"{' and '.join(s.alias or '' for s in part.sides)} has no column of this name",
            name,
            near(name, [n for side in part.sides for n in side.names]),
        )
    return (holders[0].alias or "",)


def joined_by_and(parts: Sequence[exp.Expression]) -> exp.Expression:
    """The conjunction of conditions."""
    return reduce(lambda a, b: exp.And(this=a, expression=b), parts)


def without_aggregate_in_on(condition: exp.Expression) -> exp.Expression:
    """The condition of a join; raises if it contains an aggregate."""
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
