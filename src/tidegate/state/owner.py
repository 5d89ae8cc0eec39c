"""Fences a checkpoint: only the run that took it over last may publish.

Where locks do not reach, a run may go on that does not know yet that another has taken over. It can
do no harm. Names of files contain the owner (`owned`), so it overwrites and deletes nothing of
others. Its next manifest is refused, because the number is taken (`publish`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate import schedule
from tidegate.errors import FencedError, StateError
from tidegate.remote.folder import Entry
from tidegate.state.manifest import Manifest
from tidegate.state.name import manifest_name
from tidegate.storage.durable import Due

if TYPE_CHECKING:
    from tidegate.state.store import Store

TOKEN = "token"
"""The member of a holder that is unique to the run."""

_TRIES = 100
"""How often other runs may get ahead of one that takes a checkpoint over."""

Found = tuple[list[Manifest], list[Entry]]
"""The manifests that are kept, oldest first, and all files that are there."""


class Owner:
    """The claim of one run on a checkpoint: a fencing number, greater than those of earlier runs.

    `number` is 0 until the run has taken the checkpoint over. Call `enter`, then `publish` for each
    batch; `withdraw` may undo `enter` before anything else is done.
    """

    def __init__(self, store: Store) -> None:
        self.number = 0
        self._store = store
        self._entry: Manifest | None = None
        """The manifest by which the run has taken over, until it has changed anything else."""
        self._holder: Mapping[str, Any] = {}
        self._signed = False
        self._newest = -1
        """The number of the run's newest manifest."""

    def enter(self, first: Manifest, holder: Mapping[str, Any]) -> tuple[Manifest, Found]:
        """Take the checkpoint over (see `Store.enter`); also returns what was there before."""
        # Two runs that begin in the same second may have equal holders. Without a token, one could
        # take the other's manifest for its own.
        holder = {**holder, TOKEN: schedule.current().token()}
        store = self._store
        for _ in range(_TRIES):
            # A file may vanish while a run at work commits. It is damage only if no manifest came
            # or went in the meantime.
            before = store.numbers()
            try:
                kept, listed = store.kept(), store.listed()
                if kept:
                    store.check_present(kept[-1], listed)
            except StateError:
                if store.numbers() == before:
                    raise
                continue  # a run at work has committed meanwhile, and deleted what was being read
            entry = newest = kept[-1] if kept else first
            self._signed = newest.signed or first.signed
            if not newest.finished:
                entry = self._owned(newest, newest.owner + 1, dict(holder))
            if newest.finished or self._entered(entry):
                self.number, self._newest, self._holder = entry.owner, entry.number, dict(holder)
                self._entry = entry if entry is not newest else None
                return entry, ([*(m for m in kept if m.batch < entry.batch), entry], listed)
        raise self._fenced()

    def _entered(self, entry: Manifest) -> bool:
        """Write the entry; False where a run that is at work has committed meanwhile.

        That run may have taken this number, gone further and deleted the manifest again. Then the
        write succeeds, but there are greater numbers: the entry is deleted again.
        """
        if not self._put(entry):
            return False
        if self._store.numbers()[-1] > entry.number:
            self._store.delete(manifest_name(entry.number))
            return False
        return True

    def withdraw(self) -> None:
        """Undo `enter` if nothing was done since: an earlier run that is at work may go on."""
        entry, self._entry = self._entry, None
        if entry is not None and self._store.numbers()[-1] == entry.number:
            self._store.delete(manifest_name(entry.number))

    def stay(self) -> None:
        """Note that the run has begun to change something: it cannot withdraw any more."""
        self._entry = None

    def resumed(self, manifest: Manifest) -> Manifest:
        """An earlier state, from which the run makes the batch after it once more.

        The run gets a greater fencing number: so what it writes has other names than what it wrote
        for the newest state, and the number of its next manifest is still free.
        """
        self.number = self._newest - manifest.batch
        return self._owned(manifest, self.number, self._holder)

    def _owned(self, manifest: Manifest, owner: int, holder: Mapping[str, Any]) -> Manifest:
        return replace(manifest, owner=owner, holder=holder, signed=self._signed)

    def publish(self, manifest: Manifest, due: Due | None = None) -> None:
        """Write a manifest unless another run has taken over; see `Store.publish`."""
        self._newest, self._entry = manifest.number, None
        numbers = self._store.numbers
        try:
            put = self._put(manifest, due)
        except StateError:
            if numbers()[-1:] < [manifest.number] or self._is_there(manifest):
                raise
            put = False  # the run that took over has also removed the files that were to be synced
        # The put is not what decides: another run may have taken this number, gone further and
        # deleted its manifest again. Then there are greater numbers, and ours counts for nothing.
        if not put or numbers()[-1] > manifest.number:
            raise self._fenced()

    def check(self) -> None:
        """Raise a FencedError where another run has taken the checkpoint over."""
        if self._store.numbers()[-1:] > [self._newest]:
            raise self._fenced()

    def _put(self, manifest: Manifest, due: Due | None = None) -> bool:
        """Write a manifest under its number; False where another one has it."""
        name, text = manifest_name(manifest.number), manifest.to_json().encode()
        # The file may be ours: a client tries again when the answer to its first try was lost.
        return self._store.files.put_new(name, text, due) or self._is_there(manifest)

    def _is_there(self, manifest: Manifest) -> bool:
        """Whether the file of its number is exactly this manifest."""
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
    """The run that wrote a manifest, described for a message."""
    known = [f"{name} {value}" for name, value in manifest.holder.items() if name != TOKEN]
    return ", ".join([f"owner {manifest.owner}", *known])
