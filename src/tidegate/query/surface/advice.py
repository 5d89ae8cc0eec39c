"""Reads tables of advice: what a user is told who writes something that is not there.

An entry of a table is `about :: where: requirement; got something. Remedy.`, and may go on in
indented lines. Only the requirement must be there; an entry without a remedy has no way yet.
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
    """One entry; `where` and `got` are empty where they are left out."""

    about: str
    where: str
    why: str
    got: str
    remedy: str


def read_advice(table: str) -> list[Advice]:
    """The entries of a table, in their order."""
    entries = []
    for text in re.split(r"\n(?=\S)", table.strip()):
        entry = _ENTRY.fullmatch(" ".join(text.split()))
        assert entry is not None, text
        about, where, why, got, remedy = entry.groups(default="")
        entries.append(Advice(about, where, why, got, remedy or NO_WAY))
    return entries
