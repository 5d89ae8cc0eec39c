"""Enters a checkpoint: checks that it belongs to this query and is free, and finds its state.

A run that reads to the end of its input emits its last windows. Input that comes later may belong
to those windows. A start on a finished checkpoint is therefore refused if there is new input, and
the error names that input.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidegate.clock import utc_now
from tidegate.driver.checkpoint.change import QUERY, check_query, newest_state
from tidegate.driver.checkpoint.signing import check_key
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
"""The most sources that a message names."""


def enter(
    store: Store,
    lock: Lock,
    outlets: Outlets,
    plan: Plan,
    options: RunOptions,
    first: Manifest,
) -> Manifest:
    """Become the owner of a checkpoint; return its newest manifest, or `first` if it is new.

    Opens the sinks, and makes the checkpoint if there is none. A checkpoint of another query, or
    one that a run is using, is refused and stays unchanged. Where there are no file locks, an
    earlier run is fenced from now on, unless this one calls `Store.withdraw`.
    """
    wanted = {"fingerprint": plan.fingerprint, "buckets": options.buckets}
    first = replace(first, holder=this_process(), signed=options.sign is not None)
    if store.meta() is None:
        if store.numbers():
            raise CheckpointError(
                store.location,
                "must have its meta.json",
                "manifests without it",
                "Restore the file, or start from an empty checkpoint.",
            )
        identity = new_identity()
        # Before the checkpoint is made: a sink that refuses then leaves nothing behind.
        outlets.open(None, checkpoint=identity)
        _begin(store, lock, plan, {**wanted, IDENTITY: identity})
        return first
    lock.take()
    # Read again: before the lock was taken, another run may have begun here or ended.
    meta = _checked_meta(store.location, store.meta(), options.buckets)
    there = newest_state(store)
    check_query(store.location, meta, there, plan, options.start_empty)
    check_key(store.location, there, options.sign)
    # A run that was killed right after its commit may have left files that are not on the disk yet.
    # They must be, before a newer manifest builds on them: power may fail in between.
    store.settle()
    manifest = store.enter(first, first.holder)
    # Checked again: without file locks, another run may have committed since.
    check_query(store.location, meta, manifest, plan, options.start_empty)
    newest = manifest if manifest.batch >= 0 else None
    outlets.open(newest, manifest.owner, identity_of(store.location, meta))
    return manifest


def this_process() -> dict[str, Any]:
    """This host and process; a run that finds the checkpoint in use names them in its error."""
    since = utc_now().isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")
    return {"host": platform.node(), "process": os.getpid(), "since": since}


def _begin(store: Store, lock: Lock, plan: Plan, wanted: dict[str, Any]) -> None:
    """Make the checkpoint; a CheckpointError if another run made it first."""
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
    """Refuse a finished checkpoint if `new` names sources that it has not read to their end."""
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
