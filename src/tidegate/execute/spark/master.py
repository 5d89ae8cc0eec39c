"""The URL of a Spark master: where its tasks run, and whether anybody answers there."""

from __future__ import annotations

import os
import re
import socket

from tidegate.errors import OptionError

_TASK_TRIES = 4
_ANSWER_S = 5.0
"""How long a standalone master may take to accept a connection."""

CORES = "spark.tidegate.cores"
"""The property that says how many cores were asked for, of a local master that was started here."""

SHARE = 3
"""Slots for each of these cores."""


def is_one_host(master: str) -> bool:
    """Whether all tasks of a master run in one process of this host."""
    return re.match(r"local(\[|$)", master) is not None


def with_retries(master: str) -> str:
    """Let a local master try a task again, as a cluster does, when a worker process dies."""
    slots = _slots(master)
    return master if slots is None else f"local[{slots},{_TASK_TRIES}]"


def with_slots(master: str) -> tuple[str, dict[str, str]]:
    """Give a local master slots for tasks that stay, and let it try a task again as a cluster does.

    What plans by the number of cores still finds the one that was asked for.
    """
    asked = _slots(master)
    if asked is None:
        return master, {}
    cores = (os.cpu_count() or 1) if asked == "*" else int(asked)
    settings = {CORES: str(cores), "spark.default.parallelism": str(cores)}
    return f"local[{SHARE * cores},{_TASK_TRIES}]", settings


def _slots(master: str) -> str | None:
    """How many slots a local master asks for, maybe `*`; None where it says more, or is another."""
    match = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return match and (match[1] or "1")


def check_answers(master: str) -> None:
    """Say at once that nobody listens at a spark:// URL; Spark itself tries for a minute."""
    match = re.fullmatch(r"spark://(.+)", master)
    places = [place.rpartition(":") for place in match[1].split(",")] if match else []
    failures = []
    for host, _, port in places:
        try:
            number = int(port)
            socket.create_connection((host.strip("[]"), number), timeout=_ANSWER_S).close()
        except (OSError, ValueError, OverflowError) as error:
            failures.append(getattr(error, "strerror", None) or str(error))
        else:
            return
    if failures:
        raise OptionError(
            "--master",
            "must be a Spark master that answers",
            f"{master} ({failures[0]})",
            "See that it runs (sbin/start-master.sh) and that host and port are those it logs.",
        )
