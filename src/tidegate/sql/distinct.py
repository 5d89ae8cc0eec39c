"""DISTINCT ON (...) ... KEEP FIRST WITHIN d: parses, prints and binds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.generator import Generator

from tidegate.errors import QueryError
from tidegate.query.grammar import DurationValue, listed
from tidegate.query.name import NamedExpr
from tidegate.query.node.dedup import KEEPS, Dedup
from tidegate.query.node.node import Node
from tidegate.sql.function import has_aggregate
from tidegate.sql.group import positions
from tidegate.sql.piece import PieceParser
from tidegate.sql.relation.relation import Relation
from tidegate.sql.syntax import KeptOn

_KEEPS = tuple(keep.upper() for keep in KEEPS)


class KeepParser(PieceParser):
    """Parses KEEP after FROM and WHERE of a SELECT, or at its end."""

    def _parse_query_modifiers(self, this: Any) -> Any:
        this = super()._parse_query_modifiers(this)
        if isinstance(this, exp.Select) and self._at_keep():
            distinct: Any = this.args.get("distinct")
            if distinct is None or distinct.args.get("on") is None:
                self.raise_error("expected SELECT DISTINCT ON (...) before KEEP")
            distinct.set("on", self._parse_keep(distinct.args["on"]))
            this = super()._parse_query_modifiers(this)
        return this

    def _at_keep(self) -> bool:
        """Whether a KEEP clause begins here; KEEP alone may be a name."""
        words = [t.text.upper() for t in (self._curr, self._next) if t]
        return len(words) == 2 and words[0] == "KEEP" and words[1] in ("FIRST", "LAST")

    def _parse_keep(self, on: exp.Expr) -> KeptOn:
        self._expect("KEEP", "expected KEEP")
        kept = next((word for word in _KEEPS if self._match_text_seq(word)), None)
        if kept is None:
            self.raise_error(f"expected {listed(_KEEPS)} after KEEP")
        self._expect("WITHIN", f"expected WITHIN after KEEP {kept}")
        within = self._parse_duration()
        return self.expression(KeptOn(this=on, keep=exp.var(kept), within=within))


def keep_sql(to: Generator, query: exp.Expr) -> str:
    """KEEP, printed after the rest of its query."""
    distinct = query.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    if not isinstance(on, KeptOn):
        return ""
    return to.seg(f"KEEP {to.sql(on, 'keep')} WITHIN {to.sql(on, 'within')}")


KEPT_SQL: dict[type[exp.Expr], Any] = {KeptOn: lambda to, node: to.sql(node, "this")}
"""How the columns of DISTINCT ON are printed."""


def deduplicated(
    tree: exp.Select, relation: Relation, node: Node, items: Sequence[NamedExpr]
) -> Node:
    """Applies DISTINCT ON, after WHERE and before the select list.

    A number stands for an item of the select list.
    """
    distinct = tree.args.get("distinct")
    on = distinct.args.get("on") if distinct is not None else None
    if on is None:
        return node
    if not isinstance(on, KeptOn):
        raise QueryError(
            "DISTINCT ON",
            "must say for how long a key is remembered",
            "no KEEP",
            "Write at the end KEEP FIRST WITHIN '1 hour'.",
        )
    if relation.window is not None or tree.args.get("group") or _aggregates(tree):
        raise QueryError(
            "DISTINCT ON",
            "takes the tuples of a stream, or the rows of a subquery",
            "a window or an aggregate beside it",
            "Write the aggregate in a subquery: SELECT DISTINCT ON (id) ... FROM (SELECT ...).",
        )
    listed_on = on.this.expressions if isinstance(on.this, exp.Tuple) else [on.this]
    keys = [relation.scope.plain(key, "DISTINCT ON") for key in listed_on]
    keys = positions(keys, items, "DISTINCT ON")
    within_us = DurationValue().read(on.args["within"], "WITHIN")
    return Dedup(node, tuple(keys), within_us, on.args["keep"].name.lower())


def _aggregates(tree: exp.Select) -> bool:
    return any(has_aggregate(e) for e in tree.expressions)
