"""The logical node of a user's own operator.

Its rows are what the objects of a class emit, each at the time of the tuple or timer that caused
it. Building the node creates two objects of the class, so that mistakes in it are found before a
run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from tidegate.errors import QueryError, UserError
from tidegate.operate.process.definition import (
    ROW,
    FilterFunction,
    KeyFunction,
    ProcessSpec,
    declarations_of,
    is_list,
)
from tidegate.operate.process.definition import Process as UserProcess
from tidegate.query.binder import UnknownKernel
from tidegate.query.check import key_type, refuse_shadowed
from tidegate.query.name import EVENT_TIME, distinct_names, resolve
from tidegate.query.node.initial_state import initial_state
from tidegate.query.node.logical import Logical
from tidegate.query.table import TableDef
from tidegate.query.types.sqltype import sql_type
from tidegate.schema import TIME, own_type, type_name

if TYPE_CHECKING:
    from tidegate.query.node.node import Node

Factory = Callable[[], UserProcess]
Keys = str | Sequence[str] | KeyFunction | None
Output = tuple[tuple[str, pa.DataType], ...]

_KEY = "key"


@dataclass(frozen=True, eq=False)
class ProcessNode(Logical):
    """The rows that a class makes of the child's tuples, with one object per bucket.

    `keys` are the columns whose values decide which buckets see a tuple, or a function of the
    tuples; None sends every tuple to all buckets. `initial` holds the state of keys before their
    first tuple.
    """

    child: Node
    factory: Factory
    keys: tuple[str, ...] | KeyFunction | None
    output: Output
    filter: FilterFunction | None = None
    order: str | None = None
    initial: TableDef | None = None
    windowed = False
    stateful = True

    def __post_init__(self) -> None:
        refuse_shadowed(self.child, self._where, "Give the column another name with select.")
        if self.keys is not None and not callable(self.keys):
            found = tuple(resolve(k, self.columns, f"{self._where} keys") for k in self.keys)
            object.__setattr__(self, "keys", found)
            distinct_names(found, f"{self._where} keys")
        if self.filter is not None and not callable(self.filter):
            raise QueryError(
                f"{self._where} filter", "must be a function", type(self.filter).__name__
            )
        _check_output(self.output, self._where)
        with suppress(UnknownKernel):
            self.spec()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that an object sees, besides the event time."""
        return tuple(name for name in self.child.names if name != EVENT_TIME)

    @property
    def names(self) -> tuple[str, ...]:
        return (EVENT_TIME, *(name for name, _ in self.output))

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(EVENT_TIME, TIME), *self.output])

    @property
    def event_names(self) -> frozenset[str]:
        return frozenset({EVENT_TIME})

    @property
    def class_name(self) -> str:
        """The name of the class, for messages."""
        return class_name(self.factory)

    @property
    def summary(self) -> str:
        return f"process by {self.class_name}"

    @cached_property
    def identity(self) -> str:
        """Tells one process from another; the same text in every run of a program."""
        keys = self.keys if self.keys is None or isinstance(self.keys, tuple) else named(self.keys)
        chosen = None if self.filter is None else named(self.filter)
        output = ", ".join(f"{name} {type_}" for name, type_ in self.output)
        told = f"process {named(self.factory)} keys {keys} filter {chosen} output {output}"
        # What is stored in a form that the declaration gives: another form is another query.
        fixed = declarations_of(self.factory()).fixed()
        told += f" state {', '.join(fixed)}" if fixed else ""
        told += "" if self.initial is None else f" initial {self.initial.words}"
        return told if self.order is None else f"{told} order {self.order}"

    def spec(self, types: Mapping[str, pa.DataType] | None = None) -> ProcessSpec:
        """The operator to run; `types` are the child's column types if only Spark knows them."""
        if types is None:
            types = {field.name: field.type for field in self.child.schema}
        columns = tuple((name, types[name]) for name in self.columns)
        spec = ProcessSpec(
            self.factory,
            columns,
            self.keys,
            self.output,
            self.filter,
            self.class_name,
            self.order,
        )
        _check_keys(spec, f"{self._where} keys")
        if self.initial is not None:
            spec = replace(spec, initial=initial_state(spec, self.initial, self._where))
        return spec

    def typed(self, types: Mapping[str, pa.DataType]) -> ProcessNode:
        """The node once the types of the child's columns are known."""
        return self

    @property
    def _where(self) -> str:
        return f"process {self.class_name}"


def process(
    child: Node,
    factory: Factory,
    keys: Keys = None,
    filter: FilterFunction | None = None,
    initial: TableDef | None = None,
) -> ProcessNode:
    """The node of a class, or a function that makes its objects; the class declares its output."""
    tried = tried_of(factory)
    if tried.mergeable:
        raise QueryError(
            f"process {_class(tried)}",
            "what is mergeable gives its rows at the ends of windows",
            "a stream without a window",
            f'Write stream.window("1 minute").group_by("key").process({_class(tried)}), or leave '
            "mergeable out of the class.",
        )
    chosen = (keys,) if isinstance(keys, str) else keys
    if chosen is not None and not callable(chosen):
        chosen = tuple(chosen)
        if not chosen or not all(isinstance(k, str) for k in chosen):
            raise QueryError(
                "process keys",
                "must be names of columns, or a function of the tuples",
                repr(keys),
                "Leave keys out where every bucket is to see every tuple.",
            )
    output = output_of(tried)
    if hasattr(tried, "process") and ROW in dict(output):
        raise QueryError(
            f"process {_class(tried)}",
            f"the name {ROW} belongs to the row of the batch that a result is made for",
            f"an output column {ROW}",
            "Give the column another name.",
        )
    order = tried.order
    if order is not None and not pa.types.is_integer(dict(output).get(order, pa.null())):
        raise QueryError(
            f"process {_class(tried)}",
            "order must be an integer column of the output",
            repr(order),
            f"The output is {', '.join(f'{n} {type_name(t)}' for n, t in output)}.",
        )
    return ProcessNode(child, factory, chosen, output, filter, order, initial)


def named(made: Any) -> str:
    """The name of a class, function or partial call; the same in every Python process."""
    if isinstance(made, partial):
        given = [_shown(a) for a in made.args]
        given += [f"{k}={_shown(v)}" for k, v in sorted(made.keywords.items())]
        return f"{named(made.func)}({', '.join(given)})"
    if hasattr(made, "__qualname__"):
        return f"{made.__module__}.{made.__qualname__}"
    return _shown(made)


def _shown(value: Any) -> str:
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return named(value)
    text = repr(value)
    if " at 0x" in text:
        raise QueryError(
            "process",
            "a parameter must print the same in every process",
            text,
            "Give its type a __repr__.",
        )
    return text


def class_name(factory: Factory) -> str:
    """The name of a factory's class, for messages."""
    made = factory
    while isinstance(made, partial):
        made = made.func
    return getattr(made, "__name__", type(made).__name__)


def tried_of(factory: Any) -> UserProcess:
    """An object of the class, created to check it."""
    if isinstance(factory, UserProcess) or not callable(factory):
        got = f"an object of {_class(factory)}" if not isinstance(factory, str) else repr(factory)
        raise QueryError(
            "process",
            "needs a class, or a function that makes its objects",
            got,
            "Give the class itself, without parentheses, or functools.partial(Class, ...).",
        )
    try:
        tried, other = factory(), factory()
    except UserError:
        raise
    except Exception as error:
        raise QueryError(
            f"process {getattr(factory, '__name__', 'factory')}",
            "an object must be made without arguments",
            f"{type(error).__name__}: {error}",
            "Use functools.partial(Class, ...) for parameters.",
        ) from error
    if not isinstance(tried, UserProcess):
        raise QueryError(
            "process",
            "the objects must be of a class that is derived from tidegate.Process",
            _class(tried),
        )
    if tried is other:
        raise QueryError(
            f"process {_class(tried)}",
            "every bucket needs an object of its own",
            "the same twice",
            "Make a new object in each call.",
        )
    _check_class(tried)
    return tried


def _check_class(tried: UserProcess) -> None:
    where, kind = f"process {_class(tried)}", type(tried)
    given = [m for m in ("on_tuple", "process") if hasattr(tried, m)]
    if len(given) != 1:
        raise QueryError(
            where,
            "the class must have on_tuple(tuple, keys) or process(batch), one of them",
            " and ".join(given) or "neither",
        )
    expiring = [s.text() for s in declarations_of(tried).declared.values() if s.needs_one_time]
    if expiring and "on_tuple" not in given and not hasattr(tried, "on_frontier"):
        raise QueryError(
            where,
            "state that expires needs calls that have one event time each",
            f"process(batch) with {expiring[0]}",
            "Write on_tuple instead of process, leave ttl out, or use self.state.columns.",
        )
    own = [m for m in ("snapshot", "restore") if getattr(kind, m) is not getattr(UserProcess, m)]
    if len(own) == 1:
        raise QueryError(where, "snapshot and restore belong together", f"{own[0]} alone")
    slots = [s for c in kind.__mro__ if c is not object for s in vars(c).get("__slots__", ())]
    if slots and not own:
        raise QueryError(
            where,
            "the state must be in plain attributes",
            "__slots__",
            "Leave __slots__ out, or write snapshot() and restore(state).",
        )


def output_of(tried: UserProcess) -> Output:
    where = f"process {_class(tried)}"
    output = getattr(tried, "output", None)
    if isinstance(output, pa.Schema):
        return tuple((f.name, own_type(f.type, f"{where} output {f.name}")) for f in output)
    if not isinstance(output, Mapping) or not all(isinstance(name, str) for name in output):
        raise QueryError(
            where,
            "the class must say its output",
            "nothing" if output is None else repr(output),
            'Add a class attribute, as output = {"name": "string", "times": "bigint"}.',
        )
    return tuple((name, _read_type(t, f"{where} output {name}")) for name, t in output.items())


def _read_type(type_: Any, where: str) -> pa.DataType:
    if isinstance(type_, pa.DataType):
        return own_type(type_, where)
    try:
        return _sql_type(exp.DataType.build(type_, dialect="spark"), where)
    except (sqlglot.errors.SqlglotError, ValueError):
        raise QueryError(
            where,
            "the type must be one of Spark SQL, or an Arrow type",
            repr(type_),
            'Write for example "bigint", "double", "string", "timestamp" or "array<string>".',
        ) from None


def _sql_type(parsed: exp.DataType, where: str) -> pa.DataType:
    if parsed.this == exp.DataType.Type.ARRAY and parsed.expressions:
        return pa.list_(_sql_type(parsed.expressions[0], where))
    return sql_type(parsed, where)


def _check_output(output: Output, where: str) -> None:
    if not output:
        raise QueryError(f"{where} output", "must have a column", "none")
    if any(name.lower() == EVENT_TIME for name, _ in output):
        raise QueryError(
            f"{where} output",
            f"the name {EVENT_TIME} belongs to the event time, which rows have by themselves",
            f"a column {EVENT_TIME}",
            "Leave it out, or give it another name.",
        )
    distinct_names([name for name, _ in output], f"{where} output")


def _check_keys(spec: ProcessSpec, where: str) -> None:
    if spec.keys is None:
        return
    if not callable(spec.keys):
        types = dict(spec.columns)
        several = len(spec.keys) == 1 and is_list(types[spec.keys[0]])
        for name in () if several else spec.keys:
            key_type(types[name], name, where)
    try:
        type_ = spec.key
    except Exception as error:
        raise QueryError(
            where,
            "the function must take a table without rows, from which the type of the keys is told",
            f"{type(error).__name__}: {error}",
        ) from error
    if type_ is None:
        return
    if pa.types.is_null(type_):
        raise QueryError(
            where,
            "the function must return an Arrow array that has a type also without rows",
            "none",
            "Write for example pa.array(keys, pa.list_(pa.string())).",
        )
    key_type(type_, "a key", where)
    if _KEY in dict(spec.columns):
        raise QueryError(
            where,
            f"the name {_KEY} belongs to the key for which a bucket sees a tuple",
            f"a column {_KEY}",
            "Give the column another name with select.",
        )


def _class(value: Any) -> str:
    return type(value).__name__
