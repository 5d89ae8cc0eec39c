"""The table of clauses, for SQL and Python."""

from __future__ import annotations

from importlib import import_module

from tidegate.query.clause.clause import Clause

_TABLE = (
    ("partitioner", "PartitionedBy"),
    ("error", "ErrorBound"),
    ("balance", "Balance"),
    ("shed", "Shed"),
    ("latency", "LatencyTarget"),
    ("emit", "EmitEvery"),
)
"""A new clause is a line here: its file and its class. Messages list clauses in this order."""

CLAUSES: dict[str, type[Clause]] = {
    made.word: made
    for made in (getattr(import_module(f"{__package__}.{file}"), name) for file, name in _TABLE)
}
"""Clauses by their first word (after WITH, if they have it)."""

METHODS: dict[str, type[Clause]] = {c.method: c for c in CLAUSES.values() if c.method}
"""Clauses by the stream method that asks for the same."""
