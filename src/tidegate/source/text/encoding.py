"""Turns text of other encodings into UTF-8, block by block.

Records are found in a file's own bytes, so any block can be read alone and a file may grow. Only a
block that is parsed is turned into UTF-8.
"""

from __future__ import annotations

import codecs
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tidegate.errors import OptionError
from tidegate.source.text.block import Records, Split

UTF_8 = "utf-8"
_WIDE = {"utf-16-le": "<u2", "utf-16-be": ">u2"}
_BOMS = (
    (UTF_8, codecs.BOM_UTF8),
    ("utf-16-le", codecs.BOM_UTF16_LE),
    ("utf-16-be", codecs.BOM_UTF16_BE),
)
_SAME = {"utf-8-sig": UTF_8, "utf-16": "utf-16"}
_USUAL = "UTF-8, UTF-16, ISO-8859-1, windows-1252"


def codec_of(name: str, where: str) -> str:
    """Python's name of an encoding; refuses encodings in which line ends cannot be found."""
    try:
        found = codecs.lookup(name).name
        found = _SAME.get(found, found)
        if found in (UTF_8, "utf-16", *_WIDE) or keeps_apart(found, range(0x30)):
            return found
    except (LookupError, ValueError, UnicodeError):
        pass
    raise OptionError(
        where,
        "must be an encoding in which lines can be found",
        repr(name),
        f"Use {_USUAL} or another one in which ASCII characters are single bytes.",
    )


@lru_cache
def keeps_apart(codec: str, characters: range) -> bool:
    """Whether ASCII bytes always stand for themselves and are never a part of other characters."""
    plain = bytes(range(128))
    if plain.decode(codec) != plain.decode("ascii"):
        return False
    return all(
        bytes([lead, byte]).decode(codec, "replace").endswith(chr(byte))
        for lead in range(128, 256)
        for byte in characters
    )


def check_marks(codec: str, marks: str, where: str) -> None:
    """Refuse a delimiter or quote that may be a part of other characters in an encoding."""
    if codec in (UTF_8, "utf-16", *_WIDE):
        return
    for mark in marks:
        if not keeps_apart(codec, range(ord(mark), ord(mark) + 1)):
            raise OptionError(
                where,
                f"{mark!r} must not be a part of other characters in {codec}",
                f"{mark!r} as a delimiter or quote",
                "Write the file as UTF-8.",
            )


def beginning(data: bytes, codec: str) -> tuple[str, int]:
    """The encoding of a file by its first bytes, and the length of its byte order mark.

    UTF-16 without a mark is little-endian.
    """
    for known, bom in _BOMS:
        if data.startswith(bom) and codec in (known, "utf-16" if known in _WIDE else known):
            return known, len(bom)
    return ("utf-16-le" if codec == "utf-16" else codec), 0


def split_encoded(data: bytes, codec: str, final: bool, split: Split) -> Records:
    """The records of bytes in an encoding."""
    # Each unit of UTF-16 becomes one byte: ASCII itself, all else 0xFF. The result has the same
    # separators, quotes and line ends at half the places, so the search for bytes works on it.
    if codec not in _WIDE:
        return split(data, final)
    units = np.frombuffer(data, _WIDE[codec], len(data) // 2)
    narrow = np.where(units < 128, units, 0xFF).astype(np.uint8)
    found = split(narrow.tobytes(), final)
    odd = len(data) % 2 if final and found.used == len(narrow) else 0
    used = found.used * 2 + odd
    return replace(found, starts=found.starts * 2, stops=found.stops * 2, used=used)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8 as a whole."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def to_utf8(data: bytes, codec: str) -> bytes:
    """Text as UTF-8; what cannot be decoded becomes bytes that are not valid UTF-8."""
    if codec == UTF_8:
        return data
    if codec not in _WIDE:
        return data.decode(codec, "surrogateescape").encode(UTF_8, "surrogateescape")
    whole = len(data) - len(data) % 2
    text = data[:whole].decode(codec, "surrogatepass").encode(UTF_8, "surrogatepass")
    return text + b"\xff" if whole < len(data) else text
