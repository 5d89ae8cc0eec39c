"""The parts of a committed batch looked up again, between a manifest and whoever checks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from tidegate.batch import BatchId
from tidegate.errors import SinkError
from tidegate.remote.scheme import is_remote_uri
from tidegate.sink.batch_ledger import Past, past_of
from tidegate.sink.receipt import Receipt

if TYPE_CHECKING:
    from tidegate.sink.files import FileSink
    from tidegate.sink.remote import RemoteSink


@dataclass(frozen=True)
class Found:
    """What there is of a batch: how many parts were looked at, and what is wrong with them.

    Before a batch is published a problem means that it will run again; after that, that somebody
    has changed what was published.
    """

    published: bool
    parts: int
    bytes: int
    problems: tuple[str, ...]


def found(uri: str, batch: int, receipts: Sequence[Mapping[str, Any]]) -> Found:
    """What is at a place that a manifest names (`places`); nothing is changed."""
    return _sink(uri).verify(BatchId(batch), [Receipt.from_dict(r) for r in receipts])


def past(uri: str, before: int) -> Past:
    """What is left there of the batches before one; nothing is changed."""
    try:
        return past_of(_sink(uri), before)
    except OSError as error:
        raise SinkError(uri, "results must be readable to be checked", str(error)) from error


def _sink(uri: str) -> FileSink | RemoteSink:
    from tidegate.sink.files import FileSink

    if is_remote_uri(uri):
        from tidegate.sink.remote import RemoteSink

        return RemoteSink.of_manifest(uri)
    place = urlsplit(uri)
    sides = parse_qs(place.query).get("sides", [None])[0]
    return FileSink(unquote(place.path), sides=sides)
