"""Which parts of a syntax tree act. Any other part that is written is refused, with its place.

sqlglot's parser reads the SQL of some thirty databases, and a part that nothing reads would be lost
without a word. So `ACTS` lists, for every class of syntax that is accepted, the slots that binding
or the kernels read. A class that is not listed is an expression for Spark: there a slot acts if the
text that Spark gets is another one without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import Token, exp

from tidegate.errors import NO_WAY, QueryError, UnavailableError, UserError
from tidegate.query.form import FORMS
from tidegate.query.spelling import sql_text
from tidegate.sql import refusal
from tidegate.sql.refusal import PROCESS, Refusal
from tidegate.sql.syntax import CLASSES, InsertInto

Places = Mapping[int, tuple[exp.Expr, tuple[Sequence[Token], int]]]
"""By the id of a node: the node, its statement's tokens, and how many it was complete after."""

_NONE = object()

_ONE, _TWO = ("this",), ("this", "expression")


ACTS: dict[type[exp.Expr], tuple[str, ...]] = {
    **{kind: tuple(kind.arg_types) for kind in CLASSES},
    InsertInto: ("this", "query"),
    exp.Select: (
        *("expressions", "from_", "where", "group", "having", "order", "limit", "joins", "with_"),
        "distinct",
    ),
    exp.Subquery: ("this", "alias", "order", "limit"),
    exp.Union: ("this", "expression", "with_", "order", "limit"),
    exp.From: _ONE,
    exp.Where: _ONE,
    exp.Having: _ONE,
    exp.Join: ("this", "on", "using", "kind", "method"),
    exp.Group: ("expressions", "all"),
    exp.Order: ("expressions",),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression", "limit_options"),
    exp.Fetch: ("count", "limit_options"),
    exp.LimitOptions: (),
    exp.With: ("expressions",),
    exp.CTE: ("this", "alias"),
    exp.TableAlias: ("this", "columns"),
    exp.Table: ("this", "alias", "db", "catalog"),
    exp.Distinct: ("expressions",),
    exp.Star: ("except_", "replace", "rename"),
    exp.Schema: ("expressions",),
    exp.ColumnDef: ("this", "kind"),
    exp.DataType: ("this", "expressions"),
    exp.DataTypeParam: _ONE,
    exp.Tuple: ("expressions",),
    exp.Identifier: ("this", "quoted"),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Alias: ("this", "alias"),
    exp.Paren: _ONE,
    exp.Literal: ("this", "is_string"),
    exp.Boolean: _ONE,
    exp.Null: (),
    exp.Var: _ONE,
    exp.Anonymous: ("this", "expressions"),
    exp.Dot: _TWO,
    **{kind: slots for kind, (_, slots) in FORMS.items()},
    exp.DateDiff: (*_TWO, "unit"),
    exp.Extract: _TWO,
    exp.TimestampTrunc: ("this", "unit"),
    exp.DateTrunc: ("this", "unit"),
    exp.Trim: ("this", "expression", "position"),
    exp.TsOrDsAdd: ("this", "expression", "unit"),
    exp.TsOrDsToDate: ("this", "format"),
    exp.Interval: ("this", "unit"),
    exp.IntervalSpan: _TWO,
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to", "safe"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Between: ("this", "low", "high", "symmetric"),
    exp.In: ("this", "expressions", "query"),
    exp.Like: (*_TWO, "negate"),
    exp.ILike: (*_TWO, "negate"),
    **dict.fromkeys((exp.Neg, exp.Not, exp.BitwiseNot), _ONE),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _TWO),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ, exp.EqualNull, exp.Is, exp.Escape), _TWO),
    **dict.fromkeys((exp.And, exp.Or, exp.Add, exp.Sub, exp.Mul, exp.Div), _TWO),
    **dict.fromkeys((exp.Mod, exp.IntDiv, exp.DPipe), _TWO),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _TWO),
    **dict.fromkeys((exp.Avg, exp.Sum, exp.Median, exp.Stddev, exp.Variance, exp.CountIf), _ONE),
    **dict.fromkeys((exp.First, exp.Last, exp.FirstValue, exp.LastValue), _ONE),
    **dict.fromkeys((exp.LogicalAnd, exp.LogicalOr), _ONE),
    **dict.fromkeys((exp.Count, exp.Max, exp.Min), ("this", "expressions")),
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), _TWO),
    exp.ApproxDistinct: ("this", "accuracy"),
    exp.Quantile: ("this", "quantile"),
    exp.Filter: _TWO,
    exp.RespectNulls: _ONE,
}
"""By class, the slots that are read."""

MARKS: dict[tuple[type[exp.Expr], str], object] = {
    (exp.DataType, "nested"): True,
    (exp.Interval, "fraction_in_string"): True,
    (exp.LimitOptions, "rows"): True,
    (exp.Fetch, "direction"): "FIRST",
    (exp.Div, "safe"): True,
    (exp.Concat, "safe"): True,
    (exp.ConcatWs, "safe"): True,
    (exp.ConcatWs, "flatten"): True,
    (exp.Count, "big_int"): True,
    (exp.Greatest, "ignore_nulls"): True,
    (exp.Least, "ignore_nulls"): True,
    (exp.TsOrDsToDate, "safe"): True,
    (exp.Bracket, "offset"): 1,
    (exp.ArrayConcat, "null_propagation"): True,
    (exp.ArrayInsert, "offset"): 1,
    (exp.ArrayRemove, "null_propagation"): True,
    (exp.ArraySlice, "is_length"): True,
    (exp.RegexpExtract, "null_if_pos_overflow"): True,
}
"""What changes nothing: set by the parser as what Spark means, or written and of no meaning."""

_TIME_FORMAT = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"

DEFAULTS: dict[tuple[type[exp.Expr], str], exp.Expr] = {
    (exp.RegexpExtract, "group"): exp.Literal.number(1),
    (exp.RegexpExtractAll, "group"): exp.Literal.number(1),
    (exp.StrToUnix, "format"): exp.Literal.string(_TIME_FORMAT),
    (exp.UnixToStr, "format"): exp.Literal.string(_TIME_FORMAT),
    (exp.ArraySort, "nulls_first"): exp.false(),
    (exp.Initcap, "expression"): exp.Literal.string(" "),
}
"""Arguments that mean the same when they are left out, so that Spark does not get them."""


def refuse_leftovers(tree: exp.Expr, text: str, places: Places) -> None:
    """Refuse a statement of the script `text` that has a part which nothing reads."""
    for node in tree.walk():
        slot = None
        found = refusal.of_node(node)
        if found is None and (slot := unread(node)) is not None:
            found = refusal.of_slot(node, slot)
        if found is not None:
            raise _refused(found, node, slot, text, places)


def unread(node: exp.Expr) -> str | None:
    """The first slot of a node that is written and that nothing reads."""
    acts = ACTS.get(type(node))
    for slot, value in node.args.items():
        if value is None or value is False or value in ([], ""):
            continue
        if MARKS.get((type(node), slot), _NONE) == value:
            continue
        if not (_reaches_spark(node, slot) if acts is None else slot in acts):
            return slot
    return None


def _reaches_spark(node: exp.Expr, slot: str) -> bool:
    """Whether Spark gets another text without a slot."""
    if DEFAULTS.get((type(node), slot)) == node.args[slot]:
        return True
    without = node.copy()
    without.set(slot, None)
    text = sql_text(node, "spark")
    return text != "" and text != sql_text(without, "spark")


def _refused(
    found: Refusal, node: exp.Expr, slot: str | None, text: str, places: Places
) -> UserError:
    """The error, with the line and column of the words that are refused."""
    value: Any = node if slot is None else node.args[slot]
    value = value[0] if isinstance(value, list) else value
    tokens, end = next((places[id(n)][1] for n in (value, node) if id(n) in places), ((), 0))
    read = tokens[:end]
    written = found.written(node) if callable(found.written) else found.written
    remedy = found.remedy(node) if callable(found.remedy) else found.remedy
    where = found.where
    if (token := _last(read, written.split()[0])) is not None:
        where = f"SQL line {token.line}, column {max(1, token.col - len(token.text) + 1)}"
    elif not isinstance(node, exp.Query) and (at := _first(node)):
        where = f"SQL line {at['line']}, column {max(1, at['col'] - at['end'] + at['start'])}"
        if isinstance(node, exp.Func) and "start" in node.meta and end < len(tokens):
            written = text[node.meta["start"] : tokens[end].end + 1]
    kind = UnavailableError if remedy in (NO_WAY, PROCESS) else QueryError
    return kind(where, found.why, written, remedy)


def _first(node: exp.Expr) -> dict[str, Any] | None:
    """Where the first name in a node stands, as far as the parser says it."""
    return next((n.meta for n in node.walk() if "line" in n.meta), None)


def _last(read: Sequence[Token], word: str) -> Token | None:
    """The last token that begins with a word."""
    return next((t for t in reversed(read) if t.text.upper().split()[:1] == [word]), None)
