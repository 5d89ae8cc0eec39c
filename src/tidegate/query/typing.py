"""Names and types given to expressions, between sqlglot trees and the kernels that evaluate them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.kernels.expression import Expr


class UnknownKernel(QueryError):
    """A function or a conversion that only Spark can evaluate; with Spark the prefix runs there."""


Qualifiers = Mapping[str, Mapping[str, str]]


def bind(
    node: exp.Expression,
    columns: Mapping[str, pa.DataType],
    where: str,
    qualifiers: Qualifiers | None = None,
) -> Expr:
    """Resolve the names of an expression and give it Spark's types."""
    raise NotImplementedError


def bind_predicate(
    node: exp.Expression,
    columns: Mapping[str, pa.DataType],
    where: str,
    qualifiers: Qualifiers | None = None,
) -> Expr:
    """The same for a condition, which must be boolean."""
    raise NotImplementedError
