"""The URL of a Spark master: where its tasks run, and whether anybody answers there."""

from __future__ import annotations

import re
import socket
from importlib.util import find_spec

from tidegate.cores import cores
from tidegate.errors import OptionError

_TASK_TRIES = 4
_ANSWER_S = 5.0
"""How long a standalone master may take to accept a connection."""

CORES = "spark.tidegate.cores"
"""The property that says how many cores were asked for, of a local master that was started here."""

_CLIENT = ("grpc", "grpc_status", "google.rpc", "zstandard")
"""What the client of Spark Connect imports, beside what PySpark itself does."""

_CONNECT_PORT = 15002
_STARTS = {False: "start-master.sh", True: "start-connect-server.sh"}

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
    many = cores() if asked == "*" else int(asked)
    settings = {CORES: str(many), "spark.default.parallelism": str(many)}
    return f"local[{SHARE * many},{_TASK_TRIES}]", settings


def _slots(master: str) -> str | None:
    """How many slots a local master asks for, maybe `*`; None where it says more, or is another."""
    match = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return match and (match[1] or "1")


def is_connect(master: str) -> bool:
    """Whether a URL is that of a server of Spark Connect."""
    return master.startswith("sc://")


def check_client() -> None:
    """Refuse Spark Connect where the packages of its client are not installed."""
    missing = [name for name in _CLIENT if find_spec(name) is None]
    if missing:
        raise OptionError(
            "--master",
            "Spark Connect needs the packages of its client",
            f"no {', '.join(missing)}",
            "Run pip install 'tidegate[connect]'.",
        )


def check_answers(master: str) -> None:
    """Say at once that nobody listens at a URL; Spark itself tries for a minute."""
    match = re.fullmatch(r"(?:spark|sc)://([^/;]+).*", master)
    named = match[1].split(",") if match else []
    if is_connect(master):
        named = [place if ":" in place else f"{place}:{_CONNECT_PORT}" for place in named]
    places = [place.rpartition(":") for place in named]
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
            f"See that it runs (sbin/{_STARTS[is_connect(master)]}) and that host and port are "
            "those it logs.",
        )
