"""Splits LIKE patterns into parts to search for."""

from __future__ import annotations

ONE = "\0_"
"""Stands for `_` among the parts of a pattern; no literal part equals it."""


def like_parts(pattern: str, escape: str) -> list[str | None]:
    """The characters of a LIKE pattern, with None for `%`. Raises ValueError for a stray escape."""
    parts: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            follower = next(characters, None)
            if follower is None or follower not in ("%", "_", escape):
                raise ValueError(pattern)
            parts.append(follower)
        elif character == "%":
            if not parts or parts[-1] is not None:
                parts.append(None)
        else:
            parts.append(ONE if character == "_" else character)
    return parts
