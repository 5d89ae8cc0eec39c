"""Signs each batch of a run, once it is published, into the chain of its checkpoint."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.batch import BatchId
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.checkpoint.change import made_by
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.errors import CheckpointError, OptionError, SinkError, StateError
from tidegate.sink.folder.verify import sink_at
from tidegate.sink.receipt import Receipt
from tidegate.state.chain import ChainLink, SignedOutput, linked_batches, read_link, write_link
from tidegate.state.identity import identity_of
from tidegate.state.manifest import Manifest
from tidegate.state.signature import SigningKey
from tidegate.state.store import Store

if TYPE_CHECKING:
    from tidegate.sink.folder.files import FileSink
    from tidegate.sink.folder.remote import RemoteSink

_SIGN = "--sign"
_CHUNK_BYTES = 1 << 20


class ChainSigner(BatchObserver):
    """Adds a link for each batch that has published rows, and for the last of a query.

    A link follows from the manifest and the published files alone, and equal links get equal
    signatures. So a run that is killed between a commit and its link leaves nothing to repair: the
    next one writes the link that was missing. Holds the newest link.
    """

    def __init__(self, store: Store, key: SigningKey, state: Manifest) -> None:
        """Go on with the chain of a checkpoint that a run has entered at this state."""
        self._store = store
        self._key = key
        self._state = state
        self._head = _head(store, key)

    def started(self) -> None:
        """The newest batch may have been committed by a run that was killed before its link."""
        # Where its output was lost it runs again first: then the state is the one before it.
        newest, signed = self._store.latest(), -1 if self._head is None else self._head.batch
        if newest is not None and signed < newest.batch == self._state.batch:
            self._sign(newest)

    def committed(self, batch: CommittedBatch) -> None:
        self._sign(batch.manifest)

    def _sign(self, manifest: Manifest) -> None:
        head = self._head
        if head is not None and head.batch == manifest.batch:
            # The same batch again, after its output was lost: it takes the place of its own link,
            # so what comes before it is what came before that.
            previous = head.previous
        else:
            previous = "" if head is None else head.digest
            if head is not None and not manifest.finished and not _adds(head, manifest):
                return
        meta = self._store.meta() or {}
        query = made_by(meta, manifest)
        fingerprint = meta.get("fingerprint", "") if query is None else query.fingerprint
        link = ChainLink(
            identity_of(self._store.location, meta),
            manifest.batch,
            previous,
            fingerprint,
            manifest.frontier_us,
            manifest.finished,
            {name: _signed(manifest, name, of) for name, of in manifest.digests.items()},
        )
        if link != head:
            write_link(self._store.files, link, self._key)
            self._head = link


def check_key(location: str, newest: Manifest | None, key: SigningKey | None) -> None:
    """Refuse a run without a key on a checkpoint whose batches are signed."""
    if key is None and newest is not None and newest.signed:
        got = f"none for {location}, whose batches are signed"
        remedy = "Give the key, or use another checkpoint: all of an output is signed."
        raise OptionError(_SIGN, "must be given", got, remedy)


def check_chain(store: Store, key: SigningKey) -> None:
    """Before a run enters a checkpoint: refuse a key that cannot go on with its chain."""
    try:
        head = _head(store, key)
    except StateError as error:
        remedy = "Give the key that signed the batches before."
        raise OptionError(_SIGN, "must be the key of this chain", str(error), remedy) from error
    newest = None if store.meta() is None else store.latest()
    batch = -1 if newest is None else newest.batch
    if head is not None and head.batch > batch:
        got = f"one at batch {batch}, and a chain that has signed batch {head.batch}"
        remedy = "Restore the newest state, or begin with another checkpoint."
        raise CheckpointError(store.location, "must be as far as its chain", got, remedy)
    if newest is not None and head is None and _was_signed(store, batch):
        got = "none, and batches that are signed"
        remedy = "Put the folder chain back from a copy, or begin with another checkpoint."
        raise CheckpointError(store.location, "must have the chain of its batches", got, remedy)
    if newest is not None and not newest.digests:
        got = "one that an earlier version began without digests"
        remedy = "Sign a run with another --checkpoint."
        raise CheckpointError(store.location, "must have recorded digests", got, remedy)


def _was_signed(store: Store, batch: int) -> bool:
    """Whether one before a batch was signed: a kill before the first link leaves only one batch."""
    return any(manifest.signed and manifest.batch < batch for manifest in store.kept())


def _head(store: Store, key: SigningKey) -> ChainLink | None:
    """The newest link; a StateError where this key has not signed it."""
    batches = linked_batches(store.files)
    return read_link(store.files, batches[-1], key.public) if batches else None


def _adds(head: ChainLink, manifest: Manifest) -> bool:
    """Whether an output has rows that the newest link does not count."""
    return any(
        name not in head.outputs or head.outputs[name].digest != of["digest"]
        for name, of in manifest.digests.items()
    )


def _signed(manifest: Manifest, name: str, digest: Mapping[str, Any]) -> SignedOutput:
    """An output of a batch as it is published; its files are read, and must be as written."""
    place = manifest.places.get(name)
    parts = None
    if place is not None:
        receipts = [Receipt.from_dict(dict(r)) for r in manifest.outputs.get(name, ())]
        parts = _parts(place, BatchId(manifest.batch), receipts)
    return SignedOutput(int(digest["rows"]), str(digest["digest"]), parts)


def _parts(place: str, batch: BatchId, receipts: Sequence[Receipt]) -> list[tuple[str, int, str]]:
    sink, found = sink_at(place), []
    for receipt in (r for r in receipts if "/" not in r.name):  # side outputs have a folder
        name = f"batch={batch:08d}/{receipt.name}"
        try:
            size, checksum, digest = part_bytes(sink, name)
        except OSError as error:
            raise _unsigned(place, name, str(error)) from error
        if (size, checksum) != (receipt.bytes, receipt.checksum):
            raise _unsigned(place, name, "other bytes than were written")
        found.append((receipt.name, size, digest))
    return found


def part_bytes(sink: FileSink | RemoteSink, name: str) -> tuple[int, int, str]:
    """The size, the CRC-32 and the SHA-256 of a published file; reads a piece at a time."""
    size, checksum, digest = 0, 0, hashlib.sha256()
    with sink.part(name) as file:
        while piece := file.read(_CHUNK_BYTES):
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
            digest.update(piece)
    return size, checksum, digest.hexdigest()


def _unsigned(place: str, name: str, got: str) -> SinkError:
    remedy = "The batch is committed and not signed: put the file back, and run again."
    return SinkError(f"{place}/{name}", "must be as it was written to be signed", got, remedy)
