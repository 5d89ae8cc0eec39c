"""Compares the query of a run with the one that made the state of its checkpoint.

A query may be changed if its state stays valid: from the next batch on, rows are those of the new
query. Each manifest records the query that made it, so a crash in between leaves no doubt.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidegate.errors import CheckpointError, LostOutputError
from tidegate.plan.compatibility.change import QueryChange, compared, fitted, states
from tidegate.plan.compatibility.query_record import RecordedQuery
from tidegate.plan.physical import Plan
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

QUERY = "query"
"""The key in meta.json of the query that the checkpoint was made with."""

MOST_CHANGES = 20
"""The most changes of a query that a manifest keeps."""

_ALLOWED = (
    "What may change is what follows the state: HAVING, ORDER BY, LIMIT, the select list, and "
    "WHERE after a join."
)
_ONE_MORE = "What needs other state may come as one more output, last in the script."
_EMPTY = (
    "With --start-empty (in Python start_empty=True) it begins with the next tuples: windows that "
    "have begun by then have only those."
)
_REMEDY = "Use another --checkpoint and --out, or the query it was made with."

_log = logging.getLogger(__name__)


def fitting(plan: Plan, store: Store) -> Plan:
    """The plan that can read the state of the checkpoint; locks and refuses nothing yet."""
    meta = store.meta()
    old = None if meta is None else made_by(meta, newest_state(store))
    return plan if old is None else fitted(plan, old)


def made_by(meta: Mapping[str, Any], manifest: Manifest | None) -> RecordedQuery | None:
    """The query that made a state; None if an earlier version did not record it."""
    recorded = (manifest.query if manifest is not None else None) or meta.get(QUERY)
    return RecordedQuery.from_dict(recorded) if recorded else None


def check_query(
    location: str,
    meta: Mapping[str, Any],
    manifest: Manifest | None,
    plan: Plan,
    start_empty: bool,
) -> None:
    """Refuse a checkpoint whose state this plan cannot use.

    New subqueries and functions start empty with `start_empty`; without it they are refused.
    """
    old, new = made_by(meta, manifest), plan.recorded
    if old is None or new is None:
        if meta.get("fingerprint") != plan.fingerprint:
            got = "one of another or of a changed query"
            raise CheckpointError(location, "must be the checkpoint of this query", got, _REMEDY)
        return
    change = compared(old, new)
    same = old.fingerprint == new.fingerprint
    finished = manifest is not None and manifest.finished
    if change.reason is not None:
        got = f"one of a query that differs: {change.reason}"
        named = any(target.name is not None for target in plan.targets)
        allowed = f"{_ALLOWED} {_ONE_MORE}" if named else _ALLOWED
        raise _refused(location, change, got, "" if finished else allowed)
    if change.empty and not start_empty:
        why = [*([states(old, new)] if change.fresh else []), *change.lacks]
        why += [] if finished else [f"{', '.join(change.empty)} would start empty"]
        got = f"one of a query that differs: {', and '.join(why)}"
        raise _refused(location, change, got, "" if finished else _EMPTY)
    if not same and not change.parts:
        raise _refused(location, change, "one of another or of a changed query")
    if not same and finished:
        raise _refused(location, change, "one of a changed query, and its run has finished")


def _refused(location: str, change: QueryChange, got: str, allowed: str = "") -> CheckpointError:
    changed = ["What changed:", *change.lines, ""] if change.parts else [""]
    remedy = "\n".join(changed) + " ".join(part for part in (_REMEDY, allowed) if part)
    return CheckpointError(location, "must be the checkpoint of this query", got, remedy)


class QueryLog:
    """Records in every manifest which query made it; one object per run."""

    def __init__(self, location: str, meta: Mapping[str, Any], plan: Plan) -> None:
        self._location, self._meta, self._plan = location, meta, plan
        now = None if plan.recorded is None else plan.recorded.to_dict()
        self._query = {} if now is None or now == meta.get(QUERY) else now

    def change_of(self, manifest: Manifest) -> QueryChange | None:
        """The difference to the query that made a state; None if it is this query."""
        old, new = made_by(self._meta, manifest), self._plan.recorded
        if old is None or new is None or old.fingerprint == new.fingerprint:
            return None
        return compared(old, new)

    def tell(self, manifest: Manifest) -> None:
        """Log at a start what has changed since a state."""
        change = self.change_of(manifest)
        if change is not None:
            first = manifest.batch + 1
            _log.warning(
                "%s: the query has changed; from batch %d on: %s",
                self._location,
                first,
                change.text,
            )

    def signed(self, previous: Manifest, current: Manifest) -> Manifest:
        """The manifest of a batch with its query, and with the change if it is the first of it."""
        change, changes = self.change_of(previous), previous.changes
        if change is not None:
            changes = (*changes, {"batch": current.batch, "changed": change.text})
        return replace(current, query=self._query, changes=changes[-MOST_CHANGES:])

    def refuse_replay(self, manifest: Manifest, reason: LostOutputError) -> None:
        """Refuse to repeat a lost batch with another query than the one that made it."""
        change = self.change_of(manifest)
        if change is None and not manifest.was_cut_over:
            return
        got = f"batch {manifest.batch} was made by another query, which alone can make it again"
        remedy = "Put the output back, or go back to the query before with the state that is kept."
        if change is not None:
            remedy = (
                "Start once with that query, until a batch is done, then with this one. "
                f"What changed: {change.text}."
            )
        raise LostOutputError(
            reason.where, reason.requirement, f"{reason.got}; and {got}", remedy
        ) from reason


def newest_state(store: Store) -> Manifest | None:
    """The newest manifest, also that of a run which has committed nothing yet."""
    numbers = store.numbers()
    return store.manifest(numbers[-1]) if numbers else None
