"""Takes LIKE patterns apart into how they are searched for."""

from __future__ import annotations

ONE = "\0_"
"""The mark of `_` among the parts of a pattern; no literal part is this text."""


def like_parts(pattern: str, escape: str) -> list[str | None]:
    """The characters of a LIKE pattern, None for `%`. Raises ValueError on a stray escape."""
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
