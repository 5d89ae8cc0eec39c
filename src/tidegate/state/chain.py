"""The signed chain of a checkpoint: which rows and files a run has published, batch by batch.

``chain/NNNNNNNN.json`` has two lines: a link, one JSON object with sorted keys, and in base64 the
Ed25519 signature of the bytes of that line. Each link has the SHA-256 digest of the line before it,
so none can be changed, left out or moved without breaking the ones behind it. A batch that
published no rows has no link, except the last of a finished query. The disk holds a link for each
batch that published something; nobody holds them all in memory.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidegate.errors import StateError
from tidegate.state.files import Files, guard
from tidegate.state.signature import PublicKey, SigningKey

CHAIN = "chain"
"""The folder of the links."""

FORMAT = "tidegate chain 1"
"""What every signed line says, so that a signature of something else is never taken for a link."""

_NAME = re.compile(r"(\d{8,})\.json")
_READABLE = "Give access to it, or see that its server answers, and try again."
_REMEDY = (
    "Do not trust what follows it: ask for the chain and the output again, from who signed them."
)


@dataclass(frozen=True)
class SignedOutput:
    """All rows of an output so far, and the files that one batch has added.

    `digest` counts the `rows` from the first on (`sink.digest`). `parts` are names below the folder
    of the batch, with size and SHA-256; None where the output cannot be read back.
    """

    rows: int
    digest: str
    parts: list[tuple[str, int, str]] | None


@dataclass(frozen=True)
class ChainLink:
    """What one batch has published; `previous` is the digest of the link before, "" for none."""

    checkpoint: str
    batch: int
    previous: str
    query: str
    frontier_us: int
    finished: bool
    outputs: Mapping[str, SignedOutput]

    @property
    def line(self) -> bytes:
        """The bytes that are signed; equal links have equal lines."""
        body = {**asdict(self), "format": FORMAT}
        return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()

    @property
    def digest(self) -> str:
        """What the next link names this one by."""
        return hashlib.sha256(self.line).hexdigest()

    @staticmethod
    def of_line(line: bytes) -> ChainLink:
        """The link of a line whose signature is right."""
        body: dict[str, Any] = json.loads(line)
        if body.pop("format") != FORMAT:
            raise ValueError("another format")
        outputs = {name: SignedOutput(**of) for name, of in body.pop("outputs").items()}
        return ChainLink(**body, outputs=outputs)


def write_link(files: Files, link: ChainLink, key: SigningKey) -> None:
    """Add a link, durably; the same again writes the same bytes, and no others."""
    signature = base64.b64encode(key.sign(link.line))
    with files.create(_name(link.batch)) as file:
        file.write(link.line + b"\n" + signature + b"\n")


def linked_batches(files: Files) -> list[int]:
    """The batches that have a link, ascending; lists one folder."""
    names = guard(lambda: files.names(CHAIN), files.full(CHAIN), _READABLE)
    found = (_NAME.fullmatch(name.rpartition("/")[2]) for name in names)
    return sorted(int(match[1]) for match in found if match is not None)


def read_link(files: Files, batch: int, key: PublicKey) -> ChainLink:
    """The link of a batch; a StateError where this key has not signed it as it is."""
    where = files.full(_name(batch))
    buffer = guard(lambda: files.buffer(_name(batch)), where, _READABLE)
    try:
        line, encoded, rest = bytes(buffer.to_pybytes()).split(b"\n")
        signature = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        raise _broken(where, "a line and its signature", "something else") from None
    if rest or not key.is_of(signature, line):
        raise _broken(
            where,
            "be as it was signed, with this key",
            "another text, or the signature of another key",
        )
    try:
        link = ChainLink.of_line(line)
    except (LookupError, TypeError, ValueError) as error:
        raise _broken(where, f"be in the format {FORMAT!r}", str(error)) from error
    if link.batch != batch:
        raise _broken(where, f"be the link of batch {batch}", f"that of batch {link.batch}")
    return link


def read_chain(files: Files, key: PublicKey) -> Iterator[ChainLink]:
    """The links from the first on, each checked against the key and the link before it."""
    before: ChainLink | None = None
    for batch in linked_batches(files):
        link = read_link(files, batch, key)
        where = files.full(_name(batch))
        expected = "" if before is None else before.digest
        if link.previous != expected:
            got = "another one: links are missing" if link.previous else "none: links were added"
            named = "be the first link" if before is None else f"follow that of {before.batch}"
            raise _broken(where, named, got)
        if before is not None and link.checkpoint != before.checkpoint:
            raise _broken(where, "be of the same checkpoint", "that of another one")
        yield link
        before = link


def _name(batch: int) -> str:
    return f"{CHAIN}/{batch:08d}.json"


def _broken(where: str, requirement: str, got: str) -> StateError:
    return StateError(where, f"must {requirement}", got, _REMEDY)
