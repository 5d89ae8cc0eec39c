"""Names the parts of a batch, and says what was written of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

NO_FILE = "no such file"
"""What is wrong with a part that is not there."""


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
    """A writer's confirmation of one part, and all that `publish` learns of it.

    The sink finds the part by its `name`: a file, a key, the id of a prepared transaction. `bytes`
    and `checksum` (CRC-32) describe the part as it was written; a sink that cannot know them leaves
    them out. `digest` covers the rows, where a task wrote them (`sink.digest`). `more` holds what
    else the sink needs, as JSON values. The manifest of the batch keeps its receipts, so a receipt
    must stay small: tens of bytes, however large the part.
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

    def mismatch(self, size: int | None, checksum: Callable[[], int] | None = None) -> str | None:
        """Say in words how the part differs from what was written; None where it does not.

        `size` is what it has now in bytes, None where it is gone. `checksum` reads the part; it is
        called only where the size is right.
        """
        if size is None:
            return NO_FILE
        if size != self.bytes:
            return f"{size} bytes, where {self.bytes} were written"
        if checksum is not None and checksum() != self.checksum:
            return "other bytes than were written"
        return None

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Receipt:
        """The inverse of `to_dict`; a missing or an unknown member is a TypeError."""
        return Receipt(**fields)
