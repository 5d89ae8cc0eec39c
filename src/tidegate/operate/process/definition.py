"""The class from which users derive their own operators, and the plan's description of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from tidegate.batch import ORDER, TS
from tidegate.operate.process.state import Declared, StateDeclarations
from tidegate.schema import TIME

if TYPE_CHECKING:
    from tidegate.operate.process.calls import ObjectCalls

BUCKET = "bucket"
KEY_COLUMN, KEY_POSITION = "~key", "~position"
"""The columns with the key for which a tuple is in a bucket, and its place among its keys."""

ROW = "row"
"""The column in which a result of `process` says for which row of the batch it was made."""

TRIGGER = tuple(f"trigger_{n}" for n in ("ts", "src", "seq", "order", "bucket", "number"))
"""The columns that order the rows: the tuple or timer that made them, the user's own order, the
bucket, and a count."""

CALLS = "_tidegate_calls"
"""The attribute with the engine's side of an object; no part of its state."""

_STATE = "_tidegate_state"
"""The attribute with the declared state of an object; no part of what `snapshot` returns."""

KeyFunction = Callable[[pa.Table], Any]
FilterFunction = Callable[[int, pa.Table], Any]


class Process:
    """A stateful operator of one's own: derive, say the output, and write `on_tuple`.

    ::

        class Longest(Process):
            output = {"user": "string", "seconds": "double"}

            def __init__(self):
                self.longest = self.state.map("longest", ttl="30 days")

            def on_tuple(self, tuple, keys):
                for user in keys:
                    if tuple.seconds > self.longest.get(user, 0):
                        self.longest[user] = tuple.seconds
                        yield {"user": user, "seconds": tuple.seconds}

    There is one object per bucket, made when the first tuple for one of its keys comes. It sees
    the tuples of its keys one by one in the total order, and nothing else. Rows get the time of
    the tuple they are made for. Instead of `on_tuple(tuple, keys)` a class may have
    `process(batch)`, which gets many tuples as an Arrow table, one row per tuple and key, and
    returns a table with an integer column `row` that says which row each result is made for; what
    it returns must not depend on how the tuples are cut into batches.

    A class with `on_frontier(ts)` may ask with `wake(ts)` to be called when all tuples up to and
    at `ts` have come; its rows get that time. With `process` it is then given one batch per
    distinct event time.

    Between batches only the state exists: what was declared with `self.state`, and what `snapshot`
    returns, by default all attributes, if they are plain values, Arrow data or numpy arrays. A
    batch reads and writes the entries of declared state that it uses, and all attributes whole.

    A class that says `mergeable = True` is for windows: `stream.window(...).group_by(...)
    .process(Class)`. There is one object per key and window, which sees tuples with `on_tuple` or
    `process` and gives no rows. `merge(other)` takes in what another object of the same key and
    window has seen, and `finish()` gives the rows when the window has ended. Tuples of a key may
    then be at several instances, as its partitioner likes. Rows must not depend on who saw which
    tuples and on the order of merging; `tidegate.testing.check_process` looks for a counterexample.
    """

    output: ClassVar[Mapping[str, str | pa.DataType] | pa.Schema]
    order: ClassVar[str | None] = None
    """An integer column of the output: rows that objects of several buckets make for one tuple come
    in its order, else in that of the buckets."""
    pickle: ClassVar[bool] = False
    mergeable: ClassVar[bool] = False
    """Whether it is for windows, of which several objects may each have seen a part."""

    @property
    def state(self) -> StateDeclarations:
        """Declares state by name in `__init__`: `self.state.map("seen")`, `.value("last")`,
        `.columns("window", {"price": "double"})`."""
        if self.mergeable:
            raise RuntimeError("state is not for a process that is mergeable: use attributes")
        return declarations_of(self)

    @state.setter
    def state(self, value: object) -> None:
        raise AttributeError("state is what declares state: give the attribute another name")

    @property
    def bucket(self) -> int:
        """The number of this object's bucket, from 0 on; not known yet in `__init__`."""
        return self._at_work("bucket").bucket

    @property
    def buckets(self) -> int:
        """How many buckets there are; it stays the same for the life of a query."""
        return self._at_work("buckets").total

    def wake(self, ts: datetime | int) -> None:
        """Ask for `on_frontier(ts)`; not before the tuple, and after the timer, that is at work."""
        self._at_work("wake").wake(ts)

    def snapshot(self) -> Any:
        """The state to keep; called after each batch in which the object was at work."""
        return {name: value for name, value in vars(self).items() if not _is_declared(name, value)}

    def restore(self, state: Any) -> None:
        """Make a new object what the one was that `snapshot` was called on."""
        for name in self.snapshot():
            del vars(self)[name]
        vars(self).update(state)

    def _at_work(self, asked: str) -> ObjectCalls:
        calls: ObjectCalls | None = vars(self).get(CALLS)
        if calls is None and self.mergeable:
            raise RuntimeError(f"{asked} is not for a process that is mergeable")
        if calls is None:
            raise RuntimeError(f"{asked} can be used when the object is at work, not in __init__")
        return calls


def declarations_of(made: Process) -> StateDeclarations:
    """The declared state of an object; empty where its class declares none."""
    declarations: StateDeclarations = vars(made).setdefault(_STATE, StateDeclarations())
    return declarations


def _is_declared(name: str, value: object) -> bool:
    return name in (CALLS, _STATE) or isinstance(value, Declared)


@dataclass(frozen=True)
class InitialState:
    """Which columns of a table are the key, and which are the initial values of maps.

    `states` has the names of the maps, which are also the names of their columns, and the time to
    live of each in microseconds; None for ever. `time` is the column that says when the values of a
    row were set; None where no value expires.
    """

    table: str
    keys: tuple[str, ...]
    states: tuple[tuple[str, int | None], ...]
    time: str | None = None

    def text(self) -> str:
        """What is read of the table, as `explain` says it."""
        since = "" if self.time is None else f", set at {self.time}"
        maps = ", ".join(name for name, _ in self.states)
        return f"a key begins with {maps} of table {self.table} by {', '.join(self.keys)}{since}"


@dataclass(frozen=True)
class ProcessSpec:
    """A process, ready to run.

    `columns` are the input columns under the user's names, without the event time. The engine's
    tables have them by position, under names of its own. `keys` are the columns of the key, or a
    function of the tuples that gives keys, or None where every bucket gets every tuple.
    """

    factory: Callable[[], Process]
    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...] | KeyFunction | None
    output: tuple[tuple[str, pa.DataType], ...]
    filter: FilterFunction | None
    name: str
    order: str | None = None
    initial: InitialState | None = None

    @cached_property
    def key(self) -> pa.DataType | None:
        """The type of a key from a function or a list; None where columns are the key."""
        if self.keys is None:
            return None
        types = dict(self.columns)
        if not callable(self.keys):
            type_ = types[self.keys[0]] if len(self.keys) == 1 else None
            return type_.value_type if type_ is not None and is_list(type_) else None
        none = [pa.nulls(0, type_) for type_ in types.values()]
        found = self.keys(self.seen(pa.nulls(0, pa.int64()), none))
        type_ = found.type if isinstance(found, pa.Array | pa.ChunkedArray) else pa.null()
        return type_.value_type if is_list(type_) else type_

    @property
    def routed(self) -> pa.Schema:
        """The rows from `assign` to `advance`: bucket, ts, src, seq, c0, c1, ..., and the key.

        One row for each tuple and key. Where `keys` is None one for each tuple, in EVERY_BUCKET.
        """
        fields = [pa.field(BUCKET, pa.int32()), *(pa.field(name, pa.int64()) for name in ORDER)]
        fields += [pa.field(f"c{i}", type_) for i, (_, type_) in enumerate(self.columns)]
        if self.key is not None:
            fields += [pa.field(KEY_COLUMN, self.key), pa.field(KEY_POSITION, pa.int32())]
        return pa.schema(fields)

    @property
    def result(self) -> pa.Schema:
        """The rows that `advance` gives: the output columns, then those that order the rows."""
        return pa.schema([*self.output, *((name, pa.int64()) for name in TRIGGER)])

    def seen(self, ts: pa.Array, columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.Table:
        """Tuples under the user's names, the event time first."""
        arrays = [ts.cast(TIME), *columns]
        return pa.table(arrays, names=[TS, *(name for name, _ in self.columns)])


def is_list(type_: pa.DataType) -> bool:
    """Whether a column of this type holds several keys per tuple."""
    kinds = pa.types
    return bool(
        kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_)
    )
