"""The history of mappings: the newest epochs are in the manifest, those before in files beside it.

A file `epoch/NNNNNNNN.O.json` has some epochs in a row and is named by the number of its first and
by the run that wrote it. It is written whole, before the manifest that leaves them out; that one
says how many are in files and by whom, so what a crash left beyond that does not count, and what a
run adds that another has taken the checkpoint from does not either. Hence no epoch is missing or
there twice, and nothing is appended to, which not every store can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tidegate.state.manifest import Manifest
from tidegate.state.name import epochs_name, logged_by
from tidegate.state.seal import damaged, seal, unseal
from tidegate.state.store import Store

KEPT = 64
"""How many epochs a manifest has at most."""

MOVED = 32
"""How many of them go into a file at once: a switch in 32 writes one."""


def shortened(store: Store, manifest: Manifest) -> Manifest:
    """A manifest that is to be published, with its oldest epochs in files where they are many."""
    logged, epochs, by = manifest.epochs_logged, manifest.epochs, manifest.epochs_by
    while len(epochs) > KEPT:
        body = {"first": logged, "epochs": list(epochs[:MOVED])}
        store.write(epochs_name(logged, manifest.owner), seal(body).encode())
        if not by or by[-1][1] != manifest.owner:
            by = (*by, (logged, manifest.owner))
        logged, epochs = logged + MOVED, epochs[MOVED:]
    return replace(manifest, epochs_logged=logged, epochs=epochs, epochs_by=by)


def logged(store: Store, manifest: Manifest) -> Iterator[Mapping[str, Any]]:
    """The epochs before those that a manifest has, oldest first; damage is a StateError.

    Reads one file at a time.
    """
    number = 0
    while number < manifest.epochs_logged:
        name = epochs_name(number, logged_by(manifest, number))
        body = unseal(store.read(name), store.files.full(name))
        if body.get("first") != number or not body.get("epochs"):
            raise damaged(store.files.full(name), f"the epochs from {body.get('first')} on")
        yield from body["epochs"]
        number += len(body["epochs"])
