"""Enters a checkpoint: is it this query's, is it free, and which state does it hold.

A run that reads to the end of its input emits its last windows. What comes afterwards may belong to
those, so a start on a finished checkpoint does not read it: it is refused, and named.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidegate.clock import utc_now
from tidegate.driver.change import QUERY, check_newest, check_query
from tidegate.driver.options import RunOptions
from tidegate.driver.outlet import Outlets
from tidegate.errors import CheckpointError
from tidegate.plan.physical import Plan
from tidegate.state.identity import IDENTITY, identity_of, new_identity
from tidegate.state.lock import Lock
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.version import __version__

_NAMED = 3
"""How many sources a message names."""


def enter(
    store: Store,
    lock: Lock,
    outlets: Outlets,
    plan: Plan,
    options: RunOptions,
    first: Manifest,
) -> Manifest:
    """The state a run goes on from, as its owner: the newest manifest of a checkpoint, or `first`.

    Opens the sinks, and makes the checkpoint where there is none. Refuses one that belongs to
    another query or to a run that is at work, and changes nothing then. Where locks do not reach,
    the run that was there before is fenced from now on, unless this one withdraws.
    """
    wanted = {"fingerprint": plan.fingerprint, "buckets": options.buckets}
    first = replace(first, holder=this_process())
    if store.meta() is None:
        if store.numbers():
            raise CheckpointError(
                store.location,
                "must have its meta.json",
                "manifests without it",
                "Restore the file, or start from an empty checkpoint.",
            )
        identity = new_identity()
        outlets.open(None, checkpoint=identity)
        _begin(store, lock, plan, {**wanted, IDENTITY: identity})
        return first
    lock.take()
    # Read again: until it was locked, another run may have begun with it or ended.
    meta = _checked_meta(store.location, store.meta(), options.buckets)
    check_newest(store, meta, plan, options.start_empty)
    store.settle()
    manifest = store.enter(first, first.holder)
    # Where locks do not reach it may be that of another run.
    check_query(store.location, meta, manifest, plan, options.start_empty)
    newest = manifest if manifest.batch >= 0 else None
    outlets.open(newest, manifest.owner, identity_of(store.location, meta))
    return manifest


def this_process() -> dict[str, Any]:
    """Who uses a checkpoint, for the message of a run that finds it taken."""
    since = utc_now().isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")
    return {"host": platform.node(), "process": os.getpid(), "since": since}


def _begin(store: Store, lock: Lock, plan: Plan, wanted: dict[str, Any]) -> None:
    """Make a checkpoint, and be the one that did."""
    store.make()
    lock.take()
    schemas = "; ".join(str(plan.port(t.edge).schema) for t in plan.targets)
    about = {**wanted, "version": __version__, "schema": schemas}
    if plan.recorded is not None:
        about[QUERY] = plan.recorded.to_dict()
    if not store.begin(about):
        raise CheckpointError(
            store.location,
            "must be used by one run at a time",
            "another run that has begun with it just now",
            "Wait until it has ended, or stop it, and start again.",
        )


def _checked_meta(location: str, meta: dict[str, Any] | None, buckets: int) -> dict[str, Any]:
    if meta is None:
        raise CheckpointError(
            location, "must stay while a run begins", "a checkpoint that is gone", "Start again."
        )
    if meta.get("buckets") != buckets:
        raise CheckpointError(
            location,
            f"was made with {meta.get('buckets')} buckets, which are fixed for its life",
            f"--buckets {buckets}",
            f"Use --buckets {meta.get('buckets')}, or another --checkpoint and --out.",
        )
    return meta


def check_finished(location: str, new: Sequence[str]) -> None:
    """Refuse a finished checkpoint where there are sources that it has not read, or not whole."""
    if not new:
        return
    named = ", ".join(new[:_NAMED])
    more = f" and {len(new) - _NAMED:,} more" if len(new) > _NAMED else ""
    raise CheckpointError(
        location,
        "is finished: its last windows are closed, and nothing can be added to them",
        f"new input in {named}{more}",
        "Run over all of it with another --checkpoint and another --out. To take new input at each "
        "run, begin such a checkpoint with --available-now.",
    )
