"""Writes JSON with a checksum, and refuses text that differs from what was written.

The text is one object on one line, with sorted keys; the last member is a checksum of all bytes
before it. A check costs one pass over the bytes, and equal data make equal text.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from tidegate.errors import StateError

REMEDY = "Restore the file from a copy, or restart from an empty checkpoint; nothing was changed."

_BEFORE = (1, 2)
"""The versions of files in which the checksum was one of the sorted members, over all others."""


def seal(body: Mapping[str, Any]) -> str:
    """The text of some members, at least one; numpy scalars are written as numbers."""
    text = _text(body)[:-1]
    return text + _end(text.encode())


def unseal(text: str | bytes, where: str) -> dict[str, Any]:
    """The members that `seal` was given; text that differs in a single bit is a StateError.

    Text of earlier versions is read as well, so that the caller can refuse their version by name.
    """
    raw = text.encode() if isinstance(text, str) else bytes(text)
    sealed, end = raw[:-_END_BYTES], raw[-_END_BYTES:]
    if end == _end(sealed).encode():
        try:
            body: dict[str, Any] = json.loads(sealed + b"}")
        except ValueError as error:
            raise damaged(where, "text that is not JSON") from error
        return body
    before = _of_version_before(raw)
    if before is None:
        raise damaged(where, "bytes that do not end with their checksum")
    return before


def damaged(where: str, got: str) -> StateError:
    """The error for a file that is not as it was written."""
    return StateError(where, "must be as it was written", got, REMEDY)


def _end(sealed: bytes) -> str:
    """The last member, which ends the text."""
    return f',"checksum":"{zlib.crc32(sealed):08x}"}}\n'


_END_BYTES = len(_end(b""))


def _of_version_before(raw: bytes) -> dict[str, Any] | None:
    """The members of an undamaged file of an earlier version; None for any other bytes."""
    try:
        body = json.loads(raw)
        stated = body.pop("checksum")
        version = body.get("version", body.get("layout"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    checksum = f"{zlib.crc32(_text(body).encode()):08x}"
    whole = (_text({**body, "checksum": checksum}) + "\n").encode()
    return body if version in _BEFORE and stated == checksum and raw == whole else None


def _text(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), default=_scalar)


def _scalar(value: Any) -> Any:
    """A numpy scalar as a Python number; anything else is a mistake of the caller."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a manifest: {value!r}")
