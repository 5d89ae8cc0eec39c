"""One unit of a query lowered, between the rules for each operator and the whole plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.plan.fingerprint import meaning
from tidegate.plan.physical import Operator, Port, Prefix
from tidegate.plan.prefix import spark_sql
from tidegate.plan.pushdown import Leaf
from tidegate.query.name import NamedExpr


@dataclass(frozen=True)
class Lowered:
    """The parts of a subquery; `lines` say what it means, for the fingerprint."""

    leaves: tuple[Leaf, ...]
    prefixes: tuple[Prefix, ...]
    operator: Operator | None
    ports: tuple[Port, ...]
    lines: tuple[str, ...]


def output_lines(outputs: Iterable[NamedExpr]) -> list[str]:
    """What a port puts out, for the fingerprint."""
    return [f"output {n!r} {meaning(spark_sql(e))}" for n, e in outputs]
