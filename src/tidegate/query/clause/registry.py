"""The table of clauses, which SQL and Python read."""

from __future__ import annotations

from tidegate.query.clause.balance import Balance
from tidegate.query.clause.clause import Clause
from tidegate.query.clause.error import ErrorBound
from tidegate.query.clause.latency import Latency
from tidegate.query.clause.partitioner import PartitionedBy
from tidegate.query.clause.shed import Shed

_TABLE: tuple[type[Clause], ...] = (
    PartitionedBy,
    ErrorBound,
    Balance,
    Shed,
    Latency,
)

CLAUSES: dict[str, type[Clause]] = {clause.word: clause for clause in _TABLE}
"""By the word that follows WITH."""

METHODS: dict[str, type[Clause]] = {c.method: c for c in CLAUSES.values() if c.method}
"""By the method of a stream that asks for the same."""
