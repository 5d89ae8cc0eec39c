"""The history of mappings: the newest epochs are in the manifest, earlier ones in files beside it.

A file `epoch/NNNNNNNN.O.json` has consecutive epochs. Its name has the number of the first one and
the run that wrote it. It is written whole, before the first manifest that leaves these epochs out.
A manifest says how many epochs are in files, and which runs wrote these. So files that a crash left
behind, or that a run wrote after another had taken the checkpoint over, do not count: no epoch is
missing or there twice. No file is ever appended to, which not every store can do.
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
"""The most epochs that a manifest has."""

MOVED = 32
"""The number of epochs that are moved to a file: one switch in so many writes a file."""


def shortened(store: Store, manifest: Manifest) -> Manifest:
    """A manifest to be published, with its oldest epochs moved to files if there are many."""
    logged, epochs, by = manifest.epochs_logged, manifest.epochs, manifest.epochs_by
    while len(epochs) > KEPT:
        body = {"first": logged, "epochs": list(epochs[:MOVED])}
        store.write(epochs_name(logged, manifest.owner), seal(body).encode())
        # Only from here on are files named by this run: earlier ones keep their names.
        if not by or by[-1][1] != manifest.owner:
            by = (*by, (logged, manifest.owner))
        logged, epochs = logged + MOVED, epochs[MOVED:]
    return replace(manifest, epochs_logged=logged, epochs=epochs, epochs_by=by)


def logged(store: Store, manifest: Manifest) -> Iterator[Mapping[str, Any]]:
    """The epochs before those in a manifest, oldest first, one file at a time.

    Damage is a StateError.
    """
    number = 0
    while number < manifest.epochs_logged:
        name = epochs_name(number, logged_by(manifest, number))
        body = unseal(store.read(name), store.files.full(name))
        if body.get("first") != number or not body.get("epochs"):
            raise damaged(store.files.full(name), f"the epochs from {body.get('first')} on")
        yield from body["epochs"]
        number += len(body["epochs"])
