"""The columns a SELECT can see and by which names, between FROM and the rest of its clauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from tidegate.errors import QueryError, near
from tidegate.query.name import column, find_name, resolve


@dataclass(frozen=True)
class Scope:
    """One relation in FROM: the name it goes by (None for a subquery without one), its columns."""

    alias: str | None
    names: tuple[str, ...]

    def plain(self, expression: exp.Expression, where: str) -> exp.Expression:
        """A copy in which every known column is unqualified and exactly named; others stay."""
        _refuse(expression, where)

        def fix(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                return self._reference([p.name for p in node.parts], where)
            return node

        fixed = expression.copy().transform(fix, copy=False)
        if not isinstance(fixed, exp.Expression):
            raise TypeError(f"not an expression: {fixed!r}")
        return fixed

    def owns(self, qualifier: str) -> bool:
        """Whether a qualifier names this relation; case does not matter."""
        return self.alias is not None and self.alias.lower() == qualifier.lower()

    def _reference(self, parts: Sequence[str], where: str) -> exp.Expression:
        if len(parts) > 1 and self.owns(parts[0]):
            return _fields(column(resolve(parts[1], self.names, where)), parts[2:])
        if len(parts) == 1:
            return column(find_name(parts[0], self.names) or parts[0])
        if holder := find_name(parts[0], self.names):
            return _fields(column(holder), parts[1:])
        raise QueryError(
            where,
            "a qualified column must begin with the name of a stream in FROM",
            ".".join(parts),
            near(parts[0], [self.alias] if self.alias else []),
        )


def resolve_join(expression: exp.Expression, scopes: Sequence[Scope], where: str) -> None:
    """Check that every column of an expression belongs to exactly one side of a join."""
    for node in expression.find_all(exp.Column):
        if isinstance(node.this, exp.Star):
            continue
        sides = [s for s in scopes if not node.table or s.owns(node.table)]
        if not sides:
            aliases = [s.alias for s in scopes if s.alias]
            raise QueryError(
                where, "no stream in FROM has this name", node.table, near(node.table, aliases)
            )
        holders = [s for s in sides if find_name(node.name, s.names)]
        if not holders:
            resolve(node.name, [n for s in sides for n in s.names], where)
        if len(holders) > 1:
            raise QueryError(
                where,
                "a column of both sides must be qualified",
                node.name,
                " or ".join(f"{s.alias}.{node.name}" for s in holders) + "?",
            )


def _fields(of: exp.Expression, fields: Sequence[str]) -> exp.Expression:
    for field in fields:
        of = exp.Dot(this=of, expression=exp.to_identifier(field))
    return of


def _refuse(expression: exp.Expression, where: str) -> None:
    if expression.find(exp.Window):
        raise QueryError(
            where,
            "window functions with OVER are not supported",
            expression.sql(dialect="spark", comments=False),
            "Give the stream a window: FROM name [RANGE ...].",
        )
    if expression.find(exp.Query):
        raise QueryError(
            where,
            "a subquery can stand in FROM only",
            expression.sql(dialect="tidegate", comments=False),
        )
