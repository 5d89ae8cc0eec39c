"""What a query asks of an aggregate, over the columns of its prefixes, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from tidegate.operate.aggregate.answer import WindowAnswer
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.pane_window import WindowPanes
from tidegate.operate.port import Port
from tidegate.operate.session.operator import SessionAggregate
from tidegate.operate.session.spec import SessionSpec
from tidegate.plan.aggregate.port import window_ports
from tidegate.plan.cut import Unit
from tidegate.plan.fingerprint import function_lines
from tidegate.plan.physical import Prefix
from tidegate.plan.prefix import Prefixing
from tidegate.plan.pushdown import Leaf
from tidegate.plan.recorded import RecordedSubquery, Texts, input_lines, prefix_texts, typed_texts
from tidegate.query.aggregate import AggregateCall
from tidegate.query.check import key_type
from tidegate.query.node import Aggregate
from tidegate.schema import type_name


@dataclass(frozen=True)
class AskedAggregate:
    """An aggregate node whose keys are the columns k*, and its arguments the columns x*.

    `functions` are those of its select list, a0, a1 and so on; `texts` says what all of these are
    in the words of the query. `kept` is what a checkpoint has of the subquery.
    """

    unit: Unit
    base: Aggregate
    leaves: tuple[Leaf, ...]
    prefixes: tuple[Prefix, ...]
    keys: tuple[tuple[str, pa.DataType], ...]
    arguments: tuple[tuple[str, pa.DataType], ...]
    functions: tuple[Function, ...]
    texts: Texts
    kept: RecordedSubquery | None

    @property
    def key_names(self) -> tuple[str, ...]:
        """The keys as the query calls them."""
        return tuple(name for name, _ in self.base.keys)

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """The types of keys and functions."""
        return dict(self.keys) | {f.name: f.result for f in self.functions}

    @property
    def places(self) -> dict[str, str]:
        """The columns of functions by their names in the query."""
        named = zip(self.base.aggregates, self.functions, strict=True)
        return {name: function.name for (name, _), function in named}

    @property
    def lines(self) -> list[str]:
        """What it computes, for the fingerprint."""
        keys = [f"key {name} {type_}" for name, type_ in self.keys]
        return [*keys, *function_lines(self.functions)]

    def answered(self, answer: WindowAnswer) -> PlannedAnswer:
        """An answer of which the results of the functions are the columns of the query."""
        ports = window_ports(self.unit, self.base, self.columns, self.texts)
        return PlannedAnswer(answer, self.functions, self.prefixes, *ports)

    def state_lines(self, clauses: Sequence[str]) -> list[str]:
        """What a state of it is made of: tuples, what clauses say of these, and groups."""
        inputs = (line for leaf in self.leaves for line in input_lines(leaf))
        keys = (f"group by {self.texts[name]} ({type_name(type_)})" for name, type_ in self.keys)
        return [*inputs, *clauses, *keys]


@dataclass(frozen=True)
class PlannedAnswer:
    """How an aggregate is answered: the functions whose states that takes, and what follows.

    `ports` are over the columns of these functions, or over those of the answer where that is
    `from_states`; `after` says for the fingerprint what they do, and `shown` in the words of the
    query. `lines` say it of the answer for the fingerprint, `clauses` in the words of the query.
    `panes` are those of the window where they are cut otherwise, and `operator` closes windows;
    over sessions it is `sessions`, with a `session_spec`.
    `by_key` is the clause that needs all tuples of a key in one place, where one does.
    """

    answer: WindowAnswer
    functions: tuple[Function, ...]
    prefixes: tuple[Prefix, ...]
    ports: tuple[Port, ...]
    after: Sequence[str]
    shown: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    panes: WindowPanes | None = None
    operator: Callable[..., WindowAggregate] = WindowAggregate
    sessions: Callable[..., SessionAggregate] = SessionAggregate
    session_spec: Callable[..., SessionSpec] = SessionSpec
    by_key: str | None = None

    @property
    def parts(self) -> list[Function]:
        """The functions that fold, also those that one function stands for."""
        return [part for function in self.functions for part in function.parts]


Renaming = Callable[[Texts, RecordedSubquery | None], Mapping[str, str]]
"""Names for argument columns, by their names here; given what each is, and what is kept."""


def asked_of(
    unit: Unit, base: Aggregate, front: Prefixing, kept: RecordedSubquery | None, stored: Renaming
) -> AskedAggregate:
    """Lower what is below an aggregate: its prefixes, and its functions over their columns."""
    leaves = front.leaves(base.child)
    calls = _coerced([call for _, call in base.aggregates], leaves[0], front)
    given = dict.fromkeys(argument for call in calls for argument in call.arguments)
    arguments = {argument: f"x{i}" for i, argument in enumerate(given)}
    shared = [(f"k{i}", e) for i, (_, e) in enumerate(base.keys)]

    def made(names: Mapping[exp.Expression, str]) -> tuple[Prefix, ...]:
        named = shared + [(name, e) for e, name in names.items()]
        return front.prefixes(leaves, [[(n, leaf.over(e)) for n, e in named] for leaf in leaves])

    prefixes = made(arguments)
    held = typed_texts(prefixes, prefix_texts(prefixes))
    chosen = stored({name: held[name] for name in arguments.values()}, kept)
    if any(chosen[name] != name for name in chosen):
        arguments = {e: chosen[name] for e, name in arguments.items()}
        prefixes = made(arguments)
    types, texts = {n: e.type for n, e in prefixes[0].outputs}, prefix_texts(prefixes)
    functions = []
    for i, call in enumerate(calls):
        taken = tuple(arguments[a] for a in call.arguments)
        functions.append(call.function(f"a{i}", taken, [types[t] for t in taken]))
    return AskedAggregate(
        unit=unit,
        base=base,
        leaves=leaves,
        prefixes=prefixes,
        keys=tuple((f"k{i}", key_type(types[f"k{i}"], n)) for i, (n, _) in enumerate(base.keys)),
        arguments=tuple((name, types[name]) for name in arguments.values()),
        functions=tuple(functions),
        texts=texts | {f.name: call_text(f, texts) for f in functions},
        kept=kept,
    )


def _coerced(calls: Sequence[AggregateCall], leaf: Leaf, front: Prefixing) -> list[AggregateCall]:
    """The calls with Spark's casts; the types of all arguments are asked for at once."""
    arguments = [leaf.over(a) for call in calls for a in call.arguments]
    types = iter(front.types(leaf, arguments))
    made = [call.coerced([next(types) for _ in call.arguments]) for call in calls]
    return [
        call.guarded(lambda argument: front.can_fail(leaf, leaf.over(argument))) for call in made
    ]


def call_text(function: Function, texts: Texts) -> str:
    """A function as a record has it, by its name in SQL where it has one."""
    definition, given = function.definition, [texts.get(a, a) for a in function.arguments]
    text = definition.written(given, function.parameters)
    if definition.form is not None or not definition.sql:
        return text
    return definition.sql[0] + text.removeprefix(function.title)
