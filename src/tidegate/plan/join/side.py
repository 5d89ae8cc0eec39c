"""Lowers one side of a join: its prefixes, the columns that they put out, and what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from tidegate.calendar.duration import duration_text
from tidegate.operate.join.spec import JoinSide, WindowExtent
from tidegate.plan.compatibility.query_record import (
    RecordedSubquery,
    input_lines,
    prefix_texts,
    typed_texts,
    written,
)
from tidegate.plan.compatibility.stored_name import stored_names
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.physical import Prefix
from tidegate.plan.prefix import Prefixing
from tidegate.plan.pushdown import Leaf, event_time
from tidegate.query.binder import UnknownKernel, bind
from tidegate.query.name import EVENT_TIME, SideName, column, conjuncts, substitute
from tidegate.query.node.join import DRAWN, Join
from tidegate.query.node.stream_pair import Paired
from tidegate.schema import TIME

_LETTERS = ("l", "r")
_WORDS = ("left", "right")
_TIME = "~ts"


@dataclass
class SideLowering:
    """One side of a join on its way to prefixes: its leaves, and which columns are taken of it."""

    label: str
    letter: str
    extent: WindowExtent
    leaves: tuple[Leaf, ...]
    own: tuple[str, ...]
    front: Prefixing
    extra: dict[SideName, exp.Expression] = field(default_factory=dict)
    physical: dict[str, str] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    kept: RecordedSubquery | None = None
    """What a checkpoint has of the join, where its state is to be read."""
    refilters: bool = True
    """Whether tuples that a condition refuses might as well be stored: others stay the same."""
    texts: dict[str, str] = field(default_factory=dict)
    """By column of the operator, what it is in the words of the query."""

    @classmethod
    def of(
        cls,
        join: Join,
        side: int,
        front: Prefixing,
        kept: RecordedSubquery | None,
        refilters: bool,
    ) -> SideLowering:
        window = (join.left_window, join.right_window)[side]
        extent = WindowExtent(*window.extent)
        return cls.over(join, side, front, kept, extent, refilters=refilters)

    @classmethod
    def over(
        cls,
        join: Paired,
        side: int,
        front: Prefixing,
        kept: RecordedSubquery | None,
        extent: WindowExtent,
        *,
        refilters: bool,
    ) -> SideLowering:
        """A side of any join; `extent` is how far its window reaches."""
        child = join.children[side]
        leaves = front.leaves(child)
        names = (*child.names, EVENT_TIME) if child.windowed else child.names
        own = tuple(n for n in names if all(n in leaf.columns for leaf in leaves))
        return cls(
            label=join.labels[side],
            letter=_LETTERS[side],
            extent=extent,
            leaves=leaves,
            own=own,
            front=front,
            kept=kept,
            refilters=refilters,
        )

    @property
    def names(self) -> set[str]:
        return {self.flat(n) for n in self.own}

    def flat(self, name: str) -> SideName:
        return SideName(self.label, name)

    @property
    def word(self) -> str:
        return _WORDS[_LETTERS.index(self.letter)]

    def takes(self, condition: exp.Expression) -> bool:
        """Whether a condition of this side is one of its prefixes.

        Windows that count tuples count those that it refuses too. Of a state that was made without
        the condition, tuples that it refuses are there: then it has to be asked of pairs, which
        helps only where the side `refilters`.
        """
        if self.extent.rows is not None:
            return False
        if self.kept is None or not self.refilters:
            return True
        mine = self._unqualified(condition)
        asked = (c for leaf in self.leaves for c in conjuncts(leaf.over(mine)))
        return all(f"{self.word} where {written(c)}" in self.kept.record.state for c in asked)

    def filter(self, condition: exp.Expression) -> None:
        """Push a condition of this side into its prefixes."""
        mine = self._unqualified(condition)
        self.leaves = tuple(
            replace(leaf, where=leaf.where + conjuncts(leaf.over(mine))) for leaf in self.leaves
        )

    @property
    def input_lines(self) -> list[str]:
        """Which tuples of this side are stored, for the record of a checkpoint."""
        lines = [ln for leaf in self.leaves for ln in input_lines(leaf, f"{self.word} ")]
        us, rows = self.extent.range_us, self.extent.rows
        window = f"{rows} tuples" if us is None else duration_text(us)
        return [*lines, f"{self.word} window {window}"]

    @property
    def shown(self) -> dict[str, str]:
        """Its columns as the query calls them, by their names in the operator."""
        return {
            name: f"{self.label}.{text if text.count('`') == 2 else f'({text})'}"
            for name, text in self.texts.items()
        }

    def lift(self, expression: exp.Expression) -> exp.Expression:
        """Have the prefix evaluate an expression of this side; what stands for it above."""
        for name, known in self.extra.items():
            if known == expression:
                return column(name)
        name = self.flat(f"~{len(self.extra)}")
        self.extra[name] = expression
        return column(name)

    def event(self) -> exp.Expression:
        """Its event time, as pairs see it; a column that is called so may be something else."""
        times = [t for leaf in self.leaves if (t := event_time(leaf.origin)) is not None]
        known = len(times) == len(self.leaves)
        if not known or times == [leaf.columns.get(EVENT_TIME) for leaf in self.leaves]:
            return column(self.flat(EVENT_TIME))
        self.leaves = tuple(
            replace(leaf, columns={**leaf.columns, _TIME: time})
            for leaf, time in zip(self.leaves, times, strict=True)
        )
        return self.lift(column(_TIME))

    def take(self, used: Sequence[exp.Expression], whole: bool) -> None:
        """Decide which columns the prefixes put out, and what they are called there."""
        wanted = {c.name for e in used for c in e.find_all(exp.Column)}
        taken = [n for n in self.own if whole or self.flat(n) in wanted]
        flat = [*(self.flat(n) for n in taken), *self.extra]
        self.given = tuple(n.column for n in flat) if whole else ()
        self.physical = {n: f"{self.letter}{i}" for i, n in enumerate(flat)}

    def prefixes(self) -> tuple[Prefix, ...]:
        prefixes = self._prefixes()
        if self.kept is not None:
            stored = stored_names(self.columns(prefixes), self.kept, self.letter)
            self.physical = {flat: stored[name] for flat, name in self.physical.items()}
            prefixes = self._prefixes()
        self.texts = prefix_texts(prefixes)
        return prefixes

    def columns(self, prefixes: Sequence[Prefix]) -> dict[str, str]:
        """What is kept in each column of this side."""
        held = typed_texts(prefixes, prefix_texts(prefixes))
        return {name: f"{self.word} {text}" for name, text in held.items()}

    def _prefixes(self) -> tuple[Prefix, ...]:
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

    def side(self, prefix: Prefix, more: Mapping[str, pa.DataType]) -> JoinSide:
        """What the join has of this side: what its prefix puts out, and what the join adds."""
        outputs = {n: e.type for n, e in prefix.outputs}
        return JoinSide(tuple((outputs | dict(more)).items()), self.extent)

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of some columns, before the prefixes are made."""
        leaf = self.leaves[0]
        own = [n for n in self.own if self.flat(n) in names]
        asked: dict[str, exp.Expression] = {self.flat(n): column(n) for n in own}
        asked |= {n: self._unqualified(e) for n, e in self.extra.items() if n in names}
        types = self.front.types(leaf, [leaf.over(e) for e in asked.values()])
        return dict(zip(asked, types, strict=True))

    def _unqualified(self, expression: exp.Expression) -> exp.Expression:
        return substitute(expression, {self.flat(n): column(n) for n in self.own})


@dataclass(frozen=True)
class BothSides:
    """Both sides of a join, for what concerns their expressions together."""

    left: SideLowering
    right: SideLowering
    front: Prefixing
    missing: tuple[SideLowering, ...] = ()
    """Those whose columns may be NULL because there is no tuple: nothing can be computed of them
    before the join."""

    def lifted(self, expression: exp.Expression, where: str) -> exp.Expression:
        """An expression in which what has no kernel, but concerns one side, is a column of it."""
        require_deterministic(expression, where)
        names = list({c.name: None for c in expression.find_all(exp.Column)})
        types = self.left.types_of(names) | self.right.types_of(names)
        types |= {EVENT_TIME: TIME, **dict.fromkeys(DRAWN, pa.float64())}
        if _has_kernels(expression, types, where):
            return expression

        def lift(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Expression) or isinstance(node, exp.Column):
                return node
            inside = {c.name for c in node.find_all(exp.Column)}
            owner = next((s for s in (self.left, self.right) if inside and inside <= s.names), None)
            if (
                owner is None
                or any(owner is side for side in self.missing)
                or not isinstance(node, exp.Condition)
            ):
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
