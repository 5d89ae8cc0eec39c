"""Lowers a join: the node and the stateless nodes above it become prefixes and a StreamJoin.

A condition on one side becomes part of its prefixes, unless that side's window counts tuples. All
other conditions are the predicate. An expression without a kernel must use one side only; the
prefix of that side evaluates it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tidegate.expression.tree import Literal
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.operator import StreamJoin, qualified_name
from tidegate.operate.join.spec import EQUAL, SCAN, JoinSpec, PairFunction, PairInterval
from tidegate.plan.compatibility.dependence import Origin, state_lines
from tidegate.plan.compatibility.query_record import Record
from tidegate.plan.cut import Consumed, Unit
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.join.branch import disjunctions_of
from tidegate.plan.join.comparison import expected_of
from tidegate.plan.join.conjunct import Conjunct, intervals_of
from tidegate.plan.join.method import choose
from tidegate.plan.join.pair import PairColumns
from tidegate.plan.join.sample import sample_of
from tidegate.plan.join.shed import WholeSides, kept_sides
from tidegate.plan.join.side import BothSides, SideLowering
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.plan.suffix import Suffix
from tidegate.query.name import EVENT_TIME, NamedExpr, column, conjuncts, substitute
from tidegate.query.node.asof import AsOf
from tidegate.query.node.join import Join
from tidegate.query.unqualified import unqualified_columns


def lower_join(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of a join and of the stateless work above it.

    A condition above the join becomes part of its predicate if the join has only one reader.
    """
    join, choices = unit.base, context.choices
    assert isinstance(join, Join)
    shedding = kept_sides(join)
    kept = context.kept(StreamJoin.kind)
    front, refilters = context.front, shedding.refilters
    left, right = (SideLowering.of(join, side, front, kept, refilters) for side in (0, 1))
    above = _above(unit, join, BothSides(left, right, front), shedding)
    function = join.predicate if callable(join.predicate) else None
    for side in (left, right):
        side.take(above.used, whole=function is not None)
    prefixes = left.prefixes() + right.prefixes()
    cut, sides = len(left.leaves), (0,) * len(left.leaves) + (1,) * len(right.leaves)
    named, types = (left.physical | right.physical), (left.types | right.types)
    pairs = PairColumns(named | shedding.names, types | shedding.types, join.kind)
    bound = [(pairs.bound(e, where, predicate=True), e, where) for where, e in above.conditions]
    asked = [b for b in bound if not (isinstance(b[0], Literal) and b[0].value is True)]
    texts = tuple(e.sql(dialect="spark", comments=False) for _, e, _ in asked)
    parts = [Conjunct(b, t) for (b, _, _), t in zip(asked, texts, strict=True)]
    names = set(left.physical.values())
    intervals = intervals_of(parts, names, pairs.text)
    disjunctions = disjunctions_of(parts, names, pairs.text)
    rows = choices.rows if intervals or disjunctions else None
    sample = sample_of(prefixes[:cut], prefixes[cut:], context.streams, rows)
    shedding.check(intervals)
    together = shedding.together or _together(join, intervals)
    choice = choose(intervals, choices.join, sample, disjunctions, together)
    given = None if function is None else PairFunction(function, left.given, right.given)
    spec = JoinSpec(
        left=left.side(prefixes[0], shedding.columns(LEFT)),
        right=right.side(prefixes[cut], shedding.columns(RIGHT)),
        predicate=tuple(b for b, _, _ in asked),
        function=given,
        intervals=intervals,
        method=choice.method,
        index=choice.index,
        branches=choice.branches,
        kind=join.kind,
    )
    both_sides = prefixes[:cut], prefixes[cut:]
    expected = expected_of(spec, both_sides, context.streams, choices.rows, sample)
    operator = StreamJoin(
        spec=spec,
        sides=sides,
        routing=choice.routing,
        reasons=choice.reasons,
        conjuncts=texts,
        expected=expected.lines,
        warned=() if choices.join.method == SCAN else expected.warnings,
        sieve=shedding.sieve(spec),
        grid=choice.grid,
    )
    shown = left.shown | right.shown
    windows = f"{left.extent.meaning} {right.extent.meaning}"
    lines = [f"{join.kind.summary} {windows} {sides}", *shedding.lines]
    lines += [f"on {pairs.meaning(e)}" for _, e, _ in asked]
    predicate = [f"{where.lower()} {pairs.written(e, shown)}" for _, e, where in asked]
    if function is not None:
        lines.append(f"function {qualified_name(function)}")
        predicate.append(f"on the function {qualified_name(function)}")
    forms = [pairs.form(*taken) for taken in above.taken]
    inputs = (*left.input_lines, *right.input_lines)
    origin = Origin(inputs, shedding.lines, left.texts | right.texts)
    yield Lowered(
        leaves=(*left.leaves, *right.leaves),
        prefixes=shedding.sieved(prefixes, sides),
        operator=operator,
        ports=tuple(pairs.port(*taken) for taken in above.taken),
        lines=(*lines, *(line for form in forms for line in form.mark)),
        record=Record(
            state=state_lines(operator, origin),
            columns=left.columns(prefixes[:cut]) | right.columns(prefixes[cut:]),
            after=tuple((*predicate, *form.words(shown)) for form in forms),
        ),
    )


@dataclass(frozen=True)
class _Above:
    """The work above a join, as expressions over its sides and the outputs of their prefixes.

    `conditions` hold for all pairs; each comes with its clause, for messages. `taken` has, for each
    reader of the rows, its columns and its own conditions.
    """

    conditions: list[tuple[str, exp.Expression]]
    taken: list[tuple[list[NamedExpr], list[exp.Expression]]]

    @property
    def used(self) -> list[exp.Expression]:
        """All expressions."""
        outputs = [e for named, _ in self.taken for _, e in named]
        wheres = [e for _, where in self.taken for e in where]
        return [e for _, e in self.conditions] + outputs + wheres


def _above(unit: Unit, join: Join, sides: BothSides, shedding: WholeSides) -> _Above:
    left, right = sides.left, sides.right
    suffixes = [pair_suffix(top, join) for top in unit.tops]
    later = [[("WHERE", c) for c in suffix.where] for suffix in suffixes]
    # An outer join also emits rows without a partner. A condition on those must come after the
    # join: as part of its predicate it would decide which tuples have a partner.
    merges = len(suffixes) == 1 and not join.kind.tracked
    conditions = _predicate(join) + (later[0] if merges else [])
    takers = [side for i, side in enumerate((left, right)) if join.kind.filters(i)]
    conditions = _pushed(conditions, left, right, takers)

    def lifted(expression: exp.Expression, where: str) -> exp.Expression:
        return shedding.over(sides.lifted(expression, where))

    conditions = [(where, lifted(e, where)) for where, e in conditions]
    missing = [side for i, side in enumerate((left, right)) if join.kind.can_miss(i)]
    sides = replace(sides, missing=tuple(missing))
    outputs = [
        [(n, lifted(e, "SELECT")) for n, e in pair_outputs(suffix, top, join)]
        for suffix, top in zip(suffixes, unit.tops, strict=True)
    ]
    apart = [[]] if merges else later
    if not join.kind.tracked:
        apart = [_pushed(c, left, right, ()) for c in apart]
    wheres = [[lifted(e, "WHERE") for _, e in c] for c in apart]
    return _Above(conditions, list(zip(outputs, wheres, strict=True)))


def _together(join: Join, intervals: Sequence[PairInterval]) -> str | None:
    """Why tuples must be placed by key: both sides need to know who has no partner; else None."""
    if len(join.kind.tracked) < 2:
        return None
    why = "tuples of both sides must meet all their partners in one place"
    return why if any(i.kind == EQUAL for i in intervals) else f"{why}: one instance has all"


def _predicate(join: Join) -> list[tuple[str, exp.Expression]]:
    if not isinstance(join.predicate, exp.Expression):
        return []
    return [("ON", c) for c in conjuncts(join.predicate)]


def _pushed(
    conditions: Sequence[tuple[str, exp.Expression]],
    left: SideLowering,
    right: SideLowering,
    takers: Sequence[SideLowering],
) -> list[tuple[str, exp.Expression]]:
    """The conditions that stay on pairs; a condition on one taker alone is pushed into it."""
    kept = []
    for where, written in conditions:
        require_deterministic(written, where)
        condition = written
        if any(c.name == EVENT_TIME for c in written.find_all(exp.Column)):
            event = exp.Greatest(this=left.event(), expressions=[right.event()])
            condition = substitute(written, {EVENT_TIME: event})
        names = {c.name for c in condition.find_all(exp.Column)}
        owner = next((s for s in takers if names and names <= s.names), None)
        if owner is not None and owner.takes(condition):
            owner.filter(condition)
        else:
            kept.append((where, condition))
    return kept


def pair_suffix(top: Consumed, join: Join | AsOf) -> Suffix:
    """The stateless work between a join and one reader of its rows."""
    suffix = Suffix({})
    suffix.extend(top.node, join)
    return suffix


def pair_outputs(suffix: Suffix, top: Consumed, join: Join | AsOf) -> list[NamedExpr]:
    """The columns after ts: those selected, else all of the left side, then all of the right.

    Between subqueries each column keeps the name of its side.
    """
    if suffix.selected:
        return list(suffix.columns.items())
    if not top.output:
        return [(n, column(n)) for n in join.names if n != EVENT_TIME]
    return [(n, column(own)) for n, own in unqualified_columns(join)]
