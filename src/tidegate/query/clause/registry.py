"""The table of clauses, which SQL and Python read."""

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
"""A new clause is a line here: its file and its class. Messages list the clauses in this order."""

CLAUSES: dict[str, type[Clause]] = {
    made.word: made
    for made in (getattr(import_module(f"{__package__}.{file}"), name) for file, name in _TABLE)
}
"""By the word that begins them, after WITH where they have one."""

METHODS: dict[str, type[Clause]] = {c.method: c for c in CLAUSES.values() if c.method}
"""By the method of a stream that asks for the same."""
