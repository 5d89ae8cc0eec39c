"""Binds the joins of a prefix to tables: which rows an index finds, and what is asked of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.expression.tree import Call, Expr, columns_of
from tidegate.operate.join.spec import EQUAL, PairInterval
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.plan.fold import fold
from tidegate.plan.join.conjunct import Conjunct, intervals_of
from tidegate.plan.join.double import is_steady
from tidegate.plan.table.leaf import TableLeaf
from tidegate.query.binder import bind_predicate
from tidegate.query.name import conjuncts, expression_text

_EQUAL = ("eq", "null_safe_eq")


@dataclass(frozen=True)
class _Bound:
    """A table with its conditions as typed trees."""

    leaf: TableLeaf
    where: tuple[Expr, ...]
    conditions: tuple[Conjunct, ...]

    @property
    def read(self) -> set[str]:
        """The columns that it needs, of tuples and of the table."""
        exprs = (*self.where, *(c.expr for c in self.conditions))
        return {name for e in exprs for name in columns_of(e)}


def bound_lookups(
    leaves: Sequence[TableLeaf], types: Mapping[str, pa.DataType], after: Sequence[Expr]
) -> tuple[TableLookup, ...]:
    """The lookups of a prefix; `after` is what is evaluated over all of their columns.

    `types` are those of the input's columns; raises UnknownKernel for what only Spark can evaluate.
    """
    known, bound = dict(types), []
    for leaf in leaves:
        where = tuple(fold(bind_predicate(e, known, "WHERE")) for e in leaf.where)
        both = {**known, **leaf.types}
        parts = () if leaf.predicate is None else conjuncts(leaf.predicate)
        conditions = (
            Conjunct(fold(bind_predicate(part, both, "ON")), expression_text(part))
            for part in parts
        )
        bound.append(_Bound(leaf, where, tuple(conditions)))
        known = both
    needed = {name for e in after for name in columns_of(e)}
    found: list[TableLookup] = []
    for one in reversed(bound):
        found.append(_lookup(one, needed))
        needed |= one.read
    return tuple(reversed(found))


def _lookup(bound: _Bound, needed: Collection[str]) -> TableLookup:
    leaf = bound.leaf
    own = {name: column for column, name in leaf.names.items()}
    here = {n for c in bound.conditions for n in columns_of(c.expr)}
    keys = {c: key for c in bound.conditions if (key := _key(c, own)) is not None}
    ranges = (i for i in intervals_of(bound.conditions, here - set(own)) if i.kind != EQUAL)
    if leaf.table.valid_from is not None and not keys:
        raise QueryError(
            "ON",
            f"{leaf.table.where} has versions, so its key must be compared with =",
            ", ".join(c.text for c in bound.conditions) or "no condition",
            f"Write ON ... = {leaf.table.name}.{leaf.table.schema.names[0]}, with the column that "
            "its versions have in common.",
        )
    return TableLookup(
        table=leaf.table.name,
        kind=leaf.kind,
        where=bound.where,
        intervals=(*keys.values(), *ranges),
        rest=tuple(c.expr for c in bound.conditions if c not in keys),
        reads=tuple((name, own[name]) for name in own if name in here or name in needed),
        adds=tuple(name for name in own if name in needed),
        valid_from=leaf.table.valid_from,
    )


def _key(condition: Conjunct, own: Collection[str]) -> PairInterval | None:
    """An equality that finds rows of the table, and need not be asked again; None for others.

    What its column is compared with may be a constant.
    """
    expr = condition.expr
    if not isinstance(expr, Call) or expr.op not in _EQUAL or not all(map(is_steady, expr.args)):
        return None
    table = [set(columns_of(arg)) & set(own) for arg in expr.args]
    whole = [bool(read) and read == set(columns_of(arg)) for read, arg in zip(table, expr.args)]
    for side, other in ((0, 1), (1, 0)):
        if whole[side] and not table[other] and not pa.types.is_nested(expr.args[side].type):
            values = expr.args[other], None, None, expr.args[side], None, None
            return PairInterval(EQUAL, condition.text, *values, expr.op == "null_safe_eq")
    return None
