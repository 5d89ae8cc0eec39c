"""Reads tables of advice: what a user is told who writes something that is not there.

An entry of a table is a line that says what it is about; below it, indented, a line with the
requirement and what was got, and then the remedy. An entry without a remedy has no way yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidegate.errors import NO_WAY


@dataclass(frozen=True)
class Advice:
    """One entry; `got` and `where` are empty where the caller knows them."""

    about: str
    why: str
    got: str
    remedy: str
    where: str = ""


def read_advice(table: str) -> list[Advice]:
    """The entries of a table, in their order."""
    entries = []
    for block in re.split(r"\n(?=\S)", table.strip()):
        about, said, *remedy = (line.strip() for line in block.splitlines())
        required, _, got = said.partition("; got ")
        where, _, why = required.rpartition(": ")
        entries.append(Advice(about, why, got, " ".join(remedy) or NO_WAY, where))
    return entries
