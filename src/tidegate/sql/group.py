"""Splits a grouped select list into keys, aggregates, and expressions over both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count

from sqlglot import exp

from tidegate.errors import QueryError, near
from tidegate.query.aggregate import AggregateCall
from tidegate.query.grouping import GROUPING_ID, Sets, by_sets, crossed, grouping_bits
from tidegate.query.name import (
    WINDOW,
    NamedExpr,
    as_expression,
    canonical,
    column,
    find_name,
    no_column,
    spark_name,
)
from tidegate.query.node.node import Aggregate, Node
from tidegate.query.window import Window
from tidegate.sql.function import (
    aggregate_name,
    has_aggregate,
    inside_aggregate,
    is_aggregate,
    read_aggregate,
    unknown_aggregate,
)
from tidegate.sql.grouping_sets import has_sets, sides_of_group
from tidegate.sql.scope import owner_of


@dataclass
class Grouping:
    """The keys and aggregate calls found so far, and how expressions refer to them.

    `items` are the named expressions of the select list over the child's columns `names`. There may
    be thousands, so equal expressions are found by hash, not by search.
    """

    names: tuple[str, ...]
    items: tuple[NamedExpr, ...]
    keys: list[NamedExpr] = field(default_factory=list)
    calls: list[tuple[str, AggregateCall]] = field(default_factory=list)
    sets: Sets | None = None
    id_name: str = GROUPING_ID
    _key_names: dict[exp.Expression, str] = field(default_factory=dict)
    _call_names: dict[AggregateCall, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=lambda: set(WINDOW))

    def add_keys(self, group: exp.Group | None) -> None:
        """Adds the keys of GROUP BY; a name is a column first, then an alias."""
        if group is None:
            return
        every = [e for _, e in self.items if not has_aggregate(e)] if group.args.get("all") else []
        sides = [[self._names(written) for written in side] for side in sides_of_group(group)]
        self._names(every)
        if has_sets(group):
            self.sets = crossed(sides)
            self.id_name = self._free(GROUPING_ID)

    def aggregate(self, child: Node, window: Window) -> Aggregate:
        """The aggregate of everything found, over the rows of a node."""
        keys, calls = tuple(self.keys), tuple(self.calls)
        if self.sets is None:
            return Aggregate(child, window, keys, calls)
        return by_sets(
            lambda *parts: Aggregate(parts[0], window, *parts[1:]),
            child,
            keys,
            calls,
            self.sets,
            self.id_name,
        )

    def _names(self, keys: Iterable[exp.Expression]) -> list[str]:
        """The names of key expressions; adds new ones."""
        return [name for name in map(self._named_key, keys) if name is not None]

    def _named_key(self, written: exp.Expression) -> str | None:
        key = self._key(written)
        if key is not None and key not in self._key_names:
            name = self._free(self._item_names.get(key) or spark_name(key))
            self._key_names[key] = name
            self.keys.append((name, key))
        return None if key is None else self._key_names[key]

    def _grouping(self, node: exp.Grouping | exp.GroupingId, where: str) -> exp.Expression:
        """GROUPING and GROUPING_ID, computed from the number of the set."""
        if self.sets is None:
            raise QueryError(
                where,
                "needs GROUPING SETS, ROLLUP or CUBE in GROUP BY",
                node.sql(dialect="spark"),
                "Leave it out: every key is grouped by.",
            )
        names = [name for name, _ in self.keys]
        asked = []
        for written in node.expressions:
            asked.append(self._key_names.get(unwrapped(written)))
            if asked[-1] is None:
                got = written.sql(dialect="spark")
                raise QueryError(where, "GROUPING takes keys of GROUP BY", got, near(got, names))
        bits = grouping_bits(self.id_name, names, [a for a in asked if a] or names)
        return exp.cast(bits, "TINYINT") if isinstance(node, exp.Grouping) else bits

    def rewrite(self, expression: exp.Expression, where: str) -> exp.Expression:
        """The expression over the Aggregate's columns; adds new aggregates to it."""

        def put(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and self._of_window(node):
                return column(node.name.lower())
            key = self._key_names.get(unwrapped(node)) if self.keys else None
            if key is not None:
                return column(key)
            if isinstance(node, exp.Grouping | exp.GroupingId):
                return self._grouping(node, where)
            if is_aggregate(node) and isinstance(node, exp.Expression):
                return column(self._call(node))
            if isinstance(node, exp.Anonymous):
                self._refuse_unknown(node, where)
            if isinstance(node, exp.Star):
                raise QueryError(where, "* cannot stand beside an aggregate", "*")
            if isinstance(node, exp.Column):
                raise self._not_grouped(node, where)
            return node

        return as_expression(expression.copy().transform(put, copy=False))

    def with_aliases(self, expression: exp.Expression, columns_first: bool) -> exp.Expression:
        """Replaces aliases by their expressions, outside aggregates.

        ORDER BY prefers aliases, HAVING prefers grouped columns.
        """
        aliases = [n for n, _ in self.items]
        root = exp.Paren(this=expression.copy())
        for node in list(root.find_all(exp.Column)):
            if inside_aggregate(node):
                continue
            if columns_first and node in self._key_names:
                continue
            alias = find_name(node.name, aliases)
            if alias is not None:
                target = next(e for n, e in self.items if n == alias)
                simple = isinstance(target, exp.Column | exp.Func)
                node.replace(target.copy() if simple else exp.Paren(this=target.copy()))
        return as_expression(root.this)

    def _key(self, written: exp.Expression) -> exp.Expression | None:
        key = unwrapped(written)
        if isinstance(key, exp.Literal) and not key.is_string:
            key = unwrapped(ordinal(key, self.items, "GROUP BY"))
        elif isinstance(key, exp.Column) and find_name(key.name, self.names) is None:
            if key.name.lower() in WINDOW:
                return None
            alias = find_name(key.name, [n for n, _ in self.items])
            if alias is None:
                raise self._no_column(key.name, "GROUP BY")
            key = unwrapped(next(e for n, e in self.items if n == alias))
        if has_aggregate(key):
            raise QueryError("GROUP BY", "a key cannot be an aggregate", key.sql(dialect="spark"))
        if isinstance(key, exp.Column) and self._of_window(key):
            raise QueryError(
                "GROUP BY",
                "every result is of one window, and FROM has a column of this name",
                key.name,
                f"Leave it out, or say whose it is, as in w.{key.name}.",
            )
        return canonical(key, self.names, "GROUP BY")

    def _call(self, node: exp.Expression) -> str:
        call = read_aggregate(node)
        call = call.over([canonical(a, self.names, aggregate_name(node)) for a in call.arguments])
        if call not in self._call_names:
            name = self._item_names.get(node)
            if name is None or name.lower() in self._taken:
                name = self._free(name, spark_name(node))
            self._taken.add(name.lower())
            self._call_names[call] = name
            self.calls.append((name, call))
        return self._call_names[call]

    def _of_window(self, node: exp.Column) -> bool:
        """Whether a column belongs to the window of this SELECT, not to one in FROM."""
        return node.name.lower() in WINDOW and owner_of(node) is None

    def _no_column(self, name: str, where: str) -> QueryError:
        aliases = (alias for alias, _ in self.items if alias not in self.names)
        return no_column(name, [*self.names, *aliases], where)

    def _not_grouped(self, node: exp.Column, where: str) -> QueryError:
        if find_name(node.name, self.names) is None:
            return self._no_column(node.name, where)
        keys = ", ".join(n for n, _ in self.keys)
        in_window = node.name.lower() in WINDOW
        written = f"{owner_of(node)}.{node.name}" if in_window else node.name
        return QueryError(
            where,
            "a column must be a key of GROUP BY or inside an aggregate",
            written,
            f"Add {written} to GROUP BY {keys}." if keys else f"Write GROUP BY {written}.",
        )

    def _refuse_unknown(self, node: exp.Anonymous, where: str) -> None:
        """An unknown function over an ungrouped column is taken for a misspelt aggregate."""
        grouped = [k for _, k in self.keys]
        for inner in node.find_all(exp.Column):
            if inner not in grouped and not inside_aggregate(inner):
                raise unknown_aggregate(node.name.upper(), where)

    @cached_property
    def _item_names(self) -> dict[exp.Expression, str]:
        """The first name of each expression in the select list."""
        return {unwrapped(e): n for n, e in reversed(self.items)}

    def _free(self, *wanted: str | None) -> str:
        """The first free one of these names, or the last one with a number; reserves it."""
        names = [n for n in wanted if n is not None]
        numbered = (f"{names[-1]}_{number}" for number in count(1))
        name = next(n for n in chain(names, numbered) if n.lower() not in self._taken)
        self._taken.add(name.lower())
        return name


def ordinal(number: exp.Literal, items: Sequence[NamedExpr], where: str) -> exp.Expression:
    """The select list item that a number in GROUP BY or ORDER BY stands for."""
    text = number.name
    if not text.isdigit() or not 1 <= int(text) <= len(items):
        raise QueryError(
            where, f"a number must be a position from 1 to {len(items)} in the select list", text
        )
    return items[int(text) - 1][1]


def positions(
    written: Iterable[exp.Expression], items: Sequence[NamedExpr], where: str
) -> list[exp.Expression]:
    """The expressions, with numbers replaced by the select list items they stand for."""
    return [
        ordinal(e, items, where) if isinstance(e, exp.Literal) and not e.is_string else e
        for e in written
    ]


def unwrapped(node: exp.Expr) -> exp.Expression:
    """An expression without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return as_expression(node)
