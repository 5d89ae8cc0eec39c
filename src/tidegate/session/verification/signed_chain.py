"""Checks the signed chain of a checkpoint, and an output against it, with a public key alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tidegate.driver.checkpoint.signing import part_bytes
from tidegate.errors import CheckpointError, SourceError, StateError
from tidegate.remote.scheme import is_remote_uri
from tidegate.sink.digest.digest import Digest, row_hashes
from tidegate.sink.folder.batch_ledger import batch_folder, batch_numbers
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.folder_reader import UNREADABLE
from tidegate.sink.folder.past import is_stray
from tidegate.sink.folder.verify import sink_at
from tidegate.sink.folder.written_rows import EventSpan, rows_of
from tidegate.state.chain import ChainLink, SignedOutput, read_chain
from tidegate.state.manifest import Manifest
from tidegate.state.signature import PublicKey
from tidegate.state.store import Store

_LISTED = 100
"""So many problems of an output are told one by one."""


def signed_ends(place: str, key: PublicKey) -> tuple[ChainLink, ChainLink]:
    """The first and the newest link of a chain, after all links were checked."""
    first = last = None
    for link in read_chain(Store.open(place).files, key):
        first, last = first or link, link
    newest = _present(place, last)
    return first or newest, newest


def check_signed(place: str, key: PublicKey, out: str | None) -> dict[str, Any]:
    """What a chain has signed, and what of it the output does not have as signed, as plain data.

    `place` is a checkpoint, or a folder with a copy of its folder `chain`. Reads every file of the
    output once, and its rows once more. `out` is where the output is now,
    for a copy; else it is where the checkpoint says. Nothing but the checkpoint is needed, and no
    query is run.
    """
    store = Store.open(place)
    newest = None if store.meta() is None else store.latest()
    places = _places(store.location, newest, out)
    outputs: dict[str, _SignedFiles] = {}
    head = first = None
    problem: str | None = None
    try:
        for link in read_chain(store.files, key):
            head, first = link, first or link
            for name, signed in link.outputs.items():
                if name not in outputs:
                    outputs[name] = _SignedFiles(places(name))
                outputs[name].take(link, signed)
    except StateError as error:
        problem = str(error)
    chain = [] if problem is None else [problem]
    if problem is None:
        last = _present(place, head)
        chain += [] if newest is None else _behind(newest.digests, last)
        for of in outputs.values():
            of.end(last.batch)
    found = {name: of.facts() for name, of in outputs.items()}
    return {
        "checkpoint": store.location,
        "equal": not chain and not any(of["problems"] for of in found.values()),
        "chain": chain,
        "first": None if first is None else first.batch,
        "batch": None if head is None else head.batch,
        "link": None if head is None else head.digest,
        "finished": head is not None and head.finished,
        "outputs": found,
    }


def _present(place: str, head: ChainLink | None) -> ChainLink:
    if head is None:
        remedy = "Give the checkpoint of a run with --sign, or a folder with a copy of its chain."
        raise CheckpointError(place, "must have a signed chain", "none", remedy)
    return head


def _places(location: str, newest: Manifest | None, out: str | None) -> Callable[[str], str | None]:
    """Where an output is, by its name."""

    def place(name: str) -> str | None:
        if out is not None:
            whole = f"{out.rstrip('/')}/{name}" if name else out
            known = is_remote_uri(whole) or whole.startswith("file:")
            return whole if known else FileSink(whole).uri
        if newest is None:
            got = "a copy of the chain alone"
            raise CheckpointError(location, "must say where the output is", got, "Give --out OUT.")
        return newest.places.get(name)

    return place


def _behind(digests: Mapping[str, Mapping[str, Any]], head: ChainLink) -> list[str]:
    """What a checkpoint has committed that its chain has not signed."""
    return [
        f"{name or 'the output'} has {of['rows']:,} rows, of which {signed.rows:,} are signed"
        for name, of in digests.items()
        if (signed := head.outputs.get(name, SignedOutput(0, "", None))).digest != of["digest"]
    ]


class _SignedFiles:
    """Compares one output with the links of a chain, in their order; holds the batches it has."""

    def __init__(self, place: str | None) -> None:
        self._place = place
        self._sink = None if place is None else sink_at(place)
        self._problems: list[str] = []
        self._signed: SignedOutput | None = None
        self._files = 0
        self._first = 0
        self._batches = set() if place is None else set(self._names(""))

    def take(self, link: ChainLink, signed: SignedOutput) -> None:
        """The files that one batch has added."""
        if self._signed is None:
            self._first = link.batch
        self._signed = signed
        if signed.parts is None or self._sink is None:
            return
        folder = f"batch={link.batch:08d}"
        self._batches.discard(folder)
        there = set(self._names(folder))
        for name, size, digest in signed.parts:
            there.discard(name)
            self._files += 1
            wrong = self._wrong(f"{folder}/{name}", size, digest)
            if wrong is not None:
                self._problems.append(f"{self._place}/{folder}/{name}: {wrong}")
        self._problems += [f"{self._place}/{folder}/{name}: not signed" for name in sorted(there)]

    def end(self, last: int) -> None:
        """After the last link: what is there beside it, and the digest of all rows."""
        if self._sink is None or self._signed is None or self._signed.parts is None:
            return
        for folder in sorted(self._batches):
            inside, number = self._names(folder), batch_numbers([folder])
            if number and folder == batch_folder(number[0]):
                unsigned = number[0] >= self._first and bool(inside)
            else:
                unsigned = is_stray(folder, inside)
            if unsigned:
                self._problems.append(f"{self._place}/{folder}: not signed")
        if not self._problems:
            self._check_digest(last)

    def facts(self) -> dict[str, Any]:
        signed = self._signed
        more = len(self._problems) - _LISTED
        listed = self._problems[:_LISTED] + [f"and {more} more"] * (more > 0)
        return {
            "rows": 0 if signed is None else signed.rows,
            "digest": "" if signed is None else signed.digest,
            "files": self._files if signed is not None and signed.parts is not None else None,
            "problems": listed,
        }

    def _names(self, folder: str) -> list[str]:
        assert self._sink is not None
        try:
            return list(self._sink.batch_names(folder))
        except FileNotFoundError:
            return []

    def _wrong(self, name: str, size: int, digest: str) -> str | None:
        assert self._sink is not None
        try:
            found, _, sha = part_bytes(self._sink, name)
        except FileNotFoundError:
            return "no such file, and it was signed"
        except OSError as error:
            return str(error)
        if (found, sha) != (size, digest):
            return "other bytes than were signed"
        return None

    def _check_digest(self, upto: int) -> None:
        """The digest of the rows as they are read: those before the first link are in it, too."""
        assert self._signed is not None
        found = Digest()
        try:
            for batch in self._rows(upto):
                found = found.with_rows(row_hashes(batch)) if batch.num_rows else found
        except SourceError as error:
            if error.requirement != UNREADABLE:
                self._problems.append(str(error))
            return
        if (found.rows, found.text) != (self._signed.rows, self._signed.digest):
            self._problems.append(
                f"{self._place}: {found.rows:,} rows with digest {found.text}, where "
                f"{self._signed.rows:,} with {self._signed.digest} are signed"
            )

    def _rows(self, upto: int) -> Iterator[pa.RecordBatch]:
        assert self._place is not None
        return rows_of(self._place, EventSpan(), may_be_empty=True, upto=upto)
