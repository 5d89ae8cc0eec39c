"""Calls an aggregate that a user has written as a class, and checks what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tidegate.errors import QueryError, TaskError
from tidegate.operate.aggregate.definition import RuledFunction
from tidegate.operate.aggregate.estimate import OWN
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints, flat
from tidegate.schema import own_type

State = dict[str, Any]
"""State columns by name: numpy arrays for numbers and booleans, Arrow arrays for other types."""


class Aggregator:
    """An aggregate function of one's own: derive, name the state, and write four methods.

    ::

        class VolumeWeightedPrice(Aggregator):
            state = {"value": pa.int64(), "volume": pa.int64()}
            result = pa.float64()

            def init(self, n):
                return {"value": np.zeros(n, np.int64), "volume": np.zeros(n, np.int64)}

            def fold(self, state, groups, cents, quantity):
                q = quantity.to_numpy()
                np.add.at(state["value"], groups, cents.to_numpy() * q)
                np.add.at(state["volume"], groups, q)
                return state

            def merge(self, state, groups, other):
                np.add.at(state["value"], groups, other["value"])
                np.add.at(state["volume"], groups, other["volume"])
                return state

            def finish(self, state):
                return pa.array(state["value"] / state["volume"] / 100)

    Every method works on whole columns. `groups` holds one group number per row, with repetitions;
    a state has one entry per group. Each group is treated by its own rows only, and folding rows in
    parts and merging the parts, in any order, must give the same bits: then the result does not
    depend on batches, sources or instances. Sums of floats do not have this property, sums of
    integers do; `tidegate.testing.check_aggregate` looks for a counterexample.
    Columns of numbers and booleans in a state may not hold NULL. An instance travels to the tasks,
    so it must pickle; its public attributes are its parameters and take part in the identity of
    the query.
    """

    state: ClassVar[Mapping[str, pa.DataType]]
    result: ClassVar[pa.DataType]
    mean_like: ClassVar[bool] = False
    """Whether a sample of a window gives nearly the same result as the window, as a mean does and
    a sum does not. Only then can WITH ERROR answer it from one; the result must be a number."""
    exact_fallback: ClassVar[bool] = True
    """Whether WITH ERROR keeps the arguments of all tuples, to compute windows exactly where the
    sample will not do. Without, the sample is all that is kept and answers every window, and the
    interval says how well, also where it is wider than was asked for."""
    skips_null: ClassVar[bool] = True
    """Whether a tuple whose arguments are all NULL changes nothing, as for the aggregates of SQL.
    WITH ERROR and WITH BALANCE then sample the other tuples alone. False is for a class that counts
    such tuples. `tidegate.testing.check_aggregate` checks it of a class that is `mean_like`."""

    @property
    def name(self) -> str:
        """The class and its public parameters: what tells one aggregate from another."""
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        public = sorted((k, v) for k, v in vars(self).items() if not k.startswith("_"))
        for parameter, value in public:
            if " at 0x" in repr(value):
                raise QueryError(
                    kind,
                    f"parameter {parameter} must print the same in every process",
                    repr(value),
                    "Give its type a __repr__, or keep it in an attribute that starts with _.",
                )
        return f"{kind}({', '.join(f'{k}={v!r}' for k, v in public)})"

    def init(self, n: int) -> State:
        """The neutral state of n groups."""
        raise NotImplementedError

    def fold(self, state: State, groups: Ints, *columns: pa.Array) -> State:
        """Add rows: one entry of `groups` and of every argument column per row, NULLs included."""
        raise NotImplementedError

    def merge(self, state: State, groups: Ints, other: State) -> State:
        """Add other states, one entry of `groups` and of every column of `other` for each."""
        raise NotImplementedError

    def finish(self, state: State) -> pa.Array:
        """The results, one per group, of the type `result`."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.name == getattr(other, "name", None)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class UserFamily:
    """Calls a user's aggregate and checks what it returns; errors name the class and the method."""

    user: Aggregator

    def __post_init__(self) -> None:
        for attribute, what in (("state", "names to Arrow types"), ("result", "an Arrow type")):
            if not hasattr(self.user, attribute):
                raise QueryError(
                    self._where,
                    f"the class must say its {attribute}",
                    "nothing",
                    f"Add a class attribute {attribute} ({what}).",
                )
        own_type(self.user.result, f"{self._where} result")

    @property
    def _where(self) -> str:
        return f"aggregate {type(self.user).__qualname__}"

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return tuple(self.user.state.items())

    @property
    def result(self) -> pa.DataType:
        return own_type(self.user.result, f"{self._where} result")

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        if not len(groups.codes):
            return self._states("init", self._call("init", self.user.init, groups.n), groups.n)
        returned = self._call("fold", self.user.fold, self._init(groups.n), groups.codes, *columns)
        return self._states("fold", returned, groups.n)

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        other = self._given(states)
        returned = self._call("merge", self.user.merge, self._init(groups.n), groups.codes, other)
        return self._states("merge", returned, groups.n)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        returned = self._call("finish", self.user.finish, self._given(states))
        return self._column("finish", "the result", returned, self.result, len(states[0]))

    def _init(self, n: int) -> State:
        returned = self._call("init", self.user.init, n)
        given = self._given(self._states("init", returned, n))
        return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}

    def _call(self, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            raise TaskError(
                f"{self._where}.{method}",
                "it must not raise",
                f"{type(error).__name__}: {error}",
                "Fix the class; the run continues from the last committed batch.",
            ) from error

    def _given(self, states: Sequence[pa.Array]) -> State:
        pairs = zip(self.state, states, strict=True)
        return {k: _numpy(column) if _is_plain(t) else column for (k, t), column in pairs}

    def _states(self, method: str, returned: Any, n: int) -> States:
        names = list(self.user.state)
        if not isinstance(returned, Mapping) or sorted(returned) != sorted(names):
            got = sorted(returned) if isinstance(returned, Mapping) else type(returned).__name__
            raise self._wrong(method, f"it must return a dict of {', '.join(names)}", str(got))
        columns = []
        for name, type_ in self.state:
            column = self._column(method, f"state {name}", returned[name], type_, n)
            if column.null_count and _is_plain(type_):
                raise self._wrong(method, f"state {name} must not hold NULL", "NULL")
            columns.append(column)
        return columns

    def _column(self, method: str, what: str, value: Any, type_: pa.DataType, n: int) -> pa.Array:
        try:
            if isinstance(value, pa.Array | pa.ChunkedArray):
                column = flat(value, type_)
            else:
                column = pa.array(value, from_pandas=False)
                column = column if column.type == type_ else column.cast(type_)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise self._wrong(method, f"{what} must be a column of {type_}", str(error)) from error
        if len(column) != n:
            raise self._wrong(method, f"{what} must have {n} entries", str(len(column)))
        return column

    def _wrong(self, method: str, requirement: str, got: str) -> TaskError:
        return TaskError(f"{self._where}.{method}", requirement, got, "Fix the class.")


def _is_plain(type_: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_boolean(type_))


def _numpy(column: pa.Array) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = column.to_numpy(zero_copy_only=False)
    return values


USER = RuledFunction(
    name="user",
    doc="An aggregate of the user's own.",
    what="a user aggregate",
    rule=Aggregator,
    titled=lambda user: str(user.name),
    skips_null=True,
    by_user=True,
    estimate=OWN,
    family=lambda *given: UserFamily(given[-1]),
)
