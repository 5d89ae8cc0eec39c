"""Reads a process's initial state from a table.

The table has the key columns, and a column for each map that begins with values, under the map's
name. Wrong columns raise when the node is built.
"""

from __future__ import annotations

import pyarrow as pa

from tidegate.errors import QueryError, near
from tidegate.operate.process.definition import InitialState, ProcessSpec, declarations_of
from tidegate.operate.process.state import MapState
from tidegate.query.name import EVENT_TIME, find_name
from tidegate.query.table import TableDef
from tidegate.schema import type_name

_KEY = "key"
"""The key's column name if keys come from lists or from a function, as in batches."""


def initial_state(spec: ProcessSpec, table: TableDef, where: str) -> InitialState:
    """Finds which of the table's columns are the process's key and which its maps."""
    where = f"{where} initial"
    if table.valid_from is not None or table.refresh_us is not None:
        how = "VALID FROM" if table.valid_from is not None else "REFRESH EVERY"
        raise QueryError(where, "a table of initial state is read once", how, "Leave it out.")
    keys = _keys(spec, table, where)
    declared = declarations_of(spec.factory()).declared
    maps = {name: state for name, state in declared.items() if isinstance(state, MapState)}
    named = [name for name in table.schema.names if name not in keys]
    states = tuple((name, maps[name].ttl_us) for name in named if name in maps)
    time = EVENT_TIME if any(ttl_us is not None for _, ttl_us in states) else None
    others = [name for name in named if name not in maps and name != time]
    if others:
        raise QueryError(
            where,
            "the columns beside the key must be maps that the class declares",
            _kind(others[0], time, others[0] in declared),
            near(others[0], maps),
        )
    if not states:
        declares = f"Maps of the class: {', '.join(maps) or 'none'}."
        raise QueryError(where, "needs a column for a map of the class", "none", declares)
    if time is not None:
        _check_time(table, where)
    return InitialState(table.name, keys, states, time)


def _keys(spec: ProcessSpec, table: TableDef, where: str) -> tuple[str, ...]:
    if spec.keys is None:
        raise QueryError(
            where, "needs keys that its rows belong to", "none", 'Write keys="column" too.'
        )
    types = dict(spec.columns)
    if spec.key is not None:
        wanted = {_KEY: spec.key}
    else:
        assert not callable(spec.keys)
        wanted = {name: types[name] for name in spec.keys}
    found = {}
    for name, type_ in wanted.items():
        column = find_name(name, table.schema.names)
        if column is None:
            columns = ", ".join(table.schema.names)
            raise QueryError(where, f"{table.where} must have the key {name}", f"only {columns}")
        own = table.schema.field(column).type
        if own != type_ and not (pa.types.is_integer(own) and pa.types.is_integer(type_)):
            raise QueryError(
                where,
                f"the key {column} must be of the type {type_name(type_)}, as in the stream",
                type_name(own),
                "Cast it, or declare the columns of the table.",
            )
        found[column] = own
    return tuple(found)


def _kind(name: str, time: str | None, is_value: bool) -> str:
    if is_value:
        return f"{name}, which belongs to all keys of a bucket"
    if name == EVENT_TIME and time is None:
        return f"{name}, though no map of the table has a time to live"
    return f"a column {name}"


def _check_time(table: TableDef, where: str) -> None:
    """State that expires needs a time column, from which its age counts."""
    remedy = f"Add a column {EVENT_TIME} with the event time at which each row was last set."
    if EVENT_TIME not in table.schema.names:
        columns = ", ".join(table.schema.names)
        raise QueryError(where, "a state with a time to live needs a time", columns, remedy)
    type_ = table.schema.field(EVENT_TIME).type
    if not pa.types.is_timestamp(type_):
        raise QueryError(where, f"{EVENT_TIME} must be a time", type_name(type_), remedy)
