"""Tables and sentences of the generated pages, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; a bar in a cell is no border."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in r)} |" for r in lines)


def code(text: object) -> str:
    return f"`{text}`"


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring, in one line, without its full stop."""
    flat = " ".join((text or "").split())
    return re.split(r"(?<=[.!?])\s", flat)[0].removesuffix(".").replace("*", r"\*")
