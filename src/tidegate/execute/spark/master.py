"""The URL of a Spark master: where its tasks run, and whether anybody answers there."""

from __future__ import annotations

import re
import socket

from tidegate.errors import OptionError

_TASK_TRIES = 4
_ANSWER_S = 5.0
"""How long a standalone master may take to accept a connection."""


def is_one_host(master: str) -> bool:
    """Whether all tasks of a master run in one process of this host."""
    return re.match(r"local(\[|$)", master) is not None


def with_retries(master: str) -> str:
    """Let a local master try a task again, as a cluster does, when a worker process dies."""
    match = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return f"local[{match.group(1) or 1},{_TASK_TRIES}]" if match else master


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
