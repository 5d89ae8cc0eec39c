"""Lowering of joins: the node and the stateless nodes above it become prefixes and a StreamJoin.

Conditions on one side go into its prefixes, unless its window counts tuples; the others are the
predicate. What has no kernel must concern one side, and is then evaluated in its prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from tidegate.expression.tree import Call, Column, Expr, Literal
from tidegate.operate.join.operator import StreamJoin, qualified_name
from tidegate.operate.join.spec import Extent, JoinSpec, PairFunction, Side
from tidegate.operate.port import Port
from tidegate.plan.conjunct import Conjunct, intervals_of
from tidegate.plan.cut import Consumed, Unit
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fingerprint import meaning
from tidegate.plan.fold import fold
from tidegate.plan.lowered import Context, Lowered, output_lines
from tidegate.plan.method import choose
from tidegate.plan.physical import Prefix
from tidegate.plan.prefix import Prefixing, spark_sql
from tidegate.plan.pushdown import Leaf
from tidegate.plan.sample import sample_of
from tidegate.plan.suffix import Suffix
from tidegate.query.check import bind_after
from tidegate.query.join import Join
from tidegate.query.name import EVENT_TIME, NamedExpr, SideName, column, conjuncts, substitute
from tidegate.query.typing import UnknownKernel, bind
from tidegate.query.unqualified import unqualified_columns
from tidegate.query.window import Distance, JoinWindow
from tidegate.schema import TIME

_LETTERS = ("l", "r")


def lower_join(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of a join and the stateless work above it.

    Conditions above a join are part of its predicate where all that take its rows have them.
    """
    join, front, choices = unit.base, context.front, context.choices
    assert isinstance(join, Join)
    above = [_above(top, join) for top in unit.tops]
    later = [[("WHERE", c) for c in a.where] for a in above]
    left, right = (_SideLowering.of(join, side, front) for side in (0, 1))
    conditions = _predicate(join) + (later[0] if len(above) == 1 else [])
    conditions = _pushed(conditions, left, right)
    both = _Both(left, right, front)
    conditions = [(where, both.lifted(e, where)) for where, e in conditions]
    outputs = [
        [(n, both.lifted(e, "SELECT")) for n, e in _outputs(a, top, join)]
        for a, top in zip(above, unit.tops, strict=True)
    ]
    apart = later if len(above) > 1 else [[]]
    wheres = [
        [both.lifted(e, "WHERE") for _, e in _pushed(c, left, right, push=False)] for c in apart
    ]
    function = join.predicate if callable(join.predicate) else None
    used = [e for _, e in conditions] + [e for named in outputs for _, e in named]
    used += [e for where in wheres for e in where]
    for side in (left, right):
        side.take(used, whole=function is not None)
    prefixes = left.prefixes() + right.prefixes()
    names = left.physical | right.physical
    types = left.types | right.types | {EVENT_TIME: TIME}
    bound = [_bound(e, types, where, predicate=True) for where, e in conditions]
    kept = [
        (_renamed(b, names), e)
        for b, (_, e) in zip(bound, conditions, strict=True)
        if not (isinstance(b, Literal) and b.value is True)
    ]
    texts = tuple(e.sql(dialect="spark", comments=False) for _, e in kept)
    parts = [Conjunct(b, t) for (b, _), t in zip(kept, texts, strict=True)]
    intervals = intervals_of(parts, set(left.physical.values()))
    sides = (0,) * len(left.leaves) + (1,) * len(right.leaves)
    cut = len(left.leaves)
    rows = choices.rows if intervals else None
    sample = sample_of(prefixes[:cut], prefixes[cut:], context.streams, rows)
    choice = choose(intervals, choices.join, sample)
    spec = JoinSpec(
        left=left.side(prefixes[0]),
        right=right.side(prefixes[cut]),
        predicate=tuple(b for b, _ in kept),
        function=None if function is None else PairFunction(function, left.given, right.given),
        intervals=intervals,
        method=choice.method,
        index=choice.index,
    )
    operator = StreamJoin(
        spec=spec,
        sides=sides,
        routing=choice.routing,
        reasons=choice.reasons,
        conjuncts=texts,
    )
    renaming = {flat: column(name) for flat, name in names.items()}
    lines = [f"join {left.extent} {right.extent} {sides}"]
    lines += [f"on {meaning(spark_sql(substitute(e, renaming)))}" for _, e in kept]
    if function is not None:
        lines.append(f"function {qualified_name(function)}")
    ports = []
    for named, where in zip(outputs, wheres, strict=True):
        selected = tuple((n, _renamed(_bound(e, types, "SELECT"), names)) for n, e in named)
        fields = [pa.field(EVENT_TIME, TIME), *(pa.field(n, e.type) for n, e in selected)]
        held = [_renamed(_bound(e, types, "WHERE", predicate=True), names) for e in where]
        ports.append(Port(pa.schema(fields), selected, tuple(held)))
        lines += [f"where {meaning(spark_sql(substitute(e, renaming)))}" for e in where]
        lines += output_lines((n, substitute(e, renaming)) for n, e in named)
    yield Lowered(
        leaves=(*left.leaves, *right.leaves),
        prefixes=prefixes,
        operator=operator,
        ports=tuple(ports),
        lines=tuple(lines),
    )


def _predicate(join: Join) -> list[tuple[str, exp.Expression]]:
    if not isinstance(join.predicate, exp.Expression):
        return []
    return [("ON", c) for c in conjuncts(join.predicate)]


def _pushed(
    conditions: Sequence[tuple[str, exp.Expression]],
    left: _SideLowering,
    right: _SideLowering,
    push: bool = True,
) -> list[tuple[str, exp.Expression]]:
    """The conditions on pairs; those of one side alone are given to it, if `push`."""
    event = exp.Greatest(
        this=column(left.flat(EVENT_TIME)), expressions=[column(right.flat(EVENT_TIME))]
    )
    kept = []
    for where, written in conditions:
        require_deterministic(written, where)
        condition = substitute(written, {EVENT_TIME: event})
        names = {c.name for c in condition.find_all(exp.Column)}
        owner = next((s for s in (left, right) if names and names <= s.names), None)
        if not push or owner is None or owner.extent.rows is not None:
            kept.append((where, condition))
        else:
            owner.filter(condition)
    return kept


def _above(top: Consumed, join: Join) -> Suffix:
    above = Suffix({})
    above.extend(top.node, join)
    return above


def _outputs(above: Suffix, top: Consumed, join: Join) -> list[NamedExpr]:
    """The columns after ts: as selected, or all of the left side and then of the right.

    Between subqueries every column keeps the name of its side.
    """
    if above.selected:
        return list(above.columns.items())
    if not top.output:
        return [(n, column(n)) for n in join.names if n != EVENT_TIME]
    return [(n, column(own)) for n, own in unqualified_columns(join)]


@dataclass
class _SideLowering:
    """One side of a join on its way to prefixes: its leaves, and which columns are taken of it."""

    label: str
    letter: str
    extent: Extent
    leaves: tuple[Leaf, ...]
    own: tuple[str, ...]
    front: Prefixing
    extra: dict[SideName, exp.Expression] = field(default_factory=dict)
    physical: dict[str, str] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    given: tuple[str, ...] = ()

    @classmethod
    def of(cls, join: Join, side: int, front: Prefixing) -> _SideLowering:
        child = join.children[side]
        window = (join.left_window, join.right_window)[side]
        leaves = front.leaves(child)
        names = (*child.names, EVENT_TIME) if child.windowed else child.names
        own = tuple(n for n in names if all(n in leaf.columns for leaf in leaves))
        return cls(join.labels[side], _LETTERS[side], _extent(window), leaves, own, front)

    @property
    def names(self) -> set[str]:
        return {self.flat(n) for n in self.own}

    def flat(self, name: str) -> SideName:
        return SideName(self.label, name)

    def filter(self, condition: exp.Expression) -> None:
        """Push a condition of this side into its prefixes."""
        mine = self._unqualified(condition)
        self.leaves = tuple(
            replace(leaf, where=leaf.where + conjuncts(leaf.over(mine))) for leaf in self.leaves
        )

    def lift(self, expression: exp.Expression) -> exp.Expression:
        """Have the prefix evaluate an expression of this side; what stands for it above."""
        for name, known in self.extra.items():
            if known == expression:
                return column(name)
        name = self.flat(f"~{len(self.extra)}")
        self.extra[name] = expression
        return column(name)

    def take(self, used: Sequence[exp.Expression], whole: bool) -> None:
        """Decide which columns the prefixes put out, and what they are called there."""
        wanted = {c.name for e in used for c in e.find_all(exp.Column)}
        taken = [n for n in self.own if whole or self.flat(n) in wanted]
        flat = [*(self.flat(n) for n in taken), *self.extra]
        self.given = tuple(n.column for n in flat) if whole else ()
        self.physical = {n: f"{self.letter}{i}" for i, n in enumerate(flat)}

    def prefixes(self) -> tuple[Prefix, ...]:
        sources: dict[str, exp.Expression] = {self.flat(n): column(n) for n in self.own}
        sources |= {n: self._unqualified(e) for n, e in self.extra.items()}
        named = [
            [(name, leaf.over(sources[flat])) for flat, name in self.physical.items()]
            for leaf in self.leaves
        ]
        prefixes = self.front.prefixes(self.leaves, named)
        types = dict(prefixes[0].outputs)
        self.types = {flat: types[name].type for flat, name in self.physical.items()}
        return prefixes

    def side(self, prefix: Prefix) -> Side:
        return Side(tuple((n, e.type) for n, e in prefix.outputs), self.extent)

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of some columns, before the prefixes are made."""
        leaf = self.leaves[0]
        own = [n for n in self.own if self.flat(n) in names]
        types = self.front.types(leaf.origin, [leaf.columns[n] for n in own])
        return {self.flat(n): t for n, t in zip(own, types, strict=True)}

    def _unqualified(self, expression: exp.Expression) -> exp.Expression:
        return substitute(expression, {self.flat(n): column(n) for n in self.own})


@dataclass(frozen=True)
class _Both:
    """Both sides of a join, for what concerns their expressions together."""

    left: _SideLowering
    right: _SideLowering
    front: Prefixing

    def lifted(self, expression: exp.Expression, where: str) -> exp.Expression:
        """An expression in which what has no kernel, but concerns one side, is a column of it."""
        require_deterministic(expression, where)
        names = list({c.name: None for c in expression.find_all(exp.Column)})
        types = self.left.types_of(names) | self.right.types_of(names) | {EVENT_TIME: TIME}
        if _has_kernels(expression, types, where):
            return expression

        def lift(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Expression) or isinstance(node, exp.Column):
                return node
            inside = {c.name for c in node.find_all(exp.Column)}
            owner = next((s for s in (self.left, self.right) if inside and inside <= s.names), None)
            if owner is None or not isinstance(node, exp.Condition):
                return node
            return node if _has_kernels(node, types, where) else owner.lift(node)

        result = expression.copy().transform(lift, copy=False)
        assert isinstance(result, exp.Expression)
        return result


def _has_kernels(expression: exp.Expression, types: Mapping[str, pa.DataType], where: str) -> bool:
    try:
        bind(expression, types, where)
    except UnknownKernel:
        return False
    return True


def _bound(
    expression: exp.Expression,
    types: Mapping[str, pa.DataType],
    where: str,
    predicate: bool = False,
) -> Expr:
    """Bind what is evaluated on pairs."""
    remedy = "On pairs there is no Spark SQL: compute it from one side, or from the output."
    return fold(bind_after(expression, types, where, predicate, remedy))


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    if isinstance(expr, Column):
        return Column(names.get(expr.name, expr.name), expr.type)
    if isinstance(expr, Call):
        return Call(expr.op, tuple(_renamed(a, names) for a in expr.args), expr.type)
    return expr


def _extent(window: JoinWindow) -> Extent:
    if isinstance(window, Distance):
        return Extent(window.range_us, None)
    return Extent(None, window.rows)
