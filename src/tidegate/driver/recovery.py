"""Coming into a checkpoint: is it this query's, is it free, and which state does it hold."""

from __future__ import annotations

from typing import Any

from tidegate.driver.outlet import Outlets
from tidegate.errors import CheckpointError
from tidegate.plan.physical import Plan
from tidegate.state.lock import Lock
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.version import __version__


def enter(store: Store, lock: Lock, outlets: Outlets, plan: Plan, buckets: int) -> Manifest | None:
    """The newest manifest of a checkpoint, None where there is none yet; what crashes left is gone.

    Opens the sinks, and makes the checkpoint where there is none. Refuses one that belongs to
    another query or to a process that runs, and changes nothing then.
    """
    meta = store.meta()
    if meta is not None:
        lock.take()
    manifest = store.latest()
    wanted = {"fingerprint": plan.fingerprint, "buckets": buckets}
    if meta is None:
        if manifest is not None:
            raise CheckpointError(
                store.location,
                "must have its meta.json",
                "manifests without it",
                "Restore the file, or start from an empty checkpoint.",
            )
        outlets.open(None)
        schemas = "; ".join(str(plan.port(t.edge).schema) for t in plan.targets)
        store.create({**wanted, "version": __version__, "schema": schemas})
        lock.take()
    else:
        _check_meta(store.location, meta, wanted)
        outlets.open(None if manifest is None else manifest.batch)
    store.clean()
    return manifest


def _check_meta(location: str, meta: dict[str, Any], wanted: dict[str, Any]) -> None:
    if meta.get("fingerprint") != wanted["fingerprint"]:
        raise CheckpointError(
            location,
            "must be the checkpoint of this query",
            "one of another or of a changed query",
            "Use another --checkpoint, or the query it was made with.",
        )
    if meta.get("buckets") != wanted["buckets"]:
        raise CheckpointError(
            location,
            f"was made with {meta.get('buckets')} buckets, which are fixed for its life",
            f"--buckets {wanted['buckets']}",
            f"Use --buckets {meta.get('buckets')}, or another --checkpoint.",
        )
