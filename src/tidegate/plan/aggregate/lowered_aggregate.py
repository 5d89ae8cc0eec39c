"""Describes an aggregate after lowering (columns and functions), and plans its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from tidegate.operate.aggregate.answer import WindowAnswer
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.pane.pane_window import WindowPanes
from tidegate.operate.port import Port
from tidegate.operate.session.operator import SessionAggregate
from tidegate.operate.session.spec import SessionSpec
from tidegate.plan.aggregate.port import window_ports
from tidegate.plan.compatibility.fingerprint import function_lines
from tidegate.plan.compatibility.query_record import (
    RecordedSubquery,
    Texts,
    input_lines,
    prefix_texts,
    typed_texts,
)
from tidegate.plan.cut import Unit
from tidegate.plan.physical import Prefix
from tidegate.plan.prefix import Prefixing
from tidegate.plan.pushdown import Leaf
from tidegate.query.aggregate import AggregateCall
from tidegate.query.check import key_type
from tidegate.query.node.node import Aggregate
from tidegate.schema import type_name


@dataclass(frozen=True)
class AskedAggregate:
    """A lowered aggregate: its keys are the columns k*, its arguments the columns x*.

    `functions` are the aggregates of the select list, named a0, a1 and so on. `texts` maps all
    these names to the text of the query. `kept` is the checkpoint's record of the subquery.
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
        """The names of the keys in the query."""
        return tuple(name for name, _ in self.base.keys)

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """The types of the columns of keys and functions."""
        return dict(self.keys) | {f.name: f.result for f in self.functions}

    @property
    def places(self) -> dict[str, str]:
        """The column of each function, by its name in the query."""
        named = zip(self.base.aggregates, self.functions, strict=True)
        return {name: function.name for (name, _), function in named}

    @property
    def lines(self) -> list[str]:
        """Keys and functions, for the fingerprint."""
        keys = [f"key {name} {type_}" for name, type_ in self.keys]
        return [*keys, *function_lines(self.functions)]

    def answered(self, answer: WindowAnswer) -> PlannedAnswer:
        """An answer whose function results are the query's columns, without further steps."""
        ports = window_ports(self.unit, self.base, self.columns, self.texts)
        return PlannedAnswer(answer, self.functions, self.prefixes, *ports)

    def state_lines(self, clauses: Sequence[str]) -> list[str]:
        """What its state depends on: the input tuples, clauses that change them, and the keys."""
        inputs = (line for leaf in self.leaves for line in input_lines(leaf))
        keys = (f"group by {self.texts[name]} ({type_name(type_)})" for name, type_ in self.keys)
        return [*inputs, *clauses, *keys]


@dataclass(frozen=True)
class PlannedAnswer:
    """A planned answer: the functions whose states are kept, and the steps after them.

    - `ports` read the columns of these functions, or the columns of the answer if it is
      `from_states`.
    - `after` describes the ports for the fingerprint, `shown` in the words of the query.
    - `lines` describe the answer for the fingerprint, `clauses` in the words of the query.
    - `panes` replace the window's panes if they are cut differently.
    - `operator` closes windows; over sessions it is `sessions`, with a `session_spec`.
    - `by_key` names the clause that needs all tuples of a key in one place; None if there is none.
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
        """The functions that fold; a function that stands for several is replaced by those."""
        return [part for function in self.functions for part in function.parts]


Renaming = Callable[[Texts, RecordedSubquery | None], Mapping[str, str]]
"""Returns names of argument columns, by their names here; takes their texts and the kept record."""


def asked_of(
    unit: Unit, base: Aggregate, front: Prefixing, kept: RecordedSubquery | None, stored: Renaming
) -> AskedAggregate:
    """Lower an aggregate: the prefixes below it, and its functions over their columns."""
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
    """The calls with Spark's casts. The types of all arguments are resolved in one request."""
    arguments = [leaf.over(a) for call in calls for a in call.arguments]
    types = iter(front.types(leaf, arguments))
    made = [call.coerced([next(types) for _ in call.arguments]) for call in calls]
    return [
        call.guarded(lambda argument: front.can_fail(leaf, leaf.over(argument))) for call in made
    ]


def call_text(function: Function, texts: Texts) -> str:
    """The text of a function in a record, with its SQL name if it has one."""
    definition, given = function.definition, [texts.get(a, a) for a in function.arguments]
    text = definition.written(given, function.parameters)
    if definition.form is not None or not definition.sql:
        return text
    return definition.sql[0] + text.removeprefix(function.title)
