"""What a careless user types, and the one line that is said about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

RIDES = ("--stream", "rides=rides.csv")
COUNT = "SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS]"


def run_line(options: Sequence[str]) -> tuple[str, ...]:
    """A run of `q.sql` with these options, in this process unless they name a master."""
    master = () if "--master" in options else ("--master", "none")
    return ("run", "q.sql", *master, *options)


@dataclass(frozen=True)
class Good:
    """A run that succeeds, before the one that does not."""

    sql: str = COUNT
    options: tuple[str, ...] = RIDES


@dataclass(frozen=True)
class Mistake:
    """One wrong input in a folder with `rides.csv` and an empty folder `empty`.

    `command` replaces `run q.sql --master none` and the options. In `message`, `{folder}` is the
    folder's path, and `{words}` stands for what a library says.
    """

    message: str
    sql: str = COUNT
    options: tuple[str, ...] = RIDES
    command: tuple[str, ...] | None = None
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    before: Good | None = None
