"""Names the parts of a batch, and says what was written of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Part:
    """Which part of an output's batch is written: some of its rows, or a side output.

    Read in the order of their numbers the parts without a `side` are the rows of the batch, in the
    output order. `late` tuples come as one part per `stream`, `rejected` ones as one part.
    """

    number: int = 0
    side: Literal["", "late", "rejected"] = ""
    stream: str = ""


@dataclass(frozen=True)
class Receipt:
    """What a writer says of one part, and all that `publish` is told of it.

    `name` is what its sink finds the part by: a file, a key, the id of a prepared transaction.
    `bytes` and `checksum` (CRC-32) are of the part as it was written; a sink that cannot know them
    leaves them out. `digest` is that of the rows, where a task has written them (`sink.digest`).
    `more` is for what else it needs, as JSON values. Receipts are kept in the
    manifest of their batch, so they have to be small: tens of bytes, however large the part.
    """

    name: str
    rows: int
    bytes: int | None = None
    checksum: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The receipt as JSON values, for a manifest."""
        fields = asdict(self)
        return {name: v for name, v in fields.items() if name != "digest" or v is not None}

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Receipt:
        """What `to_dict` gave; a missing or an unknown member is a TypeError."""
        return Receipt(**fields)
