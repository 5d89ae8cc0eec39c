"""Lowers as-of joins: the node and the stateless nodes above it become prefixes and an AsOfJoin.

Conditions on the left side go into its prefixes. Those on the right side do not: which right tuple
is the nearest is decided before they are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from tidegate.batch import DECIDED
from tidegate.calendar.duration import duration_text
from tidegate.expression.tree import Call, Column, Expr
from tidegate.operate.asof.backward import Backward
from tidegate.operate.asof.forward import Forward
from tidegate.operate.asof.look import AsOfLook
from tidegate.operate.asof.operator import AsOfJoin
from tidegate.operate.asof.spec import LEFT, OWN, RIGHT, AsOfSpec
from tidegate.operate.join.spec import WindowExtent
from tidegate.operate.port import Port
from tidegate.plan.compatibility.dependence import Origin, state_lines
from tidegate.plan.compatibility.query_record import Record, input_lines
from tidegate.plan.cut import Unit
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.join.pair import PairColumns
from tidegate.plan.join.side import BothSides, SideLowering
from tidegate.plan.lowering.join import pair_outputs, pair_suffix
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.query.name import EVENT_TIME, NamedExpr, substitute
from tidegate.query.node.asof import AsOf
from tidegate.schema import TIME

_NO_WINDOW = WindowExtent(0, None)


def lower_asof(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of an as-of join and the stateless work above it."""
    join = unit.base
    assert isinstance(join, AsOf)
    kept = context.kept(AsOfJoin.kind)
    look: AsOfLook = Backward() if join.looks_back else Forward()
    left, right = (
        SideLowering.over(
            join,
            side,
            context.front,
            kept if side == look.stored else None,
            _NO_WINDOW,
            refilters=False,
        )
        for side in (LEFT, RIGHT)
    )
    sides = BothSides(left, right, context.front)
    equalities = [sides.lifted(e, "ON") for e in join.equalities]
    taken = _taken(unit, join, sides)
    used = [*equalities, *(e for named, where in taken for e in [*(e for _, e in named), *where])]
    for side in (left, right):
        side.take(used, whole=False)
    prefixes = left.prefixes() + right.prefixes()
    cut = len(left.leaves)
    shown_time = {} if join.looks_back else {EVENT_TIME: OWN}
    physical = left.physical | right.physical | shown_time
    pairs = PairColumns(physical, left.types | right.types)
    spec = AsOfSpec(
        sides=(_outputs_of(prefixes[0].outputs), _outputs_of(prefixes[cut].outputs)),
        keys=tuple(_hands(pairs.bound(e, "ON", predicate=True)) for e in equalities),
        look=look,
        equal=join.comparison.endswith("="),
        tolerance_us=join.tolerance_us,
        keep=join.keep,
    )
    shown = left.shown | right.shown
    operator = AsOfJoin(
        spec=spec,
        sides=(LEFT,) * cut + (RIGHT,) * len(right.leaves),
        shown=join.summary.partition(" on ")[2],
    )
    far = "none" if join.tolerance_us is None else duration_text(join.tolerance_us)
    looks = "back" if join.looks_back else f"ahead by {join.comparison}"
    asked = [f"as of, looks {looks}, tolerance {far}"]
    asked += [f"on {pairs.written(e, shown)}" for e in equalities]
    stored = (left, right)[look.stored]
    origin = Origin(
        inputs=[line for leaf in stored.leaves for line in input_lines(leaf, f"{stored.word} ")],
        clauses=asked,
        texts=left.texts | right.texts,
    )
    forms = [pairs.form(*each) for each in taken]
    lines = [f"asof {join.comparison} {join.tolerance_us} {join.keep} {operator.sides}"]
    lines += [f"on {pairs.meaning(e)}" for e in equalities]
    yield Lowered(
        leaves=(*left.leaves, *right.leaves),
        prefixes=prefixes,
        operator=operator,
        ports=tuple(_port(pairs.port(*each), join.own_time) for each in taken),
        lines=(*lines, *(line for form in forms for line in form.mark)),
        record=Record(
            state=state_lines(operator, origin),
            columns=stored.columns((prefixes[:cut], prefixes[cut:])[look.stored]),
            after=tuple((join.kind, *form.words(shown)) for form in forms),
        ),
    )


def _taken(
    unit: Unit, join: AsOf, sides: BothSides
) -> list[tuple[list[NamedExpr], list[exp.Expression]]]:
    """By consumer the columns it gets, and on which conditions; those of the left side go to it."""
    found = []
    for top in unit.tops:
        suffix = pair_suffix(top, join)
        outputs = [(n, sides.lifted(e, "SELECT")) for n, e in pair_outputs(suffix, top, join)]
        where = [c for c in suffix.where if len(unit.tops) > 1 or not _given(c, sides.left)]
        found.append((outputs, [sides.lifted(c, "WHERE") for c in where]))
    return found


def _given(condition: exp.Expression, left: SideLowering) -> bool:
    """Give a condition of the left side alone to its prefixes; whether it was one."""
    require_deterministic(condition, "WHERE")
    own = condition
    if any(c.name == EVENT_TIME for c in condition.find_all(exp.Column)):
        own = substitute(condition, {EVENT_TIME: left.event()})
    names = {c.name for c in own.find_all(exp.Column)}
    if not names or not names <= left.names or not left.takes(own):
        return False
    left.filter(own)
    return True


def _port(port: Port, own_time: bool) -> Port:
    """The port, whose rows show the time of the left tuple where they are decided later."""
    if not own_time:
        return port
    shown = (EVENT_TIME, Column(OWN, TIME))
    return replace(port, outputs=(shown, *port.outputs), time=DECIDED)


def _hands(equality: Expr) -> tuple[Expr, Expr]:
    assert isinstance(equality, Call)
    left, right = equality.args
    return left, right


def _outputs_of(outputs: tuple[tuple[str, Expr], ...]) -> tuple[tuple[str, object], ...]:
    return tuple((name, e.type) for name, e in outputs)
