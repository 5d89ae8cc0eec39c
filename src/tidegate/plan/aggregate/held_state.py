"""Names the stored states of an aggregate, so that a changed query can resume from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.process import PROCESS
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer, call_text
from tidegate.plan.compatibility.query_record import Record, Texts
from tidegate.plan.compatibility.stored_name import next_number, stored_names
from tidegate.schema import type_name


def stored_answer(asked: AskedAggregate, planned: PlannedAnswer) -> tuple[PlannedAnswer, Record]:
    """The answer with its states renamed as in the checkpoint, and the record of each state."""
    held = {f.name: _held(f, asked.texts) for f in planned.functions}
    stored = stored_names(held, asked.kept, "a", reuse=True)
    columns = {stored[name]: text for name, text in held.items()}
    used = 0 if asked.kept is None else asked.kept.record.used
    adds = planned.answer.adds and not any(f.definition is PROCESS for f in planned.functions)
    record = Record(
        columns=columns,
        used=max(used, next_number(columns)),
        adds=tuple(columns) if adds else (),
    )
    return _renamed(planned, stored), record


def _renamed(planned: PlannedAnswer, names: Mapping[str, str]) -> PlannedAnswer:
    """The answer with its states renamed."""
    own = planned.answer.from_states  # ports are over columns of the answer
    return replace(
        planned,
        answer=planned.answer.renamed(names),
        functions=tuple(replace(f, name=names[f.name]) for f in planned.functions),
        ports=planned.ports if own else tuple(port.renamed(names) for port in planned.ports),
    )


def _held(function: Function, texts: Texts) -> str:
    """The text of a function's state in a record; for a user's function also how it is stored."""
    inside = function.definition.inside(function.parameters)
    if inside is not None:
        parts = ", ".join(_held(part, texts) for part in inside) or "COUNT(*)"
        return f"what represents groups for {parts}"
    stored = ""
    if function.definition.by_user:
        stored = "".join(f", {part} {type_name(type_)}" for part, type_ in function.family.state)
    # Two states that are written alike are told apart by their types.
    types = f" of {', '.join(map(type_name, function.types))}" if function.types else ""
    return f"{call_text(function, texts)}{types}{stored}"
