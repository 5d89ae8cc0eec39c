"""Splits a parsed aggregate call into its arguments, DISTINCT, ORDER BY and FILTER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from tidegate.operate.aggregate.parameter import Way
from tidegate.query.name import as_expression, conjuncts
from tidegate.query.node.node import Order

WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
"""Nodes that may be wrapped around a call."""

SKIPPERS = (exp.Lag, exp.Lead, exp.NthValue)
"""Functions OVER that accept IGNORE NULLS, besides aggregates that skip NULL."""


@dataclass
class WrittenCall:
    """The parts of a call and its wrappers; `given` has no star, `order` has no ASC.

    IGNORE NULLS becomes a condition like those of FILTER.
    """

    call: exp.Expr
    given: tuple[exp.Expression, ...] = ()
    distinct: bool = False
    order: list[tuple[exp.Expression, Way]] = field(default_factory=list)
    conditions: list[exp.Expression] = field(default_factory=list)

    @staticmethod
    def of(node: exp.Expr) -> WrittenCall:
        """The parts of a call with all its wrappers."""
        around = []
        while isinstance(node, WRAPPERS):
            around.append(node)
            node = node.this
        written = WrittenCall(node)
        written._read_arguments()
        for wrapper in around:
            if isinstance(wrapper, exp.Filter):
                written.conditions += conjuncts(wrapper.expression.this)
            elif isinstance(wrapper, exp.WithinGroup):
                written._read_order(wrapper.expression.expressions)
            elif isinstance(wrapper, exp.IgnoreNulls) and written.given:
                null = exp.Is(this=exp.paren(written.given[0]), expression=exp.null())
                written.conditions.append(exp.not_(null))
        return written

    def _read_arguments(self) -> None:
        node = self.call
        slots = ("expressions",) if isinstance(node, exp.Anonymous) else tuple(node.arg_types)
        found: list[exp.Expression] = []
        for slot in slots:
            value = node.args.get(slot)
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, exp.Order):
                    self._read_order(part.expressions)
                    part = part.this
                if isinstance(part, exp.Distinct):
                    self.distinct = True
                    found += part.expressions
                elif isinstance(part, exp.Expression) and not isinstance(part, exp.Star):
                    found.append(part)
        self.given = tuple(found)

    def _read_order(self, keys: Sequence[exp.Expr]) -> None:
        for key in keys:
            args = key.args if isinstance(key, exp.Ordered) else {}
            by = as_expression(key.this if isinstance(key, exp.Ordered) else key)
            order = Order(by, bool(args.get("desc")), args.get("nulls_first"))
            self.order.append((by, Way(order.descending, order.nulls_lead)))
