"""Reads tables of advice: what a user is told who writes something that is not there.

An entry of a table is a line that says what it is about, and below it, indented, the message:
`where: requirement; got something. Remedy.` The parts but for the requirement may be left out; an
entry without a remedy has no way yet.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.errors import NO_WAY

_MESSAGE = re.compile(
    r"(?:(?P<where>[A-Z]+): )?(?P<why>.+?)(?:; got (?P<got>.+?))?(?:(?<!\.)\. (?P<remedy>[A-Z].*))?"
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
    for block in re.split(r"\n(?=\S)", table.strip()):
        about, *lines = (line.strip() for line in block.splitlines())
        message = _MESSAGE.fullmatch(" ".join(lines))
        assert message is not None, block
        where, why, got, remedy = message.groups(default="")
        entries.append(Advice(about, where, why, got, remedy or NO_WAY))
    return entries
