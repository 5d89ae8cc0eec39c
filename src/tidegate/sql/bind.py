"""Binds statements to a catalog of streams: parsed SQL becomes logical nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import islice
from typing import TypeVar

from sqlglot import exp

from tidegate.errors import NO_WAY, QueryError
from tidegate.nesting import nested
from tidegate.query.clause.clause import Clause
from tidegate.query.having import having_over
from tidegate.query.name import (
    NamedExpr,
    column,
    conjuncts,
)
from tidegate.query.node.limit import ordered
from tidegate.query.node.node import Node, Top, Union, data_names, project
from tidegate.query.output import Output
from tidegate.query.table import TableDef
from tidegate.query.window.window import Use
from tidegate.sql.clause import read_clause, read_join_window, read_window
from tidegate.sql.distinct import deduplicated
from tidegate.sql.function import (
    has_aggregate,
    refuse_unknown,
    unknown_aggregate,
)
from tidegate.sql.group import Grouping
from tidegate.sql.over.named_window import without_names
from tidegate.sql.over.over import has_over, ranks_tuples, refuse_over_groups, with_over
from tidegate.sql.over.rank import SUBQUERY_RANK, first_rows, refuse_partitions
from tidegate.sql.relation.asof import asof_relations, refuse_window
from tidegate.sql.relation.catalog import Catalog, Known, inside
from tidegate.sql.relation.join import join_relations, refuse_aggregate
from tidegate.sql.relation.relation import Relation
from tidegate.sql.relation.table_join import join_table
from tidegate.sql.relation.trim import trimmed
from tidegate.sql.relation.unnest import list_of_select, lists_of_from, unnested
from tidegate.sql.scope import PairScope, Scope
from tidegate.sql.script import Create, Script, read_script
from tidegate.sql.select import (
    limit_rows,
    order_keys,
    plain_group,
    refuse_aliases,
    select_items,
    where_filter,
    without_aggregate,
)
from tidegate.sql.syntax import JoinedStreams, QueryWith, StreamWindow

T = TypeVar("T", bound=exp.Expression)

__all__ = ["Create", "Script", "bind", "read_script"]


@nested
def bind(script: Script, streams: Mapping[str, Known]) -> tuple[Output, ...]:
    """The checked logical plans of a script's outputs over these streams.

    A stream may be a node, that is, the result of another query. Mistakes are QueryErrors.
    """
    catalog = Catalog.of(script, streams, _bind_query)
    outputs = []
    for target in script.outputs:
        with inside(target.name and f"INSERT INTO {target.name}"):
            node = _bind_query(catalog, target.tree)
            outputs.append(Output(target.name, node, catalog.named))
    return tuple(outputs)


def _bind_query(catalog: Catalog, tree: exp.Expression) -> Node:
    return _Binder(catalog, {}).query(tree)


def _after_union(clause: Clause) -> QueryError:
    return QueryError(
        clause.where,
        "is for one SELECT",
        "a UNION ALL",
        "Write it where the SELECT is that it is for: SELECT * FROM (SELECT ... WITH ...) UNION "
        "ALL ...",
    )


@dataclass(frozen=True)
class _Binder:
    catalog: Catalog
    named: Mapping[str, _Named]

    def query(self, tree: exp.Expression) -> Node:
        if with_ := tree.args.get("with_"):
            binder = self._with(with_)
            node = binder.query(_without(tree, "with_"))
            for cte in with_.expressions:
                binder.named[cte.alias.lower()].check()
            return node
        if isinstance(tree, QueryWith):
            clauses = [read_clause(c) for c in tree.expressions]
            single = [clause for clause in clauses if not clause.whole]
            if single and isinstance(tree.this, exp.SetOperation):
                raise _after_union(single[0])
            return reduce(lambda node, clause: clause.put(node), clauses, self.query(tree.this))
        if isinstance(tree, exp.Subquery):
            return self._ordered_stateless(self.query(tree.this), tree)
        if isinstance(tree, exp.SetOperation):
            return self._ordered_stateless(self._union(tree), tree)
        if isinstance(tree, exp.Select):
            return self._select(tree)
        raise QueryError("SQL", "a query must be a SELECT", tree.sql(dialect="tidegate")[:60])

    def _with(self, with_: exp.With) -> _Binder:
        binder, known = self, set[str]()
        for cte in with_.expressions:
            if cte.alias.lower() in known:
                remedy = "Give one of the queries another name."
                raise QueryError("WITH", "a name can be used once", f"{cte.alias} twice", remedy)
            known.add(cte.alias.lower())
            one = _Named(cte.alias, cte.this, binder, tuple(c.name for c in _alias_columns(cte)))
            binder = replace(binder, named={**binder.named, cte.alias.lower(): one})
        return binder

    def _union(self, tree: exp.SetOperation) -> Union:
        inputs: list[Node] = []
        for side in _sides_of(tree):
            node = self.query(side)
            inputs.extend(node.inputs if isinstance(node, Union) else (node,))
        return Union(tuple(inputs))

    def _ordered_stateless(self, node: Node, tree: exp.Expression) -> Node:
        order, limit = tree.args.get("order"), tree.args.get("limit")
        if order is None and limit is None:
            return node
        items = tuple((n, column(n)) for n in node.names)
        scope = Scope(None, node.names)
        keys = order_keys(order, items, scope)
        if not node.windowed:
            refuse_partitions(tree)
        return ordered(node, keys, *first_rows(tree, keys, items, scope, lambda e, _: e))

    def _select(self, tree: exp.Select) -> Node:
        tree, lists = lists_of_from(_distinct_as_group(without_names(tree)))
        tree, exploded = list_of_select(tree)
        from_ = tree.args.get("from_")
        if from_ is None:
            raise QueryError(
                "SELECT",
                "needs FROM and a stream",
                tree.sql(dialect="tidegate", comments=False)[:60],
                "Write for example SELECT route FROM rides",
            )
        relation = self._joined(from_.this, tree.args.get("joins") or ())
        if not lists and not exploded:
            relation = trimmed(relation, tree)
        relation = unnested(relation, lists)
        scope = relation.scope
        node = relation.node
        if where := tree.args.get("where"):
            condition = without_aggregate(scope.plain(where.this, "WHERE"))
            refuse_aliases(condition, tree, node.names)
            node = where_filter(node, condition)
        if exploded:
            relation = unnested(replace(relation, node=node), exploded)
            scope, node = relation.scope, relation.node
        items = select_items(tree, scope, node)
        node = deduplicated(tree, relation, node, items)
        qualify = tree.args.get("qualify")
        if tree.args.get("group") or relation.window is not None:
            refuse_over_groups(items)
        elif has_over(items) or (qualify is not None and ranks_tuples(node)):
            kept = scope.plain(qualify.this, "QUALIFY") if qualify is not None else None
            node, items = with_over(node, items, kept)
            tree = _without(tree, "qualify")
        clauses = [tree.args.get(c) for c in ("having", "order")]
        for _, item in items:
            refuse_unknown(item)
        if tree.args.get("group") or any(
            has_aggregate(e) for e in (*(e for _, e in items), *(c for c in clauses if c))
        ):
            if relation.pair is not None and relation.window is None:
                raise refuse_aggregate(tree)
            return _aggregate(tree, relation, node, items)
        if relation.window is not None:
            for _, item in items:
                if unknown := item.find(exp.Anonymous):
                    raise unknown_aggregate(unknown.name.upper(), "SELECT")
            raise QueryError(
                f"[{relation.window}]",
                "a window needs an aggregate in the select list, or GROUP BY",
                tree.sql(dialect="tidegate", comments=False)[:60],
                "Leave the window out, or add for example COUNT(*).",
            )
        return _stateless(tree, scope, node, items)

    def _table(self, tree: exp.Expression) -> TableDef | None:
        """The table on the right side of a join; None if it is a stream."""
        windowed = isinstance(tree, StreamWindow)
        named = tree.this if windowed else tree
        if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
            return None
        name = ".".join(p.name for p in named.parts)
        table = None if name.lower() in self.named else self.catalog.table(name)
        if table is not None and windowed:
            raise QueryError(
                "JOIN",
                "a table has no window, because its rows have no event time",
                _short_text(tree),
                f"Write JOIN {name} ON ...",
            )
        return table

    def _joined(self, first: exp.Expression, joins: Sequence[exp.Join]) -> Relation:
        """FROM and its joins, from left to right."""
        tables = [self._table(join.this) for join in joins]
        if None not in tables:
            relation = self._relation(first)
        else:
            relation = self._side(first)
        asof = [join.method.upper() == "ASOF" for join in joins]
        reached = [not near for near, table in zip(asof, tables, strict=True) if table is None]
        if relation.reach is not None and not any(reached):
            raise refuse_window(relation)
        for near, join, table in zip(asof, joins, tables, strict=True):
            if table is not None:
                named = (join.this.alias_or_name, _short_text(join.this))
                relation = join_table(join, relation, table, *named)
                continue
            bound = asof_relations if near else join_relations
            relation = bound(join, relation, self._side(join.this))
        return replace(relation, reach=None)

    def _side(self, tree: exp.Expression) -> Relation:
        if isinstance(tree, StreamWindow):
            return replace(self._relation(tree.this), reach=read_join_window(tree))
        return self._relation(tree)

    def _relation(self, tree: exp.Expression) -> Relation:
        if isinstance(tree, StreamWindow):
            return replace(self._relation(tree.this), window=read_window(tree))
        text = _short_text(tree)
        alias = tree.alias or None
        if isinstance(tree, exp.Subquery) and isinstance(tree.this, JoinedStreams):
            return self._parenthesised(tree, alias)
        if isinstance(tree, exp.Subquery):
            return Relation(self.query(tree), alias, None, text)
        if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
            raise QueryError(
                "FROM",
                "must name a stream or hold a subquery",
                text,
                "Write CREATE STREAM name FROM 'rides.csv' TIME ts; and FROM name.",
            )
        name = ".".join(p.name for p in tree.parts)
        if name.lower() in self.named:
            return Relation(self.named[name.lower()].node, alias or name, None, text)
        return Relation(self.catalog.node(name), alias or name, None, text)

    def _parenthesised(self, tree: exp.Subquery, alias: str | None) -> Relation:
        if alias is not None:
            raise QueryError(
                "FROM",
                "streams that are joined in parentheses keep their own names",
                f"(...) AS {alias}",
                f"Leave {alias} out, or write (SELECT ... FROM ...) AS {alias}.",
            )
        return self._joined(tree.this.this, tree.this.args["joins"])


@dataclass(frozen=True)
class _Named:
    """A query of WITH, which sees the queries before it; bound once, however often it is read."""

    name: str
    tree: exp.Expression
    before: _Binder
    columns: tuple[str, ...] = ()

    @cached_property
    def node(self) -> Node:
        node = self._bound()
        self.before.catalog.parts.setdefault(self.name, node)
        return node

    def check(self) -> None:
        """Refuse mistakes in it also where nothing reads it."""
        if "node" not in vars(self):
            self._bound()

    def _bound(self) -> Node:
        node = self.before.query(self.tree)
        held = data_names(node)
        if not self.columns:
            return node
        if len(self.columns) != len(held):
            raise QueryError(
                "WITH",
                f"the list of columns must name each of the {len(held)} that the query has",
                ", ".join(self.columns),
            )
        return project(node, [(n, column(c)) for n, c in zip(self.columns, held)])


def _sides_of(tree: exp.SetOperation) -> list[exp.Expression]:
    """The sides of UNION ALL in order."""
    sides: list[exp.Expression] = []
    left: exp.Expression = tree
    # A loop: thousands of sides are a tree of that depth, which leans to the left.
    while isinstance(left, exp.SetOperation) and (left is tree or _is_bare(left)):
        sides.append(left.expression)
        left = left.this
    return [left, *reversed(sides)]


def _is_bare(tree: exp.Expression) -> bool:
    return not any(tree.args.get(clause) for clause in ("with_", "order", "limit"))


def _alias_columns(tree: exp.Expression) -> Sequence[exp.Identifier]:
    alias = tree.args.get("alias")
    return alias.args.get("columns") or () if isinstance(alias, exp.TableAlias) else ()


def _distinct_as_group(tree: exp.Select) -> exp.Select:
    """Rewrites SELECT DISTINCT over a window as a GROUP BY of its columns."""
    distinct, from_ = tree.args.get("distinct"), tree.args.get("from_")
    windowed = from_ is not None and isinstance(from_.this, StreamWindow)
    if not distinct or distinct.args.get("on"):
        return tree
    if any(e.is_star for e in tree.expressions):
        raise QueryError("SELECT DISTINCT", "the columns must be listed", "*", "List the columns.")
    if not windowed or tree.args.get("joins"):
        raise QueryError(
            "SELECT",
            "rows can be distinct in a window only",
            "DISTINCT",
            "Write a window after the stream or the subquery in FROM, as [RANGE 1 HOUR].",
        )
    if tree.args.get("group") or any(has_aggregate(e) for e in tree.expressions):
        raise QueryError(
            "SELECT", "the rows of groups are not made distinct yet", "DISTINCT", NO_WAY
        )
    grouped = tree.copy()
    grouped.set("distinct", None)
    ordinals = [exp.Literal.number(i + 1) for i in range(len(tree.expressions))]
    grouped.set("group", exp.Group(expressions=ordinals))
    return grouped


def _short_text(tree: exp.Expression) -> str:
    """A relation for messages; a long subquery is abbreviated."""
    parts = sum(1 for _ in islice(tree.walk(), 40)) if isinstance(tree, exp.Subquery) else 0
    text = "(...)" if parts == 40 else tree.sql(dialect="tidegate", comments=False)
    return text if parts == 0 or len(text) < 40 else "(...)"


def _aggregate(
    tree: exp.Select, relation: Relation, child: Node, items: tuple[NamedExpr, ...]
) -> Node:
    scope = relation.scope
    if relation.window is None:
        raise QueryError(
            "SELECT",
            "an aggregate needs a window",
            f"FROM {relation.text} without one",
            f"Write FROM {relation.text} [RANGE 15 MINUTES SLIDE 5 MINUTES], or [ROWS 100].",
        )
    group = Grouping(child.names, items)
    keys = tree.args.get("group")
    group.add_keys(None if keys is None else plain_group(keys, scope))
    outputs = tuple((name, group.rewrite(e, "SELECT")) for name, e in items)
    having = None
    if clause := tree.args.get("having"):
        plain = group.with_aliases(scope.plain(clause.this, "HAVING"), columns_first=True)
        having = group.rewrite(plain, "HAVING")

    def resolve(expression: exp.Expression, where: str) -> exp.Expression:
        return group.rewrite(group.with_aliases(expression, False), where)

    order = tuple(
        replace(o, expression=resolve(o.expression, "ORDER BY"))
        for o in order_keys(tree.args.get("order"), items, scope)
    )
    if tree.args.get("qualify"):
        relation.window.check(Use.ORDER, "QUALIFY", SUBQUERY_RANK)
    limit, ranked = first_rows(tree, order, items, scope, resolve)
    node: Node = having_over(
        group.aggregate(child, relation.window),
        conjuncts(having) if having is not None else (),
    )
    if order or limit is not None or ranked is not None:
        node = Top(node, order, limit, ranked)
    return project(node, outputs)


def _stateless(
    tree: exp.Select, scope: Scope | PairScope, child: Node, items: tuple[NamedExpr, ...]
) -> Node:
    node = child
    if clause := tree.args.get("having"):
        raise QueryError(
            "HAVING",
            "needs an aggregate",
            clause.this.sql(dialect="spark", comments=False),
            "Write the condition in WHERE.",
        )
    if not node.windowed:
        refuse_partitions(tree)
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if order is not None or limit is not None or tree.args.get("qualify"):
        aliases = dict(items)
        keys = tuple(
            replace(o, expression=_through(o.expression, aliases))
            for o in order_keys(order, items, scope)
        )
        if node.windowed:
            first = first_rows(tree, keys, items, scope, lambda e, _: _through(e, aliases))
            return project(ordered(node, keys, *first), items)
        ordered(node, keys, None)
        return ordered(project(node, items), (), limit_rows(limit))
    return project(node, items)


def _through(expression: exp.Expression, aliases: Mapping[str, exp.Expression]) -> exp.Expression:
    if not isinstance(expression, exp.Column):
        return expression
    return aliases.get(expression.name, expression)


def _without(tree: T, clause: str) -> T:
    bare = tree.copy()
    bare.set(clause, None)
    return bare
