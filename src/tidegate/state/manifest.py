"""The record of the state after one batch, between the loop that commits it and a restart.

State after batch i is what manifest i says, nothing else. Its file is one JSON object with sorted
keys and a `checksum` over all other members.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import CheckpointError, StateError
from tidegate.state.segment import REMEDY, Segment

VERSION = 3


@dataclass(frozen=True)
class Manifest:
    """The state after batch `batch`.

    `mappings` has, by subquery, its `epoch`, its `instances` and the `owners` of its buckets.
    `operators` has the live segments of each part of the state, oldest first, by subquery and what
    they hold ("join/left"). `sources`, `policy` and `epochs` are the loop's own, as JSON values
    (str, int, float, bool, None, lists, dicts with str keys).
    `outputs` has the receipts of what sinks were given of this batch, by output, "" for the only
    one: what a restart publishes.
    `files` names every other file of the store that this state needs (`gate/...`, `staged/...`):
    what neither it nor `operators` names is deleted by `Store.retire` and `Store.clean`.
    """

    batch: int
    mappings: Mapping[str, Mapping[str, Any]]
    frontier_us: int
    sources: tuple[Mapping[str, Any], ...] = ()
    operators: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    epochs: tuple[Mapping[str, Any], ...] = ()
    finished: bool = False
    files: tuple[str, ...] = ()
    outputs: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    version: int = VERSION

    @property
    def instances(self) -> int:
        """The instances of the subquery that has most."""
        return max(int(m["instances"]) for m in self.mappings.values())

    @property
    def epoch(self) -> int:
        """How often a mapping has changed in the subquery where it did most often."""
        return max(int(m["epoch"]) for m in self.mappings.values())

    @property
    def buckets(self) -> int:
        """How many buckets the state of every subquery has."""
        return max(len(m["owners"]) for m in self.mappings.values())

    def segments(self) -> tuple[Segment, ...]:
        """The live segments of all operators, operators by name."""
        return tuple(s for name in sorted(self.operators) for s in self.operators[name])

    def names(self) -> frozenset[str]:
        """The files that this state needs, as names below the root of the store."""
        return frozenset(self.files) | {segment.path for segment in self.segments()}

    def to_json(self) -> str:
        """The text of the manifest's file; equal manifests give equal text."""
        body = {
            **self.__dict__,
            "operators": {
                name: [segment.to_dict() for segment in segments]
                for name, segments in self.operators.items()
            },
        }
        return seal(body)

    @classmethod
    def from_json(cls, text: str | bytes, where: str) -> Manifest:
        """Read what `to_json` wrote; damage is a StateError that names `where`."""
        body = unseal(text, where)
        check_version(body.get("version"), where)
        try:
            operators = {
                name: tuple(Segment.from_dict(fields) for fields in segments)
                for name, segments in body["operators"].items()
            }
            mappings = {name: dict(of) for name, of in body["mappings"].items()}
            outputs = {name: tuple(receipts) for name, receipts in body["outputs"].items()}
            lists = {k: tuple(body[k]) for k in ("sources", "epochs", "files")}
            dicts = {"operators": operators, "mappings": mappings, "outputs": outputs}
            return cls(**{**body, **lists, **dicts})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(where, f"a wrong member: {error}") from error


def seal(body: Mapping[str, Any]) -> str:
    """JSON text with sorted keys, one line, that carries a checksum of itself."""
    return _text({**body, "checksum": _checksum(body)}) + "\n"


def unseal(text: str | bytes, where: str) -> dict[str, Any]:
    """The members that `seal` was given; text that differs in a single bit is a StateError."""
    try:
        body = json.loads(text)
    except ValueError as error:
        raise _damaged(where, "text that is not JSON") from error
    if not isinstance(body, dict) or "checksum" not in body:
        raise _damaged(where, "JSON without a checksum")
    stated = body.pop("checksum")
    raw = text.encode() if isinstance(text, str) else text
    if stated != _checksum(body) or raw != seal(body).encode():
        raise _damaged(where, f"a checksum of {_checksum(body)} beside the stated {stated}")
    return body


def check_version(version: object, where: str) -> None:
    """Refuse a file of another layout before its members are looked at."""
    if version != VERSION:
        raise CheckpointError(
            where,
            f"must be of version {VERSION}",
            f"version {version}",
            "Run it with the Tidegate that wrote it, or start from an empty checkpoint.",
        )


def _checksum(body: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(_text(body).encode()):08x}"


def _text(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), default=_scalar)


def _scalar(value: Any) -> Any:
    """A numpy scalar as the Python number it is; anything else is a mistake of the caller."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a manifest: {value!r}")


def _damaged(where: str, got: str) -> StateError:
    return StateError(where, "must be as it was written", got, REMEDY)
