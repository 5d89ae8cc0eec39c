"""Reads a mapping of buckets, given as JSON or as a file with it."""

from __future__ import annotations

from pathlib import Path

from tidegate.errors import OptionError


def mapping_text(given: str, where: str) -> str:
    """The JSON given, or that of the file given."""
    if given.lstrip().startswith(("[", "{")):
        return given
    try:
        return Path(given).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        got = getattr(error, "strerror", None) or str(error)
        raise OptionError(
            where,
            "needs a mapping as JSON, or a readable file with one",
            f"{given}: {got}",
            "Write for example '[0, 0, 1, 1]', the owner of each bucket.",
        ) from None
