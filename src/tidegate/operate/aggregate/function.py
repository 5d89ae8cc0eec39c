"""One aggregate of a select list, between the plan that names it and the kernels that run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import QueryError, near
from tidegate.operate.aggregate.user import Aggregator, UserFamily
from tidegate.operate.kernels.additive import Count, ExactTotal, FloatTotal
from tidegate.operate.kernels.extreme import Edge, Extreme
from tidegate.operate.kernels.family import Family
from tidegate.operate.kernels.holistic import Distinct, Quantile
from tidegate.operate.kernels.moment import Moment
from tidegate.operate.kernels.order import is_ordered
from tidegate.schema import type_name

ORDER_COLUMNS = ("ts", "src", "seq")
"""The place of a tuple in the total order; folded rows carry it for FIRST and LAST."""


@dataclass(frozen=True)
class Function:
    """A named aggregate over argument columns; one that cannot be computed cannot be made.

    `type` is the type of the first argument, None for COUNT(*) and where there is none.
    """

    name: str
    kind: str
    arguments: tuple[str, ...]
    type: pa.DataType | None
    fraction: float | None = None
    user: Aggregator | None = None

    def __post_init__(self) -> None:
        if self.kind not in _FAMILIES:
            raise QueryError(
                "aggregate", "the function must be known", self.kind, near(self.kind, _FAMILIES)
            )
        if self.kind not in ("count", "user") and (len(self.arguments) != 1 or self.type is None):
            got = str(len(self.arguments))
            raise QueryError(self._where, "exactly one argument with a type is required", got)
        _ = self.family

    @property
    def _where(self) -> str:
        return self.kind.upper()

    @property
    def family(self) -> Family:
        """The kernels of this function."""
        return _FAMILIES[self.kind](self)

    @property
    def result(self) -> pa.DataType:
        """The type of the result column."""
        return self.family.result

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The state columns in a partial table, as `name.part`."""
        return tuple((f"{self.name}.{part}", type_) for part, type_ in self.family.state)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of folded rows that `family.fold` takes, in its order."""
        return self.arguments + (ORDER_COLUMNS if self.kind in ("first", "last") else ())

    def _must(self, holds: bool, requirement: str, got: str, remedy: str | None = None) -> None:
        if not holds:
            raise QueryError(self._where, requirement, got, remedy)

    def _total(self, mean: bool) -> Family:
        self._must_be_numeric()
        if pa.types.is_floating(self.type):
            return FloatTotal(mean)
        return ExactTotal(self.type, mean)

    def _moment(self, root: bool) -> Family:
        self._must_be_numeric()
        return Moment(root)

    def _quantile(self) -> Family:
        self._must_be_numeric()
        fraction = self.fraction
        if fraction is None or not 0.0 <= fraction <= 1.0:
            raise QueryError(self._where, "the fraction must lie from 0 to 1", str(fraction))
        return Quantile(float(fraction))

    def _compared(self, make: Callable[[pa.DataType], Family]) -> Family:
        self._must(is_ordered(self.type), "a type that can be compared is required", self._type)
        return make(self.type)

    def _user(self) -> Family:
        if self.user is None:
            raise QueryError("aggregate", "an Aggregator is required", "nothing")
        return UserFamily(self.user)

    def _must_be_numeric(self) -> None:
        kinds, type_ = pa.types, self.type
        numeric = kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_decimal(type_)
        self._must(numeric, "a numeric argument is required", self._type, "Cast the argument.")

    @property
    def _type(self) -> str:
        return type_name(self.type)


_FAMILIES: dict[str, Callable[[Function], Family]] = {
    "count": lambda f: Count(),
    "sum": lambda f: f._total(mean=False),
    "mean": lambda f: f._total(mean=True),
    "min": lambda f: f._compared(lambda t: Extreme(t, largest=False)),
    "max": lambda f: f._compared(lambda t: Extreme(t, largest=True)),
    "var": lambda f: f._moment(root=False),
    "stddev": lambda f: f._moment(root=True),
    "quantile": lambda f: f._quantile(),
    "distinct": lambda f: f._compared(Distinct),
    "first": lambda f: Edge(f.type, last=False),
    "last": lambda f: Edge(f.type, last=True),
    "user": lambda f: f._user(),
}
