"""A mergeable process as an aggregate function: its objects are the states of windows.

The engine folds, merges and finishes panes; this module calls the user's class for that. Between
calls an object exists only as the bytes of its `snapshot`, and is restored to be merged or
finished. So what is stored, sent and merged is the same, and two objects never share anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.calendar.microsecond import time_text
from tidegate.errors import TaskError
from tidegate.operate.aggregate.definition import ANYTHING, RuledFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, integers
from tidegate.operate.process.calls import FIX, PLAIN
from tidegate.operate.process.definition import Process, ProcessSpec
from tidegate.operate.process.feed import BucketRows, FarTime, Feed
from tidegate.operate.process.output_rows import Mistake, OutputRows
from tidegate.operate.process.snapshot import StoredHead, read, write
from tidegate.operate.process.value_json import NotPlain

OBJECT = pa.large_binary()
"""The type of a state: the bytes of one object, as a checkpoint has it."""

_MOST_COLUMNS = 4096


@dataclass(frozen=True)
class MergeableProcess:
    """A process over windows, without the types of its columns.

    `columns` are the names of the columns that it sees, `keys` the ones that the windows are
    grouped by. `identity` tells classes apart, the same in every run. Messages use `name`.
    """

    factory: Callable[[], Process]
    identity: str
    name: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    output: tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class ObjectFamily:
    """Makes, merges and finishes one object for each group; errors name class and method."""

    process: MergeableProcess
    types: tuple[pa.DataType, ...]

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return (("object", OBJECT),)

    @property
    def result(self) -> pa.DataType:
        return pa.list_(pa.struct(self.process.output))

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        """Make one object for each group, and let it see the group's tuples in the total order.

        The last three columns are those of the order.
        """
        *seen, ts, src, seq = columns
        order = np.lexsort([*(integers(place) for place in (seq, src, ts)), groups.codes])
        codes = groups.codes[order]
        rows = pa.table([pa.array(groups.codes, pa.int32()), ts, src, seq, *seen], self.spec.routed)
        feed = Feed(self.spec, rows.take(pa.array(order)).combine_chunks())
        bounds = pairwise(np.searchsorted(codes, np.arange(groups.n + 1)).tolist())
        return [pa.array([self._folded(feed.share(*both)) for both in bounds], OBJECT)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        kept = states[0].take(pa.array(groups.order)).to_pylist()
        made = []
        for start, count in zip(groups.starts.tolist(), groups.counts.tolist(), strict=True):
            parts = kept[start : start + count]
            made.append(parts[0] if count == 1 else self._merged(parts))
        return [pa.array(made, OBJECT)]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        (kept,) = states
        output = OutputRows(self.spec)
        try:
            for number, state in enumerate(kept):
                made = self._call("finish", self._read(state.as_py()).finish)
                if made is not None:
                    output.add(number, "finish", (0, 0, 0), made)
            rows = output.table()
        except Mistake as mistake:
            raise self._wrong(mistake.requirement, mistake.got) from mistake
        return _lists(rows, len(kept), pa.struct(self.process.output))

    @cached_property
    def spec(self) -> ProcessSpec:
        """The process as `Feed` and `OutputRows` need it."""
        process = self.process
        return ProcessSpec(
            factory=process.factory,
            columns=tuple(zip(process.columns, self.types, strict=True)),
            keys=process.keys or None,
            output=process.output,
            filter=None,
            name=process.name,
        )

    def _folded(self, share: BucketRows) -> bytes:
        made = self._new()
        if not hasattr(made, "on_tuple"):
            times = [time_text(int(ts)) for ts in share.ts[[0, -1]]] if share.rows else []
            at = f"tuples from {' to '.join(times)}"
            self._silent("process", self._call("process", made.process, share.seen(), at=at), at)
            return self._written(made)
        ts, on_tuple = 0, made.on_tuple
        try:
            for (ts, _, _), tuple_, keys in share.calls():
                given = on_tuple(tuple_, keys)
                if given is not None:
                    given = list(given) if isinstance(given, Iterator) else given
                    self._silent("on_tuple", given, f"tuple at {time_text(ts)}")
        except TaskError:
            raise
        except FarTime as far:
            requirement = f"the times in {far.column} must be those of the years 1 to 9999"
            remedy = "Filter out the others, cast them, or write process(table) for Arrow tables."
            raise self._wrong(requirement, far.time, remedy) from far
        except (Exception, SystemExit) as error:
            raise self._raised("on_tuple", error, f"tuple at {time_text(ts)}") from error
        return self._written(made)

    def _merged(self, parts: Sequence[bytes]) -> bytes:
        """Merge several objects of a group into the first one, from left to right."""
        first, *others = (self._read(part) for part in parts)
        for other in others:
            given = self._call("merge", first.merge, other)
            if given is not None and given is not first:
                requirement = f"{self.process.name}.merge must change the object, and return None"
                raise self._wrong(requirement, type(given).__name__)
        return self._written(first)

    def _silent(self, method: str, given: Any, at: str) -> None:
        """Refuse rows before `finish`: other objects may have seen tuples of the window."""
        empty = given is None or (isinstance(given, list) and not given)
        if not empty and not (isinstance(given, pa.Table) and not given.num_rows):
            requirement = (
                f"{self.process.name}.{method} must give no rows, because others may have seen "
                "tuples of the same key and window"
            )
            got = f"{type(given).__name__} for {at}"
            raise self._wrong(requirement, got, "Give rows in finish(), at the window's end.")

    def _new(self) -> Any:
        return self._call("__init__", self.process.factory)

    def _read(self, state: bytes) -> Any:
        made = self._new()
        kept = read(state, made.pickle, f"process {self.process.name}")
        self._call("restore", made.restore, kept.state)
        return made

    def _written(self, made: Process) -> bytes:
        state = self._call("snapshot", made.snapshot)
        name = self.process.name
        try:
            return write(StoredHead(state, ()), made.pickle)
        except NotPlain as error:
            requirement = f"the state of {name} must be made of plain values"
            raise self._wrong(requirement, f"{error.path}, which {error.problem}", PLAIN) from error
        except Exception as error:
            requirement = f"the state of {name} must be one that can be written"
            raise self._wrong(requirement, f"{type(error).__name__}: {error}", PLAIN) from error

    def _call(
        self, method: str, function: Callable[..., Any], *given: Any, at: str | None = None
    ) -> Any:
        try:
            made = function(*given)
            return list(made) if isinstance(made, Iterator) else made
        except (Exception, SystemExit) as error:
            raise self._raised(method, error, at) from error

    def _raised(self, method: str, error: BaseException, at: str | None) -> TaskError:
        got = f"{type(error).__name__}: {error}{f', for {at}' if at else ''}"
        return self._wrong(f"{self.process.name}.{method} must not raise", got)

    def _wrong(self, requirement: str, got: str, remedy: str = FIX) -> TaskError:
        return TaskError(f"process {self.process.name}", requirement, got, remedy)


def _lists(rows: pa.Table, count: int, type_: pa.StructType) -> pa.Array:
    """One list of rows for each of `count` groups, in the order in which the rows were given."""
    number, place = (rows.column(f"trigger_{n}").to_numpy() for n in ("bucket", "number"))
    rows = rows.take(pa.array(np.lexsort([place, number]))).combine_chunks()
    sizes: Ints = np.bincount(number, minlength=count)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    columns = [rows.column(field.name) for field in type_]
    cells = [c.chunk(0) if c.num_chunks == 1 else pa.nulls(0, c.type) for c in columns]
    structs = pa.StructArray.from_arrays(cells, fields=list(type_))
    return pa.ListArray.from_arrays(pa.array(offsets), structs)


PROCESS = RuledFunction(
    name="process",
    doc="A process of the user's own, whose objects can be merged.",
    arguments=(ANYTHING,) * _MOST_COLUMNS,
    what="a process",
    rule=MergeableProcess,
    titled=lambda rule: f"process {rule.identity}",
    in_order=True,
    by_user=True,
    unsampled="what a process of one's own makes of a sample is not known",
    unscaled="what a process of one's own makes of some of the tuples is not known",
    family=lambda *given: ObjectFamily(given[-1], given[:-1]),
)
