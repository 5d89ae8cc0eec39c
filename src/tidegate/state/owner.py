"""Fences a checkpoint: one run at a time may publish, the one that took it over last.

Where locks do not reach, a run may go on that does not know yet that another has taken over. It can
do no harm: names of files have the owner in them (`owned`), so it writes over nothing and deletes
nothing of others; and its next manifest is refused, because the number is taken (`publish`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate import schedule
from tidegate.durable import Due
from tidegate.errors import FencedError, StateError
from tidegate.remote.folder import Entry
from tidegate.state.manifest import Manifest
from tidegate.state.name import manifest_name

if TYPE_CHECKING:
    from tidegate.state.store import Store

TOKEN = "token"
"""What a holder has that no other has."""

_TRIES = 100
"""How often another run may come first while one takes a checkpoint over."""

Found = tuple[list[Manifest], list[Entry]]
"""The manifests that are kept, oldest first, and all files that are there."""


class Owner:
    """What one run has of a checkpoint: a fencing number, greater than that of all before it.

    `number` is 0 until it has taken the checkpoint over.
    """

    def __init__(self, store: Store) -> None:
        self.number = 0
        self._store = store
        self._entry: Manifest | None = None
        """What it has entered with, while it has done nothing else."""
        self._holder: Mapping[str, Any] = {}
        self._newest = -1
        """The number of its newest manifest."""

    def enter(self, first: Manifest, holder: Mapping[str, Any]) -> tuple[Manifest, Found]:
        """Take the checkpoint over: `Store.enter`, with what was there before."""
        # Two that begin in the same second may be called alike, and must not take the manifest of
        # the other for their own.
        holder = {**holder, TOKEN: schedule.current().token()}
        store = self._store
        for _ in range(_TRIES):
            before = store.numbers()
            try:
                kept, listed = store.kept(), store.listed()
                if kept:
                    store.check_present(kept[-1], listed)
            except StateError:
                if store.numbers() == before:
                    raise
                continue  # a run that is at work has gone on, and deleted what it was before
            entry = newest = kept[-1] if kept else first
            if not newest.finished:
                entry = replace(newest, owner=newest.owner + 1, holder=dict(holder))
            if newest.finished or self._entered(entry):
                self.number, self._newest, self._holder = entry.owner, entry.number, dict(holder)
                self._entry = entry if entry is not newest else None
                return entry, ([*(m for m in kept if m.batch < entry.batch), entry], listed)
        raise self._fenced()

    def _entered(self, entry: Manifest) -> bool:
        """Take the number of an entry; False where a run that is at work has gone on meanwhile.

        It may have let go of the number again: then there are greater ones, and it is given back.
        """
        if not self._put(entry):
            return False
        if self._store.numbers()[-1] > entry.number:
            self._store.delete(manifest_name(entry.number))
            return False
        return True

    def withdraw(self) -> None:
        """Undo `enter`, where nothing was done since: the run before, if any, has it again."""
        entry, self._entry = self._entry, None
        if entry is not None and self._store.numbers()[-1] == entry.number:
            self._store.delete(manifest_name(entry.number))

    def stay(self) -> None:
        """It has begun to change something, and does not withdraw any more."""
        self._entry = None

    def resumed(self, manifest: Manifest) -> Manifest:
        """A state before the newest, of which the run that has entered makes the next one.

        What it writes from now on has other names than what it wrote for the newest.
        """
        self.number = self._newest - manifest.batch
        return replace(manifest, owner=self.number, holder=self._holder)

    def publish(self, manifest: Manifest, due: Due | None = None) -> None:
        """Write a manifest unless another run has taken the checkpoint over: `Store.publish`."""
        self._newest, self._entry = manifest.number, None
        numbers = self._store.numbers
        try:
            put = self._put(manifest, due)
        except StateError:
            if numbers()[-1:] < [manifest.number] or self._is_there(manifest):
                raise
            put = False  # who has taken over has also removed what was to be synced
        # The number may have been taken and let go again: then there are greater ones.
        if not put or numbers()[-1] > manifest.number:
            raise self._fenced()

    def check(self) -> None:
        """A FencedError where another run has taken the checkpoint over."""
        if self._store.numbers()[-1:] > [self._newest]:
            raise self._fenced()

    def _put(self, manifest: Manifest, due: Due | None = None) -> bool:
        """Write a manifest under its number; False where another has it."""
        name, text = manifest_name(manifest.number), manifest.to_json().encode()
        # Ours where the answer to the first of two tries was lost.
        return self._store.files.put_new(name, text, due) or self._is_there(manifest)

    def _is_there(self, manifest: Manifest) -> bool:
        """Whether this manifest, and no other, has its number."""
        try:
            found = self._store.files.buffer(manifest_name(manifest.number)).to_pybytes()
            return bool(found == manifest.to_json().encode())
        except FileNotFoundError:
            return False

    def _fenced(self) -> FencedError:
        by = self._store.manifest(self._store.numbers()[-1])
        return FencedError(
            self._store.location,
            "must be used by one run at a time",
            f"another run that took it over: {who(by)}",
            "Nothing was published since. Leave the checkpoint to that run; or stop it and start "
            "this one again.",
        )


def who(manifest: Manifest) -> str:
    """The run that wrote a manifest, as far as it is known, for a message."""
    known = [f"{name} {value}" for name, value in manifest.holder.items() if name != TOKEN]
    return ", ".join([f"owner {manifest.owner}", *known])
