"""Reads the parts of a committed batch again, and compares them with their receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from tidegate.batch import BatchId
from tidegate.errors import SinkError
from tidegate.remote.scheme import is_remote_uri
from tidegate.sink.folder.past import Committed, Past, past_of
from tidegate.sink.receipt import Receipt

if TYPE_CHECKING:
    from tidegate.sink.folder.files import FileSink
    from tidegate.sink.folder.remote import RemoteSink


@dataclass(frozen=True)
class VerifiedParts:
    """The result of checking a batch: how many parts were read, and what is wrong with them.

    A problem means, before the batch is published, that it will run again. After that it means that
    somebody has changed published files.
    """

    published: bool
    parts: int
    bytes: int
    problems: tuple[str, ...]


def found(uri: str, batch: int, receipts: Sequence[Mapping[str, Any]]) -> VerifiedParts:
    """Check a batch at a place that a manifest records; changes nothing."""
    return sink_at(uri).verify(BatchId(batch), [Receipt.from_dict(r) for r in receipts])


def past(
    uri: str,
    newest: int | None = None,
    receipts: Mapping[int, Sequence[Mapping[str, Any]]] | None = None,
    rows: int | None = None,
    newest_now: Callable[[], int] | None = None,
) -> Past:
    """Check all batches at such a place (`Committed`), by their ledgers; changes nothing."""
    known = {b: [Receipt.from_dict(r) for r in of] for b, of in (receipts or {}).items()}
    try:
        return past_of(sink_at(uri), Committed(newest, known, rows, newest_now))
    except OSError as error:
        raise SinkError(uri, "results must be readable to be checked", str(error)) from error


def sink_at(uri: str) -> FileSink | RemoteSink:
    """The sink at a place that a manifest records, for reading."""
    from tidegate.sink.folder.files import FileSink

    if is_remote_uri(uri):
        from tidegate.sink.folder.remote import RemoteSink

        return RemoteSink.of_manifest(uri)
    place = urlsplit(uri)
    sides = parse_qs(place.query).get("sides", [None])[0]
    return FileSink(unquote(place.path), sides=sides)
