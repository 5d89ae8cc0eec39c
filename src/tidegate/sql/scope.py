"""The columns that the clauses of a SELECT can see, and their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tidegate.errors import NO_WAY, QueryError, near
from tidegate.query.name import (
    EVENT_TIME,
    SideName,
    ambiguous,
    as_expression,
    column,
    field,
    find_name,
    no_column,
    resolve,
)

_OWNER = "owner"


@dataclass(frozen=True)
class Scope:
    """One relation in FROM: its name (None for an unnamed subquery) and its columns.

    `implicit` columns are left out of *, because every row has them anyway. In nested joins,
    `within` are the labels of the surrounding ones, the outermost first. `hidden` are columns of
    USING, which mean something else without a qualifier.
    """

    alias: str | None
    names: tuple[str, ...]
    implicit: tuple[str, ...] = (EVENT_TIME,)
    within: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def plain(self, expression: exp.Expression, where: str) -> exp.Expression:
        """A copy in which every known column is unqualified and exactly named; others stay."""
        return _resolved(expression, where, self._reference)

    def owns(self, qualifier: str) -> bool:
        """Whether a qualifier names this relation, in any case."""
        return self.alias is not None and self.alias.lower() == qualifier.lower()

    def means_struct(self, parts: Sequence[str]) -> bool:
        """Whether `s.x` is a field of the column s, if the relation is called s too.

        As in Spark, a column x of the relation takes precedence.
        """
        return find_name(parts[1], self.names) is None and self.holds(parts[0])

    def holds(self, name: str) -> bool:
        """Whether it has a column of this name."""
        return find_name(name, self.names) is not None

    def flat(self, name: str) -> SideName:
        """A column under its name in the join."""
        found = SideName(self.alias or "", name)
        for label in reversed(self.within):
            found = SideName(label, found)
        return found

    def shown(self, name: str) -> str:
        """A column as the query calls it."""
        return f"{self.alias}.{name}"

    def column(self, name: str) -> exp.Column:
        """A reference to one of its columns from above a join."""
        return column(self.flat(name))

    def _reference(self, parts: Sequence[str], where: str) -> exp.Expression:
        if len(parts) > 1 and self.owns(parts[0]) and not self.means_struct(parts):
            found = column(resolve(parts[1], self.names, where))
            found.meta[_OWNER] = self.alias
            return field(found, *parts[2:])
        if len(parts) == 1:
            return column(find_name(parts[0], self.names) or parts[0])
        if holder := find_name(parts[0], self.names):
            return field(column(holder), *parts[1:])
        raise QueryError(
            where,
            "a qualified column must begin with the name of a stream in FROM",
            ".".join(parts),
            near(parts[0], [self.alias] if self.alias else []),
        )


@dataclass(frozen=True)
class PairScope:
    """The relations of a join; every column is resolved to its name in the join.

    The first `left_count` are the left side. `shared` are the columns of USING, each with the sides
    whose values count: the unqualified name means the first that is not NULL. If the pairs are
    `windowed`, a name that no side has may belong to the window or the select list, so it stays.
    """

    sides: tuple[Scope, ...]
    left_count: int = 1
    shared: tuple[tuple[str, tuple[str, ...]], ...] = ()
    windowed: bool = False

    def plain(self, expression: exp.Expression, where: str) -> exp.Expression:
        """A copy in which every column is named as in the join; a bare event time stays."""
        return _resolved(expression, where, self._reference)

    def owner(self, qualifier: str, where: str) -> Scope:
        """The side that a qualifier names."""
        for side in self.sides:
            if side.owns(qualifier):
                return side
        aliases = [s.alias for s in self.sides if s.alias]
        raise QueryError(
            where, "no stream in FROM has this name", qualifier, near(qualifier, aliases)
        )

    def data_names(self, side: Scope) -> tuple[str, ...]:
        """The columns of one side for *: without its event time or window."""
        return tuple(n for n in side.names if n not in side.implicit)

    @property
    def left_alone(self) -> PairScope:
        """The scope of rows with the columns of the left side only."""
        right = [replace(s, names=(), implicit=()) for s in self.sides[self.left_count :]]
        return replace(self, sides=(*self.sides[: self.left_count], *right))

    def whole(self, name: str) -> tuple[str, ...]:
        """The sides whose values a column of USING takes; empty for other columns."""
        return dict(self.shared).get(name.lower(), ())

    def shared_column(self, name: str) -> exp.Expression:
        """The value of a column of USING in a row."""
        sides = [self.owner(alias, "USING") for alias in self.whole(name)]
        values = [side.column(find_name(name, side.names) or "") for side in sides]
        return (
            values[0] if len(values) == 1 else exp.Coalesce(this=values[0], expressions=values[1:])
        )

    def holders(self, name: str) -> list[Scope]:
        """The sides that have a column of this name."""
        return [s for s in self.sides if s.holds(name) and name.lower() not in s.hidden]

    def _reference(self, parts: Sequence[str], where: str) -> exp.Expression:
        sides = self.sides
        if len(parts) > 1 and any(s.owns(parts[0]) for s in sides):
            side = self.owner(parts[0], where)
            found = find_name(parts[1], side.names)
            if found is None and any(s.holds(parts[0]) for s in sides):
                return self._unqualified(parts, where)
            if found is None and not side.names:
                raise QueryError(
                    where,
                    "rows of a semi or anti join have the columns of its left side only",
                    f"{parts[0]}.{parts[1]}",
                    "Write JOIN, or LEFT JOIN, for those of both.",
                )
            if found is None:
                raise no_column(parts[1], side.names, where, f"{parts[0]}.{parts[1]}")
            return field(side.column(found), *parts[2:])
        return self._unqualified(parts, where)

    def _unqualified(self, parts: Sequence[str], where: str) -> exp.Expression:
        """A column by its own name, and struct fields after it."""
        if parts[0].lower() == EVENT_TIME and where not in ("ON", "USING"):
            return field(column(EVENT_TIME), *parts[1:])
        holders, whole = self.holders(parts[0]), self.whole(parts[0])
        if not holders and not whole and len(parts) > 1:
            self.owner(parts[0], where)
        if not holders and not whole:
            if where == "ORDER BY" or self.windowed:
                return column(parts[0])
            listed = [s.shown(n) for s in self.sides for n in s.names]
            raise no_column(parts[0], listed, where)
        if len(holders) + bool(whole) > 1:
            named = [self.owner(alias, where) for alias in whole] + holders
            held = [s.shown(find_name(parts[0], s.names) or "") for s in named]
            raise ambiguous(".".join(parts), held, where)
        if whole:
            return field(self.shared_column(parts[0]), *parts[1:])
        return field(holders[0].column(find_name(parts[0], holders[0].names) or ""), *parts[1:])


def owner_of(reference: exp.Column) -> str | None:
    """The qualifier of a column; an unqualified window_end belongs to the SELECT's own window."""
    owner = reference.meta.get(_OWNER)
    return owner if isinstance(owner, str) else None


def _resolved(
    expression: exp.Expression, where: str, reference: Callable[[list[str], str], exp.Expr]
) -> exp.Expression:
    """A copy in which `reference` has replaced every column, given the parts of its name."""
    if query := expression.find(exp.Query):
        raise QueryError(where, "a subquery can stand in FROM only", _subquery(query), NO_WAY)

    def fix(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return reference([p.name for p in node.parts], where)
        return node

    return as_expression(expression.copy().transform(fix, copy=False))


def _subquery(query: exp.Expr) -> str:
    """A subquery in an expression, with the words before it."""
    around = query.find_ancestor(exp.In, exp.Exists)
    if around is None:
        return "(SELECT ...)"
    negated = "NOT " if isinstance(around.parent, exp.Not) else ""
    return f"{negated}{'IN' if isinstance(around, exp.In) else 'EXISTS'} (SELECT ...)"
