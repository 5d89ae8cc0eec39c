"""Reads EXPLODE and UNNEST: in the select list, in FROM, and as LATERAL VIEW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.name import as_expression
from tidegate.query.node.node import Node
from tidegate.query.node.unnest import Unnest
from tidegate.sql.relation.relation import Relation
from tidegate.sql.scope import PairScope, Scope

GENERATORS = (exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.PosexplodeOuter)
_WITH_PLACE = (exp.Posexplode, exp.PosexplodeOuter)
_OUTER = (exp.ExplodeOuter, exp.PosexplodeOuter)


@dataclass(frozen=True)
class Unnesting:
    """One list to unnest: its expression, and the names of the added columns."""

    values: exp.Expression
    value: str
    position: str | None = None
    first: int = 0
    outer: bool = False

    def over(self, node: Node, scope: Scope | PairScope) -> Unnest:
        """The Unnest node over a relation."""
        values = scope.plain(self.values, "EXPLODE")
        return Unnest(node, values, self.value, self.position, self.first, self.outer)


def lists_of_from(tree: exp.Select) -> tuple[exp.Select, list[Unnesting]]:
    """The SELECT without the lists in FROM, and these lists."""
    joins, laterals = tree.args.get("joins") or [], tree.args.get("laterals") or []
    lists = [j for j in joins if isinstance(j.this, exp.Unnest | exp.Lateral)]
    if not lists and not laterals:
        return tree, []
    found = [_of_from(part) for part in (*(j.this for j in lists), *laterals)]
    rest = tree.copy()
    rest.set("joins", [j.copy() for j in joins if j not in lists])
    rest.set("laterals", None)
    aliases = {p.alias.lower() for p in (*(j.this for j in lists), *laterals) if p.alias}
    for node in rest.find_all(exp.Column):
        if node.table.lower() in aliases:
            node.set("table", None)
    return rest, found


def unnested(relation: Relation, lists: Sequence[Unnesting]) -> Relation:
    """The relation with each list unnested, one after the other."""
    for one in lists:
        if relation.pair is not None:
            raise QueryError(
                "FROM",
                "a list stands beside one stream",
                relation.text,
                "Join in a subquery, and write the list after it: FROM (SELECT ...) AS pairs "
                "CROSS JOIN UNNEST(tags) AS t(tag).",
            )
        relation = replace(relation, node=one.over(relation.node, relation.scope))
    return relation


def list_of_select(tree: exp.Select) -> tuple[exp.Select, list[Unnesting]]:
    """The SELECT with columns in place of EXPLODE in its list, and what it explodes."""
    written = [item for item in tree.expressions if isinstance(_call(item), GENERATORS)]
    if not written:
        return tree, []
    if len(written) > 1:
        raise QueryError(
            "SELECT",
            "can have one EXPLODE",
            str(len(written)),
            "Write the others in FROM: CROSS JOIN UNNEST(tags) AS t(tag).",
        )
    call = _call(written[0])
    names = _names(written[0], isinstance(call, _WITH_PLACE))
    hidden = [f"exploded {name}" for name in names]
    columns = [
        exp.alias_(exp.column(h, quoted=True), n, quoted=True) for h, n in zip(hidden, names)
    ]
    rest = tree.copy()
    items = [
        part
        for item, mine in zip(rest.expressions, tree.expressions, strict=True)
        for part in (columns if mine is written[0] else [item])
    ]
    rest.set("expressions", items)
    return rest, [_unnesting(call, hidden)]


def _call(item: exp.Expression) -> exp.Expression:
    return as_expression(item.this if isinstance(item, exp.Aliases) else item.unalias())


def _of_from(part: exp.Expression) -> Unnesting:
    names = [c.name for c in part.args["alias"].columns] if part.args.get("alias") else []
    if isinstance(part, exp.Unnest):
        if len(part.expressions) != 1:
            got = str(len(part.expressions))
            raise QueryError("UNNEST", "takes one list", got, "Write CROSS JOIN for each of them.")
        offset = part.args.get("offset")
        place = offset.name if isinstance(offset, exp.Expression) else None
        return Unnesting(part.expressions[0], names[0] if names else "col", place, first=1)
    call = as_expression(part.this)
    if not isinstance(call, GENERATORS):
        raise QueryError(
            "LATERAL",
            "must be EXPLODE or POSEXPLODE of a list",
            call.sql(dialect="spark")[:60],
            "Write LATERAL VIEW EXPLODE(tags) t AS tag.",
        )
    wanted = 2 if isinstance(call, _WITH_PLACE) else 1
    names = names or ["pos", "col"][-wanted:]
    _check_names(names, wanted)
    found = _unnesting(call, names)
    return replace(found, outer=found.outer or bool(part.args.get("outer")))


def _unnesting(call: exp.Expression, names: Sequence[str]) -> Unnesting:
    *place, value = names
    return Unnesting(call.this, value, place[0] if place else None, outer=isinstance(call, _OUTER))


def _names(item: exp.Expression, with_place: bool) -> list[str]:
    """The names that a select list item gives to the exploded columns."""
    wanted = 2 if with_place else 1
    if isinstance(item, exp.Aliases):
        names = [name.name for name in item.expressions]
    else:
        names = [item.alias] if item.alias else ["pos", "col"][-wanted:]
    _check_names(names, wanted)
    return names


def _check_names(names: Sequence[str], wanted: int) -> None:
    if len(names) != wanted:
        raise QueryError(
            "EXPLODE",
            "gives one column, POSEXPLODE two",
            f"{len(names)} name{'' if len(names) == 1 else 's'}",
            "Write EXPLODE(tags) AS tag, or POSEXPLODE(tags) AS (place, tag).",
        )
