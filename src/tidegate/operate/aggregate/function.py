"""One aggregate of a select list: its name, its arguments, and the kernels that compute it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS
from tidegate.errors import QueryError
from tidegate.operate.aggregate.definition import AggregateFunction
from tidegate.operate.aggregate.registry import find
from tidegate.operate.kernels.family import Family, States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import flat, integers, is_ordered
from tidegate.schema import type_name


class FieldsSent:
    """A dataclass that is sent without its cached values: the receiver computes them again."""

    def __getstate__(self) -> dict[str, Any]:
        names = (field.name for field in fields(self))  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Function(FieldsSent):
    """A named aggregate over argument columns; an invalid one cannot be constructed (QueryError).

    `kind` names a row of the registry. `types` are those of the arguments. `parameters` are the
    constants of the call; defaults are filled in.
    """

    name: str
    kind: str
    arguments: tuple[str, ...] = ()
    types: tuple[pa.DataType, ...] = ()
    parameters: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        definition = self.definition
        object.__setattr__(self, "parameters", definition.completed(self.parameters))
        if len(self.arguments) != len(self.types):
            got = f"{len(self.arguments)} arguments and {len(self.types)} types"
            raise QueryError(definition.where, "every argument must have a type", got)
        definition.check(self.types)
        _ = self.family

    @property
    def definition(self) -> AggregateFunction:
        """The row of the registry."""
        return find(self.kind)

    @cached_property
    def family(self) -> Family:
        """The kernels of this function."""
        return self.definition.family(*self.types, *self.parameters)

    @property
    def title(self) -> str:
        """The function's name in a plan; for a user's own function its class and parameters."""
        return self.definition.title(self.parameters)

    @property
    def shown(self) -> list[str]:
        """The parameters as a plan shows them."""
        return self.definition.shown(self.parameters)

    @property
    def parts(self) -> tuple[Function, ...]:
        """The functions of the select list that it computes: mostly only itself."""
        inside = self.definition.inside(self.parameters)
        return (self,) if inside is None else inside

    @property
    def result(self) -> pa.DataType:
        """The type of the result column."""
        return self.family.result

    @cached_property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The state columns in a partial table, as `name.part`."""
        return tuple((f"{self.name}.{part}", type_) for part, type_ in self.family.state)

    @property
    def unfolded(self) -> dict[str, pa.Array]:
        """The state columns of a group without rows, each an array of one."""
        orders = [pa.int64()] * (len(self.inputs) - len(self.arguments))
        none = [pa.array([], type_) for type_ in (*self.types, *orders)]
        states = self.family.fold(Groups(np.empty(0, np.int64), 1), none)
        return {name: column for (name, _), column in zip(self.state, states, strict=True)}

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of folded rows that `family.fold` takes, in its order."""
        return self.arguments + (ORDER if self.definition.in_order else ())


def fold_rows(functions: Sequence[Function], groups: Groups, rows: pa.Table) -> States:
    """Fold rows by group: the state columns of all functions. Event times are given as int64."""

    def column(name: str) -> pa.Array:
        found = flat(rows.column(name))
        return pa.array(integers(found)) if name == TS else found

    folded = (f.family.fold(groups, [column(name) for name in f.inputs]) for f in functions)
    return [state for states in folded for state in states]


def states_in(functions: Sequence[Function], rows: pa.Table) -> list[States]:
    """The state columns of each function in a table of partials, pieces or windows."""
    return [[flat(rows.column(name)) for name, _ in f.state] for f in functions]


def merge_rows(functions: Sequence[Function], groups: Groups, rows: pa.Table) -> States:
    """Merge the states of rows by group, in the order of the rows: the columns of all functions."""
    pairs = zip(functions, states_in(functions, rows), strict=True)
    return [column for f, states in pairs for column in f.family.merge(groups, states)]


def check_columns(keys: Sequence[tuple[str, pa.DataType]], *schemas: pa.Schema) -> None:
    """Raise QueryError unless all keys can be compared and the names in each schema differ."""
    for name, type_ in keys:
        if not is_ordered(type_):
            raise QueryError(
                f"GROUP BY {name}", "a type that can be compared is required", type_name(type_)
            )
    for schema in schemas:
        if len(set(schema.names)) != len(schema.names):
            got = ", ".join(schema.names)
            raise QueryError("aggregate", "column names must be unique", got)


def unfolded_state(functions: Sequence[Function], name: str) -> pa.Array:
    """The state column of that name, of a group without rows, as an array of one."""
    (function,) = (f for f in functions if name in dict(f.state))
    return function.unfolded[name]
