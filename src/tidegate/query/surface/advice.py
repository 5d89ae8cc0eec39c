"""Reads tables of advice for names that users expect and that do not exist here.

An entry is `about :: where: requirement; got something. Remedy.` and may continue in indented
lines. Only the requirement is mandatory. An entry without a remedy means that there is no way yet.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.errors import NO_WAY

_ENTRY = re.compile(
    r"(?P<about>.+?) :: (?:(?P<where>[A-Z]+): )?(?P<why>.+?)(?:; got (?P<got>.+?))?"
    r"(?:(?<!\.)\. (?P<remedy>[A-Z].*))?"
)


class Advice(NamedTuple):
    """One entry; `where` and `got` may be empty."""

    about: str
    where: str
    why: str
    got: str
    remedy: str


def read_advice(table: str) -> list[Advice]:
    """The entries of a table, in order."""
    entries = []
    for text in re.split(r"\n(?=\S)", table.strip()):
        entry = _ENTRY.fullmatch(" ".join(text.split()))
        assert entry is not None, text
        about, where, why, got, remedy = entry.groups(default="")
        entries.append(Advice(about, where, why, got, remedy or NO_WAY))
    return entries
