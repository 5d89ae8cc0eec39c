"""Refuses every part of a parsed statement that nothing reads, with its place.

sqlglot's parser reads the SQL of some thirty databases, and a part that nothing reads would be
ignored silently. So `ACTS` lists, for every accepted class of syntax, the slots that binding or the
kernels read. A class that is not listed is an expression for Spark; there a slot counts if Spark's
text would differ without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import Token, exp

from tidegate.errors import NO_WAY, QueryError, UnavailableError, UserError
from tidegate.query.surface.advice import Advice
from tidegate.query.types.form import FORMS
from tidegate.query.types.spelling import sql_text
from tidegate.sql.advice import refusal
from tidegate.sql.advice.refusal import PROCESS
from tidegate.sql.advice.slip import place_of
from tidegate.sql.syntax import CLASSES, InsertInto

Places = Mapping[int, tuple[exp.Expr, tuple[Sequence[Token], int]]]
"""For the id of a node: the node, its statement's tokens, and how many of them were read when it
was complete.
"""

_NONE = object()

_SLOTS = """
this: From Where Having Qualify DataTypeParam Paren Boolean Var Neg Not BitwiseNot RespectNulls \
Avg Sum Median Stddev Variance CountIf First Last FirstValue LastValue LogicalAnd LogicalOr \
IgnoreNulls
this expression: Dot Extract IntervalSpan Filter EQ NEQ LT LTE GT GTE NullSafeEQ NullSafeNEQ \
EqualNull WithinGroup Is Escape And Or Add Sub Mul Div Mod IntDiv DPipe BitwiseAnd BitwiseOr \
BitwiseXor
expressions: With Schema Tuple GroupingSets Rollup Cube Grouping GroupingId
this partition_by order spec alias: Window
kind start start_side end: WindowSpec
this offset default: Lag Lead
this offset: NthValue
expressions on: Distinct
this expressions: Order DataType Anonymous Count Max Min
this unit: TimestampTrunc DateTrunc Interval
this expression negate: Like ILike
this alias: CTE Alias
expressions from_ where group having order limit joins laterals with_ distinct qualify windows: \
Select
this alias order limit: Subquery
this expression with_ order limit: Union
this on using kind method side match_condition: Join
expressions all rollup cube grouping_sets: Group
this desc nulls_first: Ordered
expression expressions limit_options: Limit
count limit_options: Fetch
this columns: TableAlias
this: Explode Posexplode PosexplodeOuter
this expressions: Aliases
this alias outer: Lateral
expressions alias offset: Unnest
this alias db catalog: Table
except_ replace rename: Star
this kind: ColumnDef
this quoted: Identifier
this table db catalog: Column
this is_string: Literal
this expression unit: DateDiff TsOrDsAdd
this expression position: Trim
this format: TsOrDsToDate
this to: Cast
this to safe: TryCast
this ifs default: Case
this true false: If
this low high symmetric: Between
this expressions query: In
this accuracy: ApproxDistinct
this quantile: Quantile
"""

ACTS: dict[type[exp.Expr], tuple[str, ...]] = {
    **{kind: tuple(kind.arg_types) for kind in CLASSES},
    InsertInto: ("this", "query"),
    exp.LimitOptions: (),
    exp.Null: (),
    **{kind: slots for kind, (_, slots) in FORMS.items()},
    **{
        getattr(exp, name): tuple(slots.split())
        for slots, _, names in (line.partition(": ") for line in _SLOTS.strip().splitlines())
        for name in names.split()
    },
}
"""The slots that are read, by class."""

_TRUE = (
    "DataType.nested Interval.fraction_in_string LimitOptions.rows Div.safe Concat.safe "
    "ConcatWs.safe ConcatWs.flatten Count.big_int Greatest.ignore_nulls Least.ignore_nulls "
    "Lateral.view TsOrDsToDate.safe ArrayConcat.null_propagation ArrayRemove.null_propagation "
    "ArraySlice.is_length RegexpExtract.null_if_pos_overflow"
)
MARKS: dict[tuple[type[exp.Expr], str], object] = {
    **{(getattr(exp, kind), slot): True for kind, slot in (m.split(".") for m in _TRUE.split())},
    (exp.Fetch, "direction"): "FIRST",
    (exp.Window, "over"): "OVER",
    (exp.Bracket, "offset"): 1,
    (exp.ArrayInsert, "offset"): 1,
}
"""Slots without effect: set by the parser to Spark's meaning, or written but meaningless."""

_TIME_FORMAT = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"

DEFAULTS: dict[tuple[type[exp.Expr], str], exp.Expr] = {
    (exp.RegexpExtract, "group"): exp.Literal.number(1),
    (exp.RegexpExtractAll, "group"): exp.Literal.number(1),
    (exp.StrToUnix, "format"): exp.Literal.string(_TIME_FORMAT),
    (exp.UnixToStr, "format"): exp.Literal.string(_TIME_FORMAT),
    (exp.ArraySort, "nulls_first"): exp.false(),
    (exp.Initcap, "expression"): exp.Literal.string(" "),
}
"""Arguments that equal the default, so that Spark's text omits them."""


def refuse_leftovers(tree: exp.Expr, text: str, places: Places) -> None:
    """Raises if a statement of the script `text` has a part that nothing reads."""
    for node in tree.walk():
        slot = None
        found = refusal.of_node(node)
        if found is None and (slot := unread(node)) is not None:
            found = refusal.of_slot(node, slot)
        if found is not None:
            raise _refused(found, node, slot, text, places)


def unread(node: exp.Expr) -> str | None:
    """The first slot of a node that is written but that nothing reads."""
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
    """Whether Spark's text would differ without a slot."""
    if DEFAULTS.get((type(node), slot)) == node.args[slot]:
        return True
    without = node.copy()
    without.set(slot, None)
    text = sql_text(node, "spark")
    return text != "" and text != sql_text(without, "spark")


def _refused(
    found: Advice, node: exp.Expr, slot: str | None, text: str, places: Places
) -> UserError:
    """The error, with line and column of the refused words."""
    value: Any = node if slot is None else node.args[slot]
    value = value[0] if isinstance(value, list) else value
    tokens, end = next((places[id(n)][1] for n in (value, node) if id(n) in places), ((), 0))
    read = tokens[:end]
    written, remedy = (refusal.filled(text, node) for text in (found.got, found.remedy))
    where = found.where or "SQL"
    if (token := _last(read, written.split()[0])) is not None:
        where = place_of(token)
    elif not isinstance(node, exp.Query) and (at := _first(node)):
        where = f"SQL line {at['line']}, column {max(1, at['col'] - at['end'] + at['start'])}"
        if isinstance(node, exp.Func) and "start" in node.meta and end < len(tokens):
            written = text[node.meta["start"] : tokens[end].end + 1]
    kind = UnavailableError if remedy in (NO_WAY, PROCESS) else QueryError
    return kind(where, found.why, written, remedy)


def _first(node: exp.Expr) -> dict[str, Any] | None:
    """The position of the first name in a node, if the parser recorded it."""
    return next((n.meta for n in node.walk() if "line" in n.meta), None)


def _last(read: Sequence[Token], word: str) -> Token | None:
    """The last token that begins with a word."""
    return next((t for t in reversed(read) if t.text.upper().split()[:1] == [word]), None)


def whole(name: str, build: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Wraps a builder of calls so that no argument is lost: if it would be, the call stays as
    written.

    An argument is lost if another value makes the same call, or gives Spark the same text.
    """

    def built(arguments: list[exp.Expr], **given: Any) -> exp.Expr:
        try:
            call = build(arguments, **given)
        except (ValueError, LookupError, AttributeError):  # too few for the builder
            return exp.Anonymous(this=name, expressions=arguments)
        kept = {id(node) for node in call.walk()}
        changed = [at for at, argument in enumerate(arguments) if id(argument) not in kept]
        if any(_lost(build, call, arguments, at, given) for at in changed) or unread(call):
            return exp.Anonymous(this=name, expressions=arguments)
        return call

    return built


def _lost(
    build: Callable[..., exp.Expr],
    call: exp.Expr,
    arguments: list[exp.Expr],
    at: int,
    given: dict[str, Any],
) -> bool:
    others = [a.copy() for a in arguments]
    flag = isinstance(others[at], exp.Boolean)
    others[at] = exp.Boolean(this=not others[at].this) if flag else exp.column("another")
    try:
        return build(others, **given) == call
    except Exception:
        return False
