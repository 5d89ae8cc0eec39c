"""The parts of a committed batch looked up again, between a manifest and whoever checks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tidegate.batch import BatchId
from tidegate.remote.scheme import is_remote_uri
from tidegate.sink.receipt import Receipt


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
    from tidegate.sink.files import FileSink

    kept = [Receipt.from_dict(r) for r in receipts]
    place = urlsplit(uri)
    if is_remote_uri(uri):
        from tidegate.sink.remote import RemoteSink

        return RemoteSink.of_manifest(uri).verify(BatchId(batch), kept)
    sides = parse_qs(place.query).get("sides", [None])[0]
    sink = FileSink(unquote(place.path), sides=sides)
    return sink.verify(BatchId(batch), kept)
